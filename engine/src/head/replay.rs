//! Taking rows back from the log.
//!
//! Floats wait until a few of their series are there and are then appended in one go: that fetches
//! a series and its chunk from memory once for all of them. What else comes for a series comes
//! after its floats that wait.
//!
//! A log may hold far more than a head should. Then blocks are cut while it is read, but only up to
//! where nothing recent belongs, and what comes *behind* a cut all the same is kept as what comes
//! late is. Nothing is lost of a series without samples either: rows that follow name it by the
//! number that it has. The cut's blocks are none until the log was read to its end: whoever
//! commits them waits for that.

use super::cut::PlannedCut;
use super::series::{block_end, block_start};
use super::slab::Place;
use super::{Batch, Exemplar, Head, LookupError, Slot};
use crate::chunk::ChunkError;
use crate::model::{Sample, TimeRange, Value};
use rustc_hash::FxHashMap;

/// Floats of a series that wait, at most. Chunks are full after a multiple of it.
const WAITING_ROWS: usize = 8;

/// Series whose floats wait: those of a larger head would take too much memory, and come too
/// rarely for several to be there soon.
const WAITING_SERIES_MAX: usize = 128 * 1024;

/// A table of numbers may be so many times as long as there are series, beside a start.
const DENSE_PER_SERIES: u64 = 4;
const DENSE_MIN: u64 = 64 * 1024;

/// Marks a number without a series.
const NO_SLOT: u32 = u32::MAX;

/// Parts of the log that count as recent, as `replay` gives them.
const RECENT_PARTS: usize = 16;

/// What is known while the log is read.
#[derive(Default)]
pub(super) struct Replay {
    refs: Refs,
    /// Floats that wait, by the number of their slot, and how many of them count.
    waiting: Vec<[(i64, f64); WAITING_ROWS]>,
    waiting_rows: Vec<u8>,
    /// Times of the oldest rows of the last parts, and of the one being read.
    recent: [Option<i64>; RECENT_PARTS],
    part: usize,
    /// Samples that were new.
    samples: u64,
    /// Whether any came behind a cut.
    has_behind: bool,
}

/// Slots of series by their numbers in the log: a table where these lie close together, as they do
/// in all but the oldest logs, a map elsewhere.
#[derive(Default)]
struct Refs {
    first: u64,
    dense: Vec<u32>,
    sparse: FxHashMap<u64, u32>,
    count: u64,
}

/// Times of rows, and whether all were understood.
#[derive(Clone, Copy, Debug)]
pub struct ReplayedRows {
    /// The newest; the smallest time without any.
    pub newest_ms: i64,
    /// Whether the iterator came to its end without an error.
    pub understood: bool,
}

impl Refs {
    fn insert(&mut self, series_ref: u64, slot: u32) {
        if self.count == 0 {
            self.first = series_ref;
        }
        self.count += 1;
        let at = series_ref.wrapping_sub(self.first);
        if at < self.dense.len() as u64 || at < DENSE_MIN + DENSE_PER_SERIES * self.count {
            let at = at as usize;
            if at >= self.dense.len() {
                self.dense.resize(at + 1, NO_SLOT);
            }
            self.dense[at] = slot;
        } else {
            self.sparse.insert(series_ref, slot);
        }
    }

    #[inline]
    fn get(&self, series_ref: u64) -> Option<u32> {
        let at = usize::try_from(series_ref.wrapping_sub(self.first)).ok();
        match at.and_then(|at| self.dense.get(at)) {
            Some(slot) if *slot != NO_SLOT => Some(*slot),
            _ => self.sparse.get(&series_ref).copied(),
        }
    }
}

impl Replay {
    /// Adds a float to those that wait; gives those that are as many as may wait.
    #[inline]
    fn push(&mut self, slot: u32, row: (i64, f64)) -> Option<[(i64, f64); WAITING_ROWS]> {
        let at = slot as usize;
        let (rows, count) = (self.waiting.get_mut(at)?, self.waiting_rows.get_mut(at)?);
        rows[usize::from(*count) % WAITING_ROWS] = row;
        *count += 1;
        if usize::from(*count) < WAITING_ROWS {
            return None;
        }
        *count = 0;
        Some(*rows)
    }

    #[inline]
    fn waits(&self, slot: u32) -> bool {
        (slot as usize) < self.waiting.len()
    }

    fn see(&mut self, oldest_ms: i64) {
        let recent = &mut self.recent[self.part % RECENT_PARTS];
        *recent = Some(recent.map_or(oldest_ms, |known| known.min(oldest_ms)));
    }
}

impl Head {
    /// Takes a series back from the log, under the number it has there.
    pub fn replay_series(
        &mut self,
        batch: &mut Batch,
        series_ref: u64,
        labels: &[(&[u8], &[u8])],
    ) -> Result<(), LookupError> {
        // What the log holds has passed the limits of its time.
        self.is_replaying = true;
        let found = self.series_by_pairs(batch, labels);
        self.is_replaying = false;
        let slot = found?;
        batch.created.clear();
        // Of several numbers for one series the last is the one that newer records use.
        self.at_mut(slot).series_ref = series_ref;
        self.retire_ref(series_ref);
        let replay = self.replay.get_or_insert_default();
        replay.refs.insert(series_ref, slot.number());
        let places = (slot.number() as usize + 1).min(WAITING_SERIES_MAX);
        if replay.waiting.len() < places {
            replay.waiting.resize(places, [(0, 0.0); WAITING_ROWS]);
            replay.waiting_rows.resize(places, 0);
        }
        Ok(())
    }

    /// The slot of a series that [`Head::replay_series`] took.
    #[inline]
    pub fn replayed(&self, series_ref: u64) -> Option<Slot> {
        self.replay.as_ref()?.refs.get(series_ref).map(Slot::of)
    }

    /// Takes floats back from the log of ordered samples, as (series reference, sample).
    pub fn replay_floats<E>(
        &mut self,
        rows: impl Iterator<Item = Result<(u64, Sample), E>>,
    ) -> ReplayedRows {
        let mut replay = self.replay.take().unwrap_or_default();
        let (mut oldest_ms, mut newest_ms, mut understood) = (i64::MAX, i64::MIN, true);
        for row in rows {
            let Ok((series_ref, Sample { timestamp_ms, value })) = row else {
                understood = false;
                break;
            };
            oldest_ms = oldest_ms.min(timestamp_ms);
            newest_ms = newest_ms.max(timestamp_ms);
            let Some(slot) = replay.refs.get(series_ref) else {
                self.retire_ref(series_ref);
                continue;
            };
            let row = (timestamp_ms, value);
            if let Some(full) = replay.push(slot, row) {
                self.append_run(&mut replay, Slot::of(slot), &full);
            } else if !replay.waits(slot) {
                self.append_run(&mut replay, Slot::of(slot), &[row]);
            }
        }
        if oldest_ms <= newest_ms {
            replay.see(oldest_ms);
        }
        self.replay = Some(replay);
        ReplayedRows { newest_ms, understood }
    }

    /// Appends floats of a series that come in the log's order.
    fn append_run(&mut self, replay: &mut Replay, slot: Slot, rows: &[(i64, f64)]) {
        let mut rest = rows;
        while let [(first_ms, value), after @ ..] = rest {
            let is_ordered = *first_ms >= self.min_valid_ms;
            let series = self.series.get_mut(slot).filter(|_| is_ordered);
            let taken = series.map_or(0, |series| series.append_floats(rest));
            if taken == 0 {
                self.append_replayed(replay, slot, *first_ms, &Value::Float(*value));
                rest = after;
                continue;
            }
            self.min_time_ms = self.min_time_ms.min(*first_ms);
            self.max_time_ms = self.max_time_ms.max(rest[taken - 1].0);
            replay.samples += taken as u64;
            rest = &rest[taken..];
        }
    }

    /// Takes a value back from the log of ordered samples. What is not newer than all of its
    /// series was logged twice, or is in a block.
    fn append_replayed(
        &mut self,
        replay: &mut Replay,
        slot: Slot,
        timestamp_ms: i64,
        value: &Value,
    ) {
        let newest_ms = self.at(slot).newest_ms();
        let is_new = timestamp_ms >= self.stored_until_ms
            && timestamp_ms != i64::MIN
            && newest_ms.is_none_or(|newest_ms| timestamp_ms > newest_ms);
        if !is_new {
            return;
        }
        replay.samples += 1;
        if timestamp_ms >= self.min_valid_ms {
            self.append(slot, timestamp_ms, value);
        } else {
            replay.has_behind = true;
            self.append_late(slot, timestamp_ms, value.clone());
        }
    }

    /// Takes a value of any kind back from the log of ordered samples.
    pub fn replay_ordered(&mut self, slot: Slot, timestamp_ms: i64, value: &Value) {
        let mut replay = self.replay.take().unwrap_or_default();
        self.settle_rows(&mut replay, slot);
        self.append_replayed(&mut replay, slot, timestamp_ms, value);
        replay.see(timestamp_ms);
        self.replay = Some(replay);
    }

    /// Takes a value back from the log of late samples; of the same time the last one counts.
    pub fn replay_late(&mut self, slot: Slot, timestamp_ms: i64, value: Value) {
        self.append_late(slot, timestamp_ms, value);
        if let Some(replay) = &mut self.replay {
            replay.samples += 1;
        }
    }

    /// Takes an exemplar back from the log.
    pub fn replay_exemplar(&mut self, slot: Slot, exemplar: Exemplar) {
        let series = self.packed_labels(slot);
        self.exemplars.add(&series, exemplar);
    }

    /// Appends what waits of one series.
    fn settle_rows(&mut self, replay: &mut Replay, slot: Slot) {
        let at = slot.number() as usize;
        let Some(count) = replay.waiting_rows.get_mut(at) else { return };
        let count = usize::from(std::mem::take(count));
        if count > 0 {
            let rows = replay.waiting[at];
            self.append_run(replay, slot, &rows[..count]);
        }
    }

    /// Appends all that waits: whoever looks at samples while the log is read calls this before.
    pub fn settle_replay(&mut self) {
        let Some(mut replay) = self.replay.take() else { return };
        for at in 0..replay.waiting.len() {
            self.settle_rows(&mut replay, Slot::of(at as u32));
        }
        self.replay = Some(replay);
    }

    /// Ends a part of the log.
    pub fn end_replayed_part(&mut self) {
        let Some(replay) = &mut self.replay else { return };
        replay.part += 1;
        replay.recent[replay.part % RECENT_PARTS] = None;
    }

    /// How many samples of the log were new so far, but for those that wait.
    pub fn replayed_samples(&self) -> u64 {
        self.replay.as_ref().map_or(0, |replay| replay.samples)
    }

    /// The range that a block should hold if the head spans more than it should and the log is not
    /// read to its end yet: as [`Head::plan_cut`], but only up to where no recent row belongs. To
    /// save a merge it may reach as far as a block of the next level.
    pub(super) fn plan_replayed_cut(&mut self) -> Option<TimeRange> {
        let block = self.options.block_duration_ms;
        let span_ms = self.max_time_ms.checked_sub(self.min_time_ms).filter(|ms| *ms >= 0)?;
        if span_ms <= block + block / 2 {
            return None;
        }
        self.settle_replay();
        let recent = self.replay.as_ref()?.recent.iter().flatten().min();
        let quiet_until_ms = self.max_time_ms.saturating_sub(block / 2).min(*recent?);
        let next_level_end_ms = block_end(self.min_time_ms, self.replay_cut_ms.max(block));
        let end_ms = block_start(quiet_until_ms, block).min(next_level_end_ms);
        let start_ms = block_start(self.min_time_ms, block);
        if end_ms <= start_ms {
            return None;
        }
        let range = TimeRange { start_ms, end_ms: end_ms - 1 };
        self.min_valid_ms = self.min_valid_ms.max(end_ms);
        self.generation += 1;
        self.planned = Some(PlannedCut { range, generation: self.generation });
        Some(range)
    }

    /// Lets blocks that are cut while the log is read be as long as a merged one.
    pub fn set_replay_cut_ms(&mut self, span_ms: i64) {
        self.replay_cut_ms = span_ms;
    }

    /// Whether samples came behind a cut, so that no block has them and no log as late ones.
    pub fn has_behind(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.has_behind)
    }

    /// Ends the replay: forgets what only the log used, and series without samples.
    pub fn end_replay(&mut self) -> Result<(), ChunkError> {
        self.settle_replay();
        self.replay = None;
        // Late samples may be older than what blocks hold, and stay. So does a planned cut's range:
        // it has no block yet.
        let planned_ms = self.planned.map_or(i64::MAX, |planned| planned.range.start_ms);
        self.forget_before(self.min_valid_ms.min(planned_ms), 0)?;
        if self.times_are_stale {
            self.find_times();
        }
        Ok(())
    }
}
