//! Restores rows from the log.
//!
//! Floats wait until several of the same series have been read and are then appended together, so
//! that the series and its chunk are fetched from memory once for all of them. Other rows of a
//! series are applied after its waiting floats.
//!
//! A log may have far more samples than a head should hold. Then blocks are cut while the log is
//! read; a cut ends before the times of rows read lately. Rows *behind* a cut, that is, read after
//! it but older than its end, are kept as out-of-order samples. Series without samples are kept,
//! because later rows refer to them by number. The caller commits the blocks at the end of the log.

use super::deletion::TimesScan;
use super::metadata::Metadata;
use super::slab::SlabIndex;
use super::waiting::{WaitingFloats, Waits};
use super::{Batch, Exemplar, Head, LookupError, Slot};
use crate::chunk::ChunkError;
use crate::model::{LABEL_NAME, Labels, RefTable, Sample, TimeRange, Value};

/// Rows of the log are recent if they are in the last `RECENT_PARTS` parts of what was read. A part
/// has `PART_ROWS_PER_SERIES` rows for each series on average.
const RECENT_PARTS: usize = 16;
const PART_ROWS_PER_SERIES: usize = 4;

/// State while the log is read.
#[derive(Default)]
pub(super) struct Replay {
    /// Slots by the number of their series in the log.
    refs: RefTable,
    /// Numbers that series had earlier in the log, with the slots of these series.
    earlier_refs: Vec<(u64, Slot)>,
    waiting: WaitingFloats,
    /// Oldest time of each recent part, as a ring; the last part is still being read.
    recent: [Option<i64>; RECENT_PARTS],
    part: usize,
    part_rows: usize,
    series: usize,
    /// Number of samples in the log that no block or earlier row had.
    samples: u64,
    /// Whether a sample was read that is older than the end of an earlier cut.
    has_behind: bool,
}

/// Restores the floats of a record; without [`FloatReplay::end`], waiting floats are lost.
pub struct FloatReplay<'h> {
    head: &'h mut Head,
    replay: Box<Replay>,
    oldest_ms: i64,
    newest_ms: i64,
    rows: usize,
}

/// The smallest and the largest time mean "none", though a foreign log may have them.
fn is_time(timestamp_ms: i64) -> bool {
    timestamp_ms != i64::MIN && timestamp_ms != i64::MAX
}

impl FloatReplay<'_> {
    /// Restores a row, or skips the row if its series is unknown.
    #[inline(always)]
    pub fn take(&mut self, series_ref: u64, sample: Sample) {
        let Sample { timestamp_ms, value } = sample;
        if !is_time(timestamp_ms) {
            return;
        }
        self.oldest_ms = self.oldest_ms.min(timestamp_ms);
        self.newest_ms = self.newest_ms.max(timestamp_ms);
        self.rows += 1;
        let replay = &mut *self.replay;
        let Some(slot) = replay.refs.get(series_ref) else {
            // The log still has rows of a dropped series, so no new series may get its number.
            return self.head.retire_ref(series_ref);
        };
        let row = (timestamp_ms, value);
        match replay.waiting.push(slot as usize, row) {
            Waits::Yes => {}
            Waits::Full => self.head.settle_rows(replay, Slot::of(slot)),
            Waits::No => self.head.append_run(replay, Slot::of(slot), &[row]),
        }
    }

    /// Ends the record; returns the newest time, or `i64::MIN` if the record has no row.
    pub fn end(mut self) -> i64 {
        if self.oldest_ms <= self.newest_ms {
            self.replay.see(self.oldest_ms, self.rows);
        }
        self.head.replay = Some(self.replay);
        self.newest_ms
    }
}

impl Replay {
    /// Registers a series under its number in the log.
    fn add_series(&mut self, series_ref: u64, slot: Slot) {
        self.refs.insert(series_ref, slot.number());
        self.series += 1;
        self.waiting.add_series(slot.number() as usize);
    }

    /// Returns the time of the oldest of the recent rows.
    pub(super) fn recent_ms(&self) -> Option<i64> {
        self.recent.iter().flatten().min().copied()
    }

    /// Counts rows that were read; `oldest_ms` is the oldest time among them.
    fn see(&mut self, oldest_ms: i64, rows: usize) {
        let recent = &mut self.recent[self.part % RECENT_PARTS];
        *recent = Some(recent.map_or(oldest_ms, |known| known.min(oldest_ms)));
        self.part_rows += rows;
        if self.part_rows > PART_ROWS_PER_SERIES * self.series {
            self.part += 1;
            self.part_rows = 0;
            self.recent[self.part % RECENT_PARTS] = None;
        }
    }
}

impl Head {
    /// Restores a series from the log, under its number there.
    pub fn replay_series(
        &mut self,
        batch: &mut Batch,
        series_ref: u64,
        labels: &[(&[u8], &[u8])],
    ) -> Result<(), LookupError> {
        let known = self.table.find_by_pairs(labels);
        let slot = match known {
            Some(slot) => slot,
            None => self.unusual_series(batch, labels.iter().copied(), true)?,
        };
        // `created` lists series to be logged, and the log has this series already.
        batch.created.clear();
        let earlier_ref = known.map(|slot| self.table.at(slot).series_ref);
        // If a series has several numbers, newer records use the last.
        self.table.at_mut(slot).series_ref = series_ref;
        self.table.retire_ref(series_ref);
        let replay = self.replay.get_or_insert_default();
        let earlier_ref = earlier_ref.filter(|earlier_ref| *earlier_ref != series_ref);
        replay.earlier_refs.extend(earlier_ref.map(|earlier_ref| (earlier_ref, slot)));
        replay.add_series(series_ref, slot);
        Ok(())
    }

    /// Returns the slot of a series that [`Head::replay_series`] restored.
    #[inline]
    pub fn replayed(&self, series_ref: u64) -> Option<Slot> {
        self.replay.as_ref()?.refs.get(series_ref).map(Slot::of)
    }

    /// Returns pairs of a present and an earlier number, for series that had several numbers in the
    /// log; ascending.
    pub fn take_earlier_refs(&mut self) -> Vec<(u64, u64)> {
        let Some(replay) = &mut self.replay else { return Vec::new() };
        let earlier_refs = std::mem::take(&mut replay.earlier_refs).into_iter();
        let of_now = earlier_refs.map(|(earlier, slot)| (self.table.at(slot).series_ref, earlier));
        let mut pairs: Vec<_> = of_now.filter(|(now, earlier)| now != earlier).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Begins to restore floats from the in-order log.
    pub fn replay_floats(&mut self) -> FloatReplay<'_> {
        // Taken out, so that head and replay can change together; `end` puts it back.
        let replay = self.replay.take().unwrap_or_default();
        FloatReplay { head: self, replay, oldest_ms: i64::MAX, newest_ms: i64::MIN, rows: 0 }
    }

    /// Appends floats of one series in the order of the log.
    fn append_run(&mut self, replay: &mut Replay, slot: Slot, rows: &[(i64, f64)]) {
        let mut rest = rows;
        while let [(first_ms, value), after @ ..] = rest {
            // Rows older than the end of blocks and cuts are restored one by one.
            let is_in_order = *first_ms >= self.window.min_valid_ms();
            let series = self.table.get_mut(slot).filter(|_| is_in_order);
            let taken = series.map_or(0, |series| series.append_floats(rest));
            if taken == 0 {
                self.append_replayed(replay, slot, *first_ms, &Value::Float(*value));
                rest = after;
                continue;
            }
            self.window.add_run(*first_ms, rest[taken - 1].0);
            replay.samples += taken as u64;
            rest = &rest[taken..];
        }
    }

    /// Restores a value from the in-order log. Skips a value that blocks hold, and one that is not
    /// newer than the samples of its series, because it was logged twice.
    fn append_replayed(
        &mut self,
        replay: &mut Replay,
        slot: Slot,
        timestamp_ms: i64,
        value: &Value,
    ) {
        let newest_ms = self.table.at(slot).newest_ms();
        let is_new = timestamp_ms >= self.window.stored_until_ms()
            && is_time(timestamp_ms)
            && newest_ms.is_none_or(|newest_ms| timestamp_ms > newest_ms);
        if !is_new {
            return;
        }
        replay.samples += 1;
        if timestamp_ms >= self.window.min_valid_ms() {
            self.append(slot, timestamp_ms, value);
        } else {
            replay.has_behind = true;
            self.append_out_of_order(slot, timestamp_ms, value.clone());
        }
    }

    /// Restores a value of any kind from the in-order log.
    pub fn replay_in_order(&mut self, slot: Slot, timestamp_ms: i64, value: &Value) {
        let mut replay = self.replay.take().unwrap_or_default();
        // Waiting floats of the series are older than this value.
        self.settle_rows(&mut replay, slot);
        self.append_replayed(&mut replay, slot, timestamp_ms, value);
        replay.see(timestamp_ms, 1);
        self.replay = Some(replay);
    }

    /// Restores a value from the out-of-order log; it replaces an earlier one of the same time.
    pub fn replay_out_of_order(&mut self, slot: Slot, timestamp_ms: i64, value: Value) {
        if !is_time(timestamp_ms) {
            return;
        }
        self.append_out_of_order(slot, timestamp_ms, value);
        if let Some(replay) = &mut self.replay {
            replay.samples += 1;
        }
    }

    /// Restores an exemplar from the log.
    pub fn replay_exemplar(&mut self, slot: Slot, exemplar: Exemplar) {
        let series = self.table.packed_labels(slot);
        self.exemplars.add(&series, exemplar);
    }

    /// Appends the waiting floats of one series.
    #[inline(never)]
    fn settle_rows(&mut self, replay: &mut Replay, slot: Slot) {
        if let Some((rows, count)) = replay.waiting.take(slot.number() as usize) {
            self.append_run(replay, slot, &rows[..count]);
        }
    }

    /// Appends all waiting floats. Callers that read samples during replay call this first.
    pub fn settle_replay(&mut self) {
        let Some(mut replay) = self.replay.take() else { return };
        for at in 0..replay.waiting.end() {
            self.settle_rows(&mut replay, Slot::of(at as u32));
        }
        self.replay = Some(replay);
    }

    /// If memory is short, frees the buffers of waiting floats, which only make the replay faster.
    /// Called after each record: the series of one record may fill the memory of a small head.
    pub fn spare_replay(&mut self) {
        let spares = |replay: &Replay| replay.waiting.is_open();
        if !self.options.memory.caches_go() || !self.replay.as_deref().is_some_and(spares) {
            return;
        }
        self.settle_replay();
        if let Some(replay) = &mut self.replay {
            replay.waiting.close();
        }
    }

    /// Number of new samples restored from the log so far, waiting floats excluded.
    pub fn replayed_samples(&self) -> u64 {
        self.replay.as_ref().map_or(0, |replay| replay.samples)
    }

    /// Removes the in-order samples that a tombstone of the log deletes.
    pub fn replay_deletion(&mut self, slot: Slot, range: TimeRange) -> Result<(), ChunkError> {
        // The waiting floats precede the tombstone in the log.
        self.settle_replay();
        self.window.set_stale();
        self.observers.note_deletion();
        self.table.delete_in_order(slot, range)
    }

    /// Removes the samples of the in-order log that a tombstone of a block deletes; returns the
    /// number of the series, if the series exists.
    pub fn replay_block_deletion(
        &mut self,
        labels: &Labels,
        range: TimeRange,
    ) -> Result<Option<u64>, ChunkError> {
        let Some(slot) = self.slot_of(labels) else { return Ok(None) };
        self.replay_deletion(slot, range)?;
        // Rows of the log in the range of a cut are kept as out-of-order samples.
        self.table.at_mut(slot).delete_out_of_order(range)?;
        Ok(Some(self.table.at(slot).series_ref))
    }

    /// Restores a floor from the log: in-order samples before this time are in blocks, or were
    /// deleted with their blocks.
    pub fn replay_floor(&mut self, floor_ms: i64) -> Result<(), ChunkError> {
        let Some(end_ms) = floor_ms.checked_sub(1) else { return Ok(()) };
        // Waiting floats may be older than the floor.
        self.settle_replay();
        self.observers.note_deletion();
        let slots: Vec<Slot> = self.slots().collect();
        for slot in slots {
            self.table.delete_in_order(slot, TimeRange { start_ms: i64::MIN, end_ms })?;
        }
        self.window.note_stored_until(floor_ms);
        Ok(())
    }

    /// Restores metadata from the log. `family` is empty if the record does not name it:
    /// records of upstream never do.
    pub fn replay_metadata(&mut self, slot: Slot, family: &str, metadata: Metadata) {
        let table = &self.table;
        self.metadata.replay(family, metadata, || {
            let name = table.labels(slot).1.find(|(name, _)| *name == LABEL_NAME);
            name.map_or("", |(_, value)| value)
        });
    }

    /// Returns whether samples in the range of an earlier cut were read; neither blocks nor the
    /// out-of-order log have these samples.
    pub fn has_behind(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.has_behind)
    }

    /// Ends the replay: drops state that only the log needed, and series without samples.
    pub fn end_replay(&mut self) -> Result<(), ChunkError> {
        self.settle_replay();
        self.replay = None;
        // Out-of-order samples are kept whatever their age. In-order samples are kept from the
        // floor on, below which blocks hold all: a planned cut has no block yet.
        self.truncate_before(self.floor_ms(), 0)?;
        if self.window.is_stale() {
            // Replaces a scan for times that a deletion began: this one covers all series.
            self.observers.take_scan();
            self.window.set_held(TimesScan::all(&self.table));
        }
        Ok(())
    }
}
