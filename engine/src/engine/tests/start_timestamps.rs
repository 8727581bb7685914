//! Blocks with start timestamps, as a Prometheus that keeps these writes them.

use super::*;
use crate::block::{BlockBuilder, BlockMetaParams, SymbolCollector};
use crate::chunk::start_tests::xor2_chunk;
use crate::chunk::{Chunk, StartedValue, encode_started};
use crate::model::histogram::testing::any_histogram;
use crate::storage::Blocks as _;
use crate::wire::split_chunked_series;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

type TestResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn labels(name: &str) -> Labels {
    Labels::from_sorted([(LABEL_NAME, name), ("job", "test")])
}

fn some<T: Into<Value>>(any: impl Strategy<Value = T>, count: usize) -> Vec<Value> {
    let mut runner = TestRunner::deterministic();
    let mut one = || any.new_tree(&mut runner).expect("a value").current().into();
    (0..count).map(|_| one()).collect()
}

fn sent() -> TestResult<Vec<(&'static str, Vec<Chunk>)>> {
    let wholes: Vec<Value> = some(any_histogram::<u64>(), 3);
    let fractions: Vec<Value> = some(any_histogram::<f64>(), 2);
    let started = |values: &[Value]| {
        let at = |(i, value): (i64, &Value)| StartedValue {
            timestamp_ms: 10 + 10 * i,
            start_ms: 5 + i / 2,
            value: value.clone(),
        };
        encode_started((0..).zip(values).map(at))
    };
    let floats: Vec<(i64, i64, f64)> = (1..90).map(|i| (10 * i, 10 * i - 7, i as f64)).collect();
    Ok(vec![
        ("floats", vec![xor2_chunk(&floats)]),
        ("fractions", started(&fractions)?),
        ("wholes", started(&wholes)?),
    ])
}

fn put_block(blocks: &MemoryBlocks, series: &[(&str, Vec<Chunk>)]) -> TestResult {
    let mut symbols = SymbolCollector::new(1);
    series.iter().for_each(|(name, _)| symbols.add(&labels(name)));
    let mut builder = BlockBuilder::new(blocks.create(1)?, symbols)?;
    for (name, chunks) in series {
        builder.add_series(&labels(name), chunks)?;
    }
    let meta = builder.finish(BlockMetaParams {
        min_time_ms: 0,
        max_time_ms: 1000,
        level: 1,
        ..BlockMetaParams::default()
    })?;
    assert_eq!((meta.stats.num_float_samples, meta.stats.num_histogram_samples), (89, 5));
    Ok(())
}

fn values_by_time(chunks: &[Chunk]) -> TestResult<BTreeMap<i64, Value>> {
    let mut all = BTreeMap::new();
    for chunk in chunks {
        for value in crate::chunk::values(chunk)? {
            let (time_ms, value) = value?;
            all.insert(time_ms, value);
        }
    }
    Ok(all)
}

/// Clients know XOR and histogram chunks only, whatever the block has.
#[test]
fn answers_have_chunks_that_clients_know() -> TestResult {
    let (node, sent) = (Node::new(), sent()?);
    put_block(&node.blocks, &sent)?;
    assert!(sent.iter().flat_map(|(_, chunks)| chunks).all(|chunk| !chunk.encoding.is_plain()));
    let selection = all_of(Vec::new(), TimeRange::ALL);
    let direct = node.engine.select(&selection)?.next(u32::MAX)?;
    let frames = node.engine.select(&selection)?.next_frames(u32::MAX)?;
    let (mut framed, mut rest) = (Vec::new(), &frames[..]);
    while !rest.is_empty() {
        let (series, after) = split_chunked_series(rest)?;
        framed.push(series);
        rest = after;
    }
    // A host that meets them in a block asks for the series.
    let (mut planned, mut cursor) = (Vec::new(), node.engine.select(&selection)?);
    loop {
        let plan = cursor.next_plan(0)?;
        if plan.is_empty() {
            break;
        }
        let read = cursor.read_planned(&plan)?;
        planned.push(split_chunked_series(&read)?.0);
    }
    for answer in [direct, framed, planned] {
        assert_eq!(answer.len(), sent.len());
        for (series, (name, chunks)) in answer.iter().zip(&sent) {
            assert_eq!(series.labels, labels(name));
            assert!(series.chunks.iter().all(|chunk| chunk.encoding.is_plain()));
            assert_eq!(values_by_time(&series.chunks)?, values_by_time(chunks)?);
        }
    }
    let samples = Selection { format: FrameFormat::Samples, ..selection };
    let measured = node.engine.select(&samples)?.measure(u32::MAX)?;
    assert_eq!(measured.samples, 89 + 5);
    assert_eq!(node.engine.select(&samples)?.next_frames(u32::MAX)?.len() as u64, measured.bytes);
    Ok(())
}

/// A chunk that does not decode cannot be converted to another encoding.
#[test]
fn a_chunk_that_does_not_decode_is_an_error() -> TestResult {
    let (node, mut sent) = (Node::new(), sent()?);
    let broken = &mut sent[0].1[0];
    broken.data = broken.data[..30].into();
    put_block(&node.blocks, &sent)?;
    let selection = Selection {
        matchers: Vec::new(),
        range: TimeRange::ALL,
        format: FrameFormat::StreamedChunks,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external: Labels::default(),
    };
    let ended = node.engine.select(&selection)?.next_frames(u32::MAX);
    assert!(matches!(&ended, Err(Error::Chunk { series, .. }) if series.contains("floats")));
    Ok(())
}

#[cfg(feature = "promql")]
#[test]
fn queries_get_start_times_if_they_ask() -> TestResult {
    use crate::query::StoreSource;
    use tidepool_promql::source::{Hints, Selection, Source};

    let (node, sent) = (Node::new(), sent()?);
    put_block(&node.blocks, &sent)?;
    let Node { engine, .. } = node;
    let source = StoreSource::new(move |range, first| engine.view(range, first));
    for start_times in [true, false] {
        let hints = Hints { start_times, ..Hints::default() };
        let selection = Selection { matchers: Vec::new(), start_ms: 30, end_ms: 600, hints };
        let mut all = source.select(&selection)?;
        let mut found = Vec::new();
        while all.next()?.is_some() {
            let mut samples = tidepool_promql::model::Samples::default();
            while all.read(&mut samples)? {}
            let floats = samples.floats.iter().map(|point| point.time_ms);
            let histograms = samples.histograms.iter().map(|point| point.time_ms);
            let starts = [&samples.float_starts[..], &samples.histogram_starts].concat();
            assert_eq!(starts.len(), if start_times { samples.len() } else { 0 });
            found.extend(floats.chain(histograms).zip(starts));
        }
        let floats = (3..=60).map(|i| (10 * i, 10 * i - 7));
        let histograms = [(30, 6)];
        let expected: Vec<(i64, i64)> = floats.chain(histograms).collect();
        assert_eq!(found, if start_times { expected } else { Vec::new() });
    }
    Ok(())
}
