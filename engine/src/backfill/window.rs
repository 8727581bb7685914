//! Samples of one window, which is the time range of one block.

use crate::block::{BlockBuilder, BlockError, BlockMeta, BlockMetaParams, SymbolCollector};
use crate::chunk::{Chunk, ChunkError, SAMPLES_PER_CHUNK, XorAppender, XorIter, encode};
use crate::model::{Labels, Sample, TimeRange, Value};
use crate::storage::Blocks;
use rustc_hash::FxHashMap;
use tidepool_model::sort;

/// Memory of a series besides its samples, in bytes.
const SERIES_BYTES: usize = 256;

/// Memory of a finished chunk besides its data, in bytes.
const CHUNK_BYTES: usize = 64;

#[derive(Default)]
pub struct Window {
    series: FxHashMap<u32, Samples>,
    bytes: usize,
}

/// Samples of one series: in-order samples are encoded at once, others when the block is written.
#[derive(Default)]
struct Samples {
    full: Vec<Chunk>,
    open: Option<XorAppender>,
    /// Newest sample, with the last value that the input has for its time.
    newest: Option<Sample>,
    /// Samples that are not newer, in the order of the input.
    out_of_order: Vec<Sample>,
}

impl Window {
    /// Approximate memory of the samples in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn add(&mut self, series: u32, sample: Sample) -> Result<(), ChunkError> {
        let bytes = &mut self.bytes;
        let samples = self.series.entry(series).or_insert_with(|| {
            *bytes += SERIES_BYTES;
            Samples::default()
        });
        if let Some(newest) = &mut samples.newest
            && sample.timestamp_ms <= newest.timestamp_ms
        {
            // A repeated sample changes nothing and needs no memory.
            if *newest != sample {
                *bytes += size_of::<Sample>();
                samples.out_of_order.push(sample);
            }
            if newest.timestamp_ms == sample.timestamp_ms {
                *newest = sample;
            }
            return Ok(());
        }
        samples.newest = Some(sample);
        let open = samples.open.get_or_insert_with(XorAppender::new);
        let before = open.data().len();
        open.append(sample.timestamp_ms, sample.value);
        *bytes += open.data().len() - before;
        if usize::from(open.count()) >= SAMPLES_PER_CHUNK {
            *bytes += CHUNK_BYTES;
            samples.full.extend(open.to_chunk());
            samples.open = None;
        }
        Ok(())
    }

    pub fn write(
        self,
        labels: &[Labels],
        blocks: &dyn Blocks,
        now_ms: i64,
        hash_seed: u64,
    ) -> Result<BlockMeta, BlockError> {
        let mut series: Vec<(&Labels, Samples)> = self
            .series
            .into_iter()
            .filter_map(|(number, samples)| Some((labels.get(number as usize)?, samples)))
            .collect();
        sort::sort_by(&mut series, |a, b| a.0.cmp(b.0));
        let mut symbols = SymbolCollector::new(hash_seed);
        series.iter().for_each(|(labels, _)| symbols.add(labels));
        let mut builder = BlockBuilder::new(blocks.create(now_ms)?, symbols)?;
        let mut range = TimeRange { start_ms: i64::MAX, end_ms: i64::MIN };
        for (labels, samples) in series {
            let bad = |source| BlockError::BadChunk { labels: labels.to_string(), source };
            let chunks = samples.into_chunks().map_err(bad)?;
            for chunk in &chunks {
                range.start_ms = range.start_ms.min(chunk.min_time_ms);
                range.end_ms = range.end_ms.max(chunk.max_time_ms);
            }
            builder.add_series(labels, &chunks)?;
        }
        // The range ends with the last sample, because a head takes newer samples for not yet cut.
        builder.finish(BlockMetaParams {
            min_time_ms: range.start_ms,
            max_time_ms: range.end_ms.saturating_add(1),
            level: 1,
            ..BlockMetaParams::default()
        })
    }
}

impl Samples {
    /// Returns all samples in time order as chunks; of several at one time, only the input's last.
    fn into_chunks(self) -> Result<Vec<Chunk>, ChunkError> {
        let Samples { mut full, open, out_of_order, .. } = self;
        full.extend(open.and_then(|open| open.to_chunk()));
        if out_of_order.is_empty() {
            return Ok(full);
        }
        let mut all = Vec::new();
        for chunk in &full {
            for sample in XorIter::new(&chunk.data)? {
                all.push(sample?);
            }
        }
        all.extend(out_of_order);
        // The sort is stable, so samples of one time stay in the order of the input.
        sort::sort_by_key(&mut all, |sample| sample.timestamp_ms);
        let mut kept: Vec<Sample> = Vec::with_capacity(all.len());
        for sample in all {
            match kept.last_mut() {
                Some(last) if last.timestamp_ms == sample.timestamp_ms => *last = sample,
                _ => kept.push(sample),
            }
        }
        let value = |sample: Sample| (sample.timestamp_ms, Value::Float(sample.value));
        Ok(encode(kept.into_iter().map(value)))
    }
}
