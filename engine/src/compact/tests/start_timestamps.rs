//! Merges of blocks with start timestamps, as a Prometheus that keeps these writes them.

use super::*;
use crate::chunk::start_tests::xor2_chunk;
use crate::chunk::{is_plain_floats, started_values};
use crate::model::{MatchOp, Matcher, MatcherSpec, Value};
use proptest::prelude::*;

/// Series by name: samples by time, start timestamps and values as bits.
type Started = BTreeMap<String, BTreeMap<i64, (i64, u64)>>;

fn started_chunks(samples: &BTreeMap<i64, (i64, u64)>, samples_per_chunk: usize) -> Vec<Chunk> {
    let row = |(time_ms, (start_ms, bits)): (&i64, &(i64, u64))| {
        (*time_ms, *start_ms, f64::from_bits(*bits))
    };
    let all: Vec<_> = samples.iter().map(row).collect();
    all.chunks(samples_per_chunk).map(xor2_chunk).collect()
}

fn write_started(
    blocks: &dyn Blocks,
    model: &Started,
    samples_per_chunk: usize,
    range: std::ops::Range<i64>,
) -> TestResult<BlockMeta> {
    let series = |(name, samples): (&String, &BTreeMap<i64, (i64, u64)>)| {
        (labels(name), started_chunks(samples, samples_per_chunk))
    };
    write_chunks(blocks, &model.iter().map(series).collect::<Vec<_>>(), range)
}

fn read_started(blocks: &dyn Blocks) -> TestResult<Started> {
    let mut model = Started::new();
    for ulid in blocks.list()? {
        let block = BlockReader::open(blocks, &ulid)?;
        for series in block.select(&[])? {
            let (labels, chunks) = block.series(series)?;
            for meta in &chunks {
                let chunk = block.chunk(meta)?;
                for next in started_values(&chunk)? {
                    let next = next?;
                    let Value::Float(value) = next.value else { return Err("no float".into()) };
                    let sample = (next.start_ms, value.to_bits());
                    let of_series = model.entry(labels.get("n").to_owned()).or_default();
                    of_series.insert(next.timestamp_ms, sample);
                }
            }
        }
    }
    Ok(model)
}

fn fail(error: Box<dyn std::error::Error>) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

fn check(all: &[(Started, usize)], deleted: TimeRange) -> TestResult {
    let blocks = MemoryBlocks::default();
    let mut expected = Started::new();
    for (model, samples_per_chunk) in all {
        write_started(&blocks, model, *samples_per_chunk, 0..2000)?;
        for (name, samples) in model {
            expected.entry(name.clone()).or_default().extend(samples);
        }
    }
    let spec = MatcherSpec { name: "n".to_owned(), op: MatchOp::Equal, value: "a".to_owned() };
    delete_from_blocks(&blocks, &[vec![Matcher::new(&spec)?]], deleted)?;
    if let Some(samples) = expected.get_mut("a") {
        samples.retain(|time_ms, _| !deleted.contains(*time_ms));
    }
    expected.retain(|_, samples| !samples.is_empty());
    run(&mut BlockMerge::new(Rc::new(blocks.clone()), plan_all(&blocks)?, 7)?)?;
    assert_eq!(read_started(&blocks)?, expected);
    assert!(blocks.list()?.len() <= 1);
    Ok(())
}

fn any_started() -> impl Strategy<Value = Vec<(Started, usize)>> {
    let start = prop_oneof![3 => Just(0i64), 3 => Just(1_000), 1 => any::<i64>()];
    let samples = prop::collection::btree_map(0i64..2000, (start, any::<u64>()), 1..200);
    let model = prop::collection::btree_map("[a-c]", samples, 1..4);
    prop::collection::vec((model, 1usize..150), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Overlaps, duplicates and deletions force chunks to be decoded.
    #[test]
    fn start_timestamps_outlive_merges(
        all in any_started(),
        start_ms in 0i64..2000,
        len_ms in 0i64..500,
    ) {
        check(&all, TimeRange { start_ms, end_ms: start_ms + len_ms }).map_err(fail)?;
    }
}

/// Chunks with start timestamps are copied; others become XOR chunks, which every reader knows.
#[test]
fn only_chunks_without_start_timestamps_are_joined() -> TestResult {
    let blocks = MemoryBlocks::default();
    let samples = |from: i64, start_ms: i64| -> BTreeMap<i64, (i64, u64)> {
        (from..from + 100).map(|i| (i * 15_000, (start_ms, (i as f64).to_bits()))).collect()
    };
    let mut expected = Started::new();
    for from in [0, 100, 200] {
        let model: Started = [("with", 77), ("without", 0)]
            .map(|(n, start)| (n.to_owned(), samples(from, start)))
            .into();
        write_started(&blocks, &model, 50, from * 15_000..(from + 100) * 15_000)?;
        for (name, samples) in model {
            expected.entry(name).or_default().extend(samples);
        }
    }
    let child = run(&mut BlockMerge::new(Rc::new(blocks.clone()), plan_all(&blocks)?, 7)?)?;
    assert_eq!(child.map(|meta| meta.stats.num_float_samples), Some(600));
    assert_eq!(read_started(&blocks)?, expected);
    let block = BlockReader::open(&blocks, &blocks.list()?[0])?;
    let mut encodings = Vec::new();
    for series in block.select(&[])? {
        let (_, metas) = block.series(series)?;
        let chunks: Vec<Chunk> =
            metas.iter().map(|meta| block.chunk(meta)).collect::<Result<_, _>>()?;
        encodings.push((chunks.len(), chunks[0].encoding, is_plain_floats(&chunks[0])));
    }
    assert_eq!(encodings, [(6, Encoding::Xor2, false), (1, Encoding::Xor, true)]);
    Ok(())
}
