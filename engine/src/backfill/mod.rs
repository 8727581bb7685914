//! Blocks made of samples of any age, in any order: an import.
//!
//! ```text
//! pass 1  [w0][w1][w2]✗✗✗        samples are kept by window; if memory is short, the newest
//! pass 2              [w3][w4]✗   windows are dropped, and the input is read again for them
//! pass 3                      [w5]
//! ```
//!
//! A window is the time range of one block, aligned as a head's blocks are. A window too large for
//! the memory becomes several blocks, which overlap in time until compaction merges them. Of
//! several samples of one series at one time, the last is kept, even if they are in several blocks,
//! because each block is newer than the block before.

mod window;

#[cfg(test)]
mod tests;

use crate::block::BlockError;
use crate::codec::{bytes_equal, hash_bytes};
use crate::error::{Error, Result};
use crate::model::{Labels, Sample};
use crate::storage::Blocks;
use hashbrown::HashTable;
use std::collections::BTreeMap;
use std::rc::Rc;
use window::Window;

/// Memory of the series table for each series, besides its labels, in bytes.
const SERIES_BYTES: usize = 48;

/// Settings of an import: block duration and limits.
#[derive(Clone, Copy, Debug)]
pub struct BackfillOptions {
    /// Time range of one block in milliseconds.
    pub block_duration_ms: i64,
    /// Approximate limit of the memory for samples and labels, in bytes.
    pub bytes_max: usize,
    /// Seed of the hashes of labels.
    pub hash_seed: u64,
}

/// A block that an import has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenBlock {
    /// ULID of the new block.
    pub ulid: String,
    /// Number of samples in the block.
    pub samples: u64,
}

/// Result of appending rows to an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppendStep {
    /// The block that was written because memory was short, if any.
    pub block: Option<WrittenBlock>,
    /// Whether all series numbers are invalid from now on.
    pub series_dropped: bool,
}

/// The result of a step towards the end of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassStep {
    /// The block that was written, if a window was left.
    pub block: Option<WrittenBlock>,
    /// Whether all gathered samples are written.
    pub done: bool,
    /// Once done: whether another pass over the input is needed.
    pub again: bool,
}

/// An import in progress, over one or more passes.
pub struct Backfill {
    blocks: Rc<dyn Blocks>,
    options: BackfillOptions,
    series: Vec<Labels>,
    by_hash: HashTable<u32>,
    series_bytes: usize,
    /// Windows by the start of their time range.
    windows: BTreeMap<i64, Window>,
    /// Earlier passes have written all samples before this time.
    from_ms: i64,
    /// Start of the windows that this pass dropped; `None` if it dropped none.
    until_ms: Option<i64>,
    /// Time in the last block's ULID; each block gets a later time, so that it counts as newer.
    last_block_ms: i64,
}

impl Backfill {
    /// Begins the first pass; a block duration below 1 ms is an error.
    pub fn new(blocks: Rc<dyn Blocks>, options: BackfillOptions) -> Result<Backfill> {
        if options.block_duration_ms < 1 {
            return Err(Error::Invalid("the block duration must be positive".into()));
        }
        Ok(Backfill {
            blocks,
            options,
            series: Vec::new(),
            by_hash: HashTable::new(),
            series_bytes: 0,
            windows: BTreeMap::new(),
            from_ms: i64::MIN,
            until_ms: None,
            last_block_ms: i64::MIN,
        })
    }

    /// Returns the number of a series; the first call assigns it.
    pub fn series(&mut self, labels: &Labels) -> u32 {
        let Backfill { series, by_hash, options, .. } = self;
        let seed = options.hash_seed;
        let hash = hash_bytes(seed, labels.packed());
        let is_it = |number: &u32| bytes_equal(series[*number as usize].packed(), labels.packed());
        if let Some(number) = by_hash.find(hash, is_it) {
            return *number;
        }
        // Cannot overflow: 2^32 series need far more memory than an import may take.
        let number = series.len() as u32;
        series.push(labels.clone());
        self.series_bytes += labels.packed().len() + SERIES_BYTES;
        let hash_of = |number: &u32| hash_bytes(seed, series[*number as usize].packed());
        by_hash.insert_unique(hash, number, hash_of);
        number
    }

    /// Appends samples, or none if a series is unknown. Skips samples that other passes write.
    pub fn append(
        &mut self,
        rows: impl Iterator<Item = (u32, Sample)> + Clone,
        now_ms: i64,
    ) -> Result<AppendStep> {
        // Checked before the first row is taken, so that a refused call leaves nothing behind.
        let is_unknown = |(series, _): &(u32, Sample)| *series as usize >= self.series.len();
        if let Some((series, _)) = rows.clone().find(is_unknown) {
            return Err(Error::Invalid(format!("series {series} is unknown or was dropped")));
        }
        for (series, sample) in rows {
            let time_ms = sample.timestamp_ms;
            if time_ms < self.from_ms || self.until_ms.is_some_and(|until_ms| time_ms >= until_ms) {
                continue;
            }
            let start_ms =
                time_ms.saturating_sub(time_ms.rem_euclid(self.options.block_duration_ms));
            let window = self.windows.entry(start_ms).or_default();
            window.add(series, sample).map_err(|source| Error::Chunk {
                series: self.series[series as usize].to_string(),
                source,
            })?;
        }
        let mut step = AppendStep::default();
        while self.bytes() > self.options.bytes_max {
            if self.windows.len() > 1 {
                // The next pass reads the samples of this window again.
                self.until_ms = self.windows.pop_last().map(|(start_ms, _)| start_ms);
                continue;
            }
            // Labels count towards the limit too, so they are freed with the last window.
            step.block = self.write_first(now_ms)?;
            self.drop_series();
            step.series_dropped = true;
        }
        Ok(step)
    }

    /// Writes the next block of this pass. Call until the result is `done`.
    pub fn finish_pass(&mut self, now_ms: i64) -> Result<PassStep> {
        let block = self.write_first(now_ms)?;
        if !self.windows.is_empty() {
            return Ok(PassStep { block, ..PassStep::default() });
        }
        let again = self.until_ms.is_some();
        if let Some(until_ms) = self.until_ms.take() {
            self.from_ms = until_ms;
        }
        self.drop_series();
        Ok(PassStep { block, done: true, again })
    }

    fn bytes(&self) -> usize {
        self.series_bytes + self.windows.values().map(Window::bytes).sum::<usize>()
    }

    fn drop_series(&mut self) {
        self.series = Vec::new();
        self.by_hash = HashTable::new();
        self.series_bytes = 0;
    }

    fn write_first(
        &mut self,
        now_ms: i64,
    ) -> std::result::Result<Option<WrittenBlock>, BlockError> {
        let Some((_, window)) = self.windows.pop_first() else { return Ok(None) };
        // Blocks must be in the order of the input, even within one millisecond: newer blocks win.
        self.last_block_ms = now_ms.max(self.last_block_ms.saturating_add(1));
        let seed = self.options.hash_seed;
        let meta = window.write(&self.series, &*self.blocks, self.last_block_ms, seed)?;
        Ok(Some(WrittenBlock { ulid: meta.ulid, samples: meta.stats.num_samples }))
    }
}
