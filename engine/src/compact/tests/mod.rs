mod crash;
mod deletion;
mod linked;
mod merge;
mod plan;
mod start_timestamps;

use super::*;
use crate::block::{
    BlockBuilder, BlockMeta, BlockMetaParams, BlockReader, SymbolCollector, Tombstones,
};
use crate::chunk::{Chunk, Encoding, SAMPLES_PER_CHUNK, XorAppender, samples};
use crate::model::{Labels, TimeRange};
use crate::storage::memory::MemoryBlocks;
use crate::storage::{BlockFile, BlockWriter, Blocks, StorageError, StorageResult};
use std::collections::BTreeMap;
use std::rc::Rc;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const NOW_MS: i64 = 1_700_000_000_000;

/// Samples by series name and time, values as bits.
type Model = BTreeMap<String, BTreeMap<i64, u64>>;

fn labels(name: &str) -> Labels {
    Labels::from_sorted([("__name__", "metric"), ("n", name)])
}

fn xor_chunks(samples: &BTreeMap<i64, u64>, samples_per_chunk: usize) -> Vec<Chunk> {
    let samples: Vec<_> = samples.iter().collect();
    let chunk = |samples: &[(&i64, &u64)]| {
        let mut appender = XorAppender::new();
        samples.iter().for_each(|(time, bits)| appender.append(**time, f64::from_bits(**bits)));
        appender.to_chunk()
    };
    samples.chunks(samples_per_chunk).filter_map(chunk).collect()
}

/// A chunk of an encoding that merges do not decode: `count` samples, then bytes.
fn histogram_chunk(min_time_ms: i64, max_time_ms: i64, count: u16, fill: u8) -> Chunk {
    let data = [&count.to_be_bytes()[..], &[fill; 20]].concat().into();
    Chunk { encoding: Encoding::Histogram, min_time_ms, max_time_ms, data }
}

fn write_chunks(
    blocks: &dyn Blocks,
    series: &[(Labels, Vec<Chunk>)],
    range: std::ops::Range<i64>,
) -> TestResult<BlockMeta> {
    let mut symbols = SymbolCollector::default();
    series.iter().for_each(|(labels, _)| symbols.add(labels));
    let mut builder = BlockBuilder::new(blocks.create(NOW_MS)?, symbols)?;
    for (labels, chunks) in series {
        builder.add_series(labels, chunks)?;
    }
    let (min_time_ms, max_time_ms) = (range.start, range.end);
    let params =
        BlockMetaParams { min_time_ms, max_time_ms, level: 1, ..BlockMetaParams::default() };
    Ok(builder.finish(params)?)
}

fn write(
    blocks: &dyn Blocks,
    model: &Model,
    samples_per_chunk: usize,
    range: std::ops::Range<i64>,
) -> TestResult<BlockMeta> {
    let series = |(name, samples): (&String, &BTreeMap<i64, u64>)| {
        (labels(name), xor_chunks(samples, samples_per_chunk))
    };
    write_chunks(blocks, &model.iter().map(series).collect::<Vec<_>>(), range)
}

/// Returns the content of a storage as a read sees it: the newest block's sample counts.
fn read(blocks: &dyn Blocks) -> TestResult<Model> {
    let mut metas = survey(blocks)?.metas;
    metas.sort_by_key(|meta| meta.newest_source().to_owned());
    let mut model = Model::new();
    for meta in &metas {
        let block = BlockReader::open(blocks, &meta.ulid)?;
        for series in block.select(&[])? {
            let (labels, chunks) = block.series(series)?;
            let deleted = block.deleted_ranges(series);
            for chunk in &chunks {
                let chunk = block.chunk(chunk)?;
                for sample in samples(&chunk)? {
                    let sample = sample?;
                    if !deleted.iter().any(|range| range.contains(sample.timestamp_ms)) {
                        let of_series = model.entry(labels.get("n").to_owned()).or_default();
                        of_series.insert(sample.timestamp_ms, sample.value.to_bits());
                    }
                }
            }
        }
    }
    Ok(model)
}

fn run(merge: &mut BlockMerge) -> Result<Option<BlockMeta>, MergeError> {
    let mut committed = None;
    for _ in 0..1000 {
        let progress = merge.step(NOW_MS)?;
        committed = committed.or(progress.committed);
        if progress.done {
            return Ok(committed);
        }
    }
    unreachable!("the merge does not end");
}

/// Plans a merge of all blocks of a storage, whatever the planner would choose.
fn plan_all(blocks: &dyn Blocks) -> TestResult<Plan> {
    let metas = survey(blocks)?.metas;
    Ok(Plan::of(Reason::Level, &metas.iter().collect::<Vec<_>>()).ok_or("no block")?)
}
