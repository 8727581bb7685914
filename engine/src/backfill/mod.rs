//! Blocks made of samples of any age, in any order: an import.
//!
//! ```text
//! pass 1  [w0][w1][w2]✗✗✗        samples gather by window; beyond the memory the newest windows
//! pass 2              [w3][w4]✗   are let go, and the input is read again for them
//! pass 3                      [w5]
//! ```
//!
//! A window is one block's time, aligned as a head's blocks are. A window too large for the memory
//! becomes several blocks, which overlap in time and are merged by compaction later. Of several
//! samples of one series and time the last counts, in one block as well as in several: each block
//! is newer than the one before.

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

/// Memory of the table of series for each series, besides its labels.
const SERIES_BYTES: usize = 48;

/// How an import is to be done.
#[derive(Clone, Copy, Debug)]
pub struct BackfillOptions {
    /// Span of one block in milliseconds.
    pub block_duration_ms: i64,
    /// Memory that samples and labels may take, about.
    pub bytes_max: usize,
    /// Mixed into hashes of labels.
    pub hash_seed: u64,
}

/// A block that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenBlock {
    /// Its ULID.
    pub ulid: String,
    /// Samples in it.
    pub samples: u64,
}

/// What appending did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppendStep {
    /// The block that had to be written, if one had to.
    pub block: Option<WrittenBlock>,
    /// Whether all numbers of series are void from now on.
    pub series_dropped: bool,
}

/// The result of a step towards the end of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassStep {
    /// The block that was written, if there was one left.
    pub block: Option<WrittenBlock>,
    /// Whether all that the pass gathered is written.
    pub done: bool,
    /// Once done: whether the input must be given once more.
    pub again: bool,
}

/// An import on its way.
pub struct Backfill {
    blocks: Rc<dyn Blocks>,
    options: BackfillOptions,
    series: Vec<Labels>,
    by_hash: HashTable<u32>,
    series_bytes: usize,
    /// By start.
    windows: BTreeMap<i64, Window>,
    /// What earlier passes did not write.
    from_ms: i64,
    /// What this pass lets go begins here; `None` if it lets nothing go.
    until_ms: Option<i64>,
    /// Each block gets a later time than the one before, so that it counts as newer.
    last_block_ms: i64,
}

impl Backfill {
    /// Begins the first pass.
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

    /// The number of a series.
    pub fn series(&mut self, labels: &Labels) -> u32 {
        let Backfill { series, by_hash, options, .. } = self;
        let seed = options.hash_seed;
        let hash = hash_bytes(seed, labels.packed());
        let is_it = |number: &u32| bytes_equal(series[*number as usize].packed(), labels.packed());
        if let Some(number) = by_hash.find(hash, is_it) {
            return *number;
        }
        let number = series.len() as u32;
        series.push(labels.clone());
        self.series_bytes += labels.packed().len() + SERIES_BYTES;
        let hash_of = |number: &u32| hash_bytes(seed, series[*number as usize].packed());
        by_hash.insert_unique(hash, number, hash_of);
        number
    }

    /// Takes samples, or none if one is of a series that is not known. Those of other passes are
    /// passed over.
    pub fn append(
        &mut self,
        rows: impl Iterator<Item = (u32, Sample)> + Clone,
        now_ms: i64,
    ) -> Result<AppendStep> {
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
                self.until_ms = self.windows.pop_last().map(|(start_ms, _)| start_ms);
                continue;
            }
            step.block = self.write_first(now_ms)?;
            self.drop_series();
            step.series_dropped = true;
        }
        Ok(step)
    }

    /// Writes the next block of what was gathered. Call until it says `done`.
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
        self.last_block_ms = now_ms.max(self.last_block_ms.saturating_add(1));
        let seed = self.options.hash_seed;
        let meta = window.write(&self.series, &*self.blocks, self.last_block_ms, seed)?;
        Ok(Some(WrittenBlock { ulid: meta.ulid, samples: meta.stats.num_samples }))
    }
}
