mod checked;
mod damage;
mod far_offsets;
mod files;
pub(crate) mod select;
mod summary;
pub(crate) mod version_1;
mod worked_bytes;

use super::*;
use crate::chunk::{Chunk, SAMPLES_PER_CHUNK, XorAppender, samples};
use crate::model::{Labels, Sample};
use crate::storage::memory::MemoryBlocks;
use crate::storage::{BlockFile, BlockWriter, Blocks, StorageResult};
use std::rc::Rc;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// In-memory blocks whose files are wrapped by `through`.
struct ReadThrough<F> {
    inner: MemoryBlocks,
    through: F,
}

impl<F: Fn(Rc<dyn BlockFile>, &str) -> Rc<dyn BlockFile>> Blocks for ReadThrough<F> {
    fn list(&self) -> StorageResult<Vec<String>> {
        self.inner.list()
    }

    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        Ok((self.through)(self.inner.open(block, file)?, block))
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        self.inner.create(now_ms)
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        self.inner.delete(block)
    }

    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()> {
        self.inner.replace_tombstones(block, tombstones, meta)
    }
}

/// Files of a block with one chunk file.
const FILES: [&str; 4] = ["chunks/000001", "index", "meta.json", "tombstones"];

fn files_of(blocks: &dyn Blocks, block: &str) -> StorageResult<Vec<(&'static str, Vec<u8>)>> {
    FILES.into_iter().map(|name| Ok((name, content(blocks, block, name)?))).collect()
}

/// Writes a new block of these files.
fn block_of_files(files: &[(&str, &[u8])]) -> StorageResult<(MemoryBlocks, String)> {
    let blocks = MemoryBlocks::default();
    let mut writer = blocks.create(1_700_000_000_000)?;
    for (name, bytes) in files {
        writer.write_at(name, 0, bytes)?;
    }
    let id = writer.id().to_owned();
    writer.commit()?;
    Ok((blocks, id))
}

fn content(blocks: &dyn Blocks, block: &str, file: &str) -> StorageResult<Vec<u8>> {
    let file = blocks.open(block, file)?;
    file.read_at(0, file.size() as u32)
}

fn sample(timestamp_ms: i64, value: f64) -> Sample {
    Sample { timestamp_ms, value }
}

fn chunks_of(samples: &[Sample]) -> Vec<Chunk> {
    let chunk = |samples: &[Sample]| {
        let mut appender = XorAppender::new();
        samples.iter().for_each(|s| appender.append(s.timestamp_ms, s.value));
        appender.to_chunk()
    };
    samples.chunks(SAMPLES_PER_CHUNK).filter_map(chunk).collect()
}

pub(crate) type SeriesSamples = (Labels, Vec<Sample>);

pub(crate) fn write(
    blocks: &MemoryBlocks,
    series: &[SeriesSamples],
) -> Result<BlockMeta, BlockError> {
    write_with(blocks, series, |builder| builder)
}

fn write_with(
    blocks: &MemoryBlocks,
    series: &[SeriesSamples],
    set_up: impl FnOnce(BlockBuilder) -> BlockBuilder,
) -> Result<BlockMeta, BlockError> {
    let mut symbols = SymbolCollector::new(7);
    series.iter().for_each(|(labels, _)| symbols.add(labels));
    let mut builder = set_up(BlockBuilder::new(blocks.create(1_700_000_000_000)?, symbols)?);
    for (labels, samples) in series {
        builder.add_series(labels, &chunks_of(samples))?;
    }
    let times = || series.iter().flat_map(|(_, samples)| samples).map(|s| s.timestamp_ms);
    builder.finish(BlockMetaParams {
        min_time_ms: times().min().unwrap_or(0),
        max_time_ms: times().max().unwrap_or(0) + 1,
        level: 1,
        ..BlockMetaParams::default()
    })
}

fn read_all(block: &BlockReader) -> TestResult<Vec<SeriesSamples>> {
    let mut all = Vec::new();
    for series in block.select(&[])? {
        let (labels, metas) = block.series(series)?;
        let mut read = Vec::new();
        for meta in &metas {
            let chunk = block.chunk(meta)?;
            let from = read.len();
            for sample in samples(&chunk)? {
                read.push(sample?);
            }
            let ends = (read[from].timestamp_ms, read[read.len() - 1].timestamp_ms);
            assert_eq!(ends, (meta.min_time_ms, meta.max_time_ms));
        }
        all.push((labels, read));
    }
    Ok(all)
}

/// Reads every `step`th series, from the last to the first, and compares the chunks.
fn check_backwards(block: &BlockReader, series: &[SeriesSamples], step: usize) -> TestResult {
    let all = block.select(&[])?.into_iter().zip(series);
    for (series_ref, (_, expected)) in all.rev().step_by(step) {
        let (_, metas) = block.series(series_ref)?;
        let chunks = metas.iter().map(|meta| block.chunk(meta)).collect::<Result<Vec<_>, _>>()?;
        assert_eq!(chunks, chunks_of(expected));
    }
    Ok(())
}

/// Many series: enough for several groups of symbols and values, and several chunk files.
fn many_series(count: u32, samples: i64) -> TestResult<Vec<SeriesSamples>> {
    let mut all = Vec::new();
    for i in 0..count {
        let (path, instance) = (format!("/path/{}", i % 7), format!("node-{}:9100", i / 3));
        let code = format!("{}", 200 + i % 3);
        let labels = Labels::from_pairs([
            (crate::model::LABEL_NAME, ["http_requests_total", "up"][(i % 2) as usize]),
            ("path", if i % 2 == 0 { path.as_str() } else { "" }),
            ("code", code.as_str()),
            ("instance", instance.as_str()),
        ])?;
        let value = |j: i64| (i64::from(i) * j) as f64 / 4.0;
        all.push((
            labels,
            (0..samples).map(|j| sample(1_700_000_000_000 + j * 15_000, value(j))).collect(),
        ));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all.dedup_by(|a, b| a.0 == b.0);
    Ok(all)
}
