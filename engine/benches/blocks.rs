//! Blocks in memory: four of 1000 series with 480 samples each, read as frames, read as samples,
//! searched for one series; and the first three merged into one.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::rc::Rc;
use tidepool_engine::block::{BlockBuilder, BlockMetaParams, BlockReader, SymbolCollector};
use tidepool_engine::chunk::{Chunk, encode};
use tidepool_engine::compact::{BlockMerge, Levels, plan, survey};
use tidepool_engine::model::{Labels, MatchOp, Matcher, MatcherSpec, TimeRange, Value};
use tidepool_engine::select::{
    BlockChunks, BlockSeries, Cursor, FoundChunk, FrameFormat, Merge, Selection, SeriesSource,
};
use tidepool_engine::storage::Blocks;
use tidepool_engine::storage::memory::MemoryBlocks;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const SERIES: usize = 1000;
const SAMPLES: i64 = 480;
const STEP_MS: i64 = 15_000;
const BLOCK_MS: i64 = SAMPLES * STEP_MS;
/// The newest block is left alone by merges.
const BLOCKS: i64 = MERGED + 1;
const MERGED: i64 = 3;
const BLOCK_SAMPLES: u64 = SERIES as u64 * SAMPLES as u64;

/// About ten labels, of which most are shared.
fn labels(number: usize) -> Labels {
    let (node, pod) = (format!("node-{:04}", number / 20), format!("pod-{number:08x}"));
    Labels::from_sorted([
        ("__name__", "container_cpu_usage_seconds_total"),
        ("cluster", "prod-eu-central-1"),
        ("container", "api"),
        ("environment", "prod"),
        ("instance", &node),
        ("job", "monitoring/kubelet"),
        ("namespace", "checkout-shop"),
        ("node", &node),
        ("pod", &pod),
        ("service", "kubelet"),
    ])
}

/// Counters; each tenth has fractions.
fn chunks(number: usize, start_ms: i64) -> Vec<Chunk> {
    let scale = if number.is_multiple_of(10) { 0.37 } else { 1.0 };
    let value = |i: i64| Value::Float((number as i64 * 1000 + i * 7 + i % 3) as f64 * scale);
    encode((0..SAMPLES).map(|i| (start_ms + i * STEP_MS, value(start_ms / STEP_MS + i))))
}

fn blocks() -> Outcome<MemoryBlocks> {
    let blocks = MemoryBlocks::default();
    for block in 0..BLOCKS {
        let min_time_ms = block * BLOCK_MS;
        let mut symbols = SymbolCollector::default();
        (0..SERIES).for_each(|number| symbols.add(&labels(number)));
        let mut builder = BlockBuilder::new(blocks.create(min_time_ms)?, symbols)?;
        for number in 0..SERIES {
            builder.add_series(&labels(number), &chunks(number, min_time_ms))?;
        }
        let max_time_ms = min_time_ms + BLOCK_MS;
        let params = BlockMetaParams { min_time_ms, max_time_ms, level: 1, ..Default::default() };
        builder.finish(params)?;
    }
    Ok(blocks)
}

/// Reads what a name and value select; returns the bytes of the answer.
fn read(blocks: &MemoryBlocks, format: FrameFormat, (name, value): (&str, &str)) -> Outcome<usize> {
    let spec = MatcherSpec { name: name.into(), op: MatchOp::Equal, value: value.into() };
    let matchers = [Matcher::new(&spec)?];
    let mut sources: Vec<Box<dyn SeriesSource<FoundChunk>>> = Vec::new();
    for id in blocks.list()?.iter().rev() {
        let block = Rc::new(BlockReader::open(blocks, id)?);
        let series = BlockSeries::select(block, &matchers, TimeRange::ALL)?;
        sources.push(Box::new(BlockChunks(series)));
    }
    let selection = Selection {
        matchers: vec![spec],
        range: TimeRange::ALL,
        format,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external: Labels::default(),
    };
    let mut cursor = Cursor::new(Box::new(Merge::new(sources)?), &selection);
    let mut bytes = 0;
    loop {
        match cursor.next_frames(256 * 1024)?.len() {
            0 if bytes == 0 => return Err("nothing was selected".into()),
            0 => return Ok(bytes),
            more => bytes += more,
        }
    }
}

fn merge(blocks: MemoryBlocks) -> Outcome<()> {
    let metas = survey(&blocks)?.metas;
    let levels = Levels::from_ranges([BLOCK_MS, MERGED * BLOCK_MS]);
    let plan = plan(&metas, &levels, |_| true).ok_or("nothing is due")?;
    let mut merge = BlockMerge::new(Rc::new(blocks), plan, 7)?;
    while !merge.step(0)?.done {}
    Ok(())
}

/// Figures of what failed would say nothing.
fn sound<T>(outcome: Outcome<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("a benchmark failed: {error}"))
}

fn of_blocks(criterion: &mut Criterion) {
    let blocks = sound(blocks());
    let all = ("job", "monitoring/kubelet");
    let one = ("pod", "pod-000000ff");
    let mut group = criterion.benchmark_group("blocks of 1000 series");
    group.sample_size(20);
    group.throughput(Throughput::Elements(BLOCK_SAMPLES * BLOCKS as u64));
    group.bench_function("read as frames", |bencher| {
        bencher.iter(|| sound(read(black_box(&blocks), FrameFormat::StreamedChunks, all)));
    });
    group.bench_function("read as samples", |bencher| {
        bencher.iter(|| sound(read(black_box(&blocks), FrameFormat::Samples, all)));
    });
    group.throughput(Throughput::Elements(BLOCK_SAMPLES * MERGED as u64));
    group.bench_function("merge", |bencher| {
        // A merge deletes its parents.
        let parents = || sound(self::blocks());
        bencher.iter_batched(parents, |parents| sound(merge(parents)), BatchSize::PerIteration);
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("find one series", |bencher| {
        bencher.iter(|| sound(read(black_box(&blocks), FrameFormat::StreamedChunks, one)));
    });
    group.finish();
}

criterion_group!(benches, of_blocks);
criterion_main!(benches);
