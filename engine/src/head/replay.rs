//! Restores rows from the log.
//!
//! Floats wait until a few of their series are there and are then appended together: a series and
//! its chunk are fetched from memory once for all of them. Other rows of a series are applied after
//! its waiting floats.
//!
//! A log may hold far more than a head should. Then blocks are cut while it is read, but only up to
//! where no recent row belongs, and rows *behind* a cut are kept as out-of-order samples are.
//! Series without samples are kept, too: rows that follow refer to them by number. The cut's blocks
//! count only once the log was read to its end: the caller commits them then.

use super::deletion::TimesScan;
use super::metadata::Metadata;
use super::slab::SlabIndex;
use super::waiting::{WaitingFloats, Waits};
use super::{Batch, Exemplar, Head, LookupError, Slot};
use crate::chunk::ChunkError;
use crate::model::{LABEL_NAME, Labels, RefTable, Sample, TimeRange, Value};

/// Rows of the log that count as recent: this many parts, each of this many rows for each series on
/// average.
const RECENT_PARTS: usize = 16;
const PART_ROWS_PER_SERIES: usize = 4;

/// State while the log is read.
#[derive(Default)]
pub(super) struct Replay {
    /// Slots by the number of their series in the log.
    refs: RefTable,
    /// Earlier numbers of series that have another one now, with their slots.
    earlier_refs: Vec<(u64, Slot)>,
    waiting: WaitingFloats,
    /// Times of the oldest rows of the last parts, and of the one being read.
    recent: [Option<i64>; RECENT_PARTS],
    part: usize,
    part_rows: usize,
    series: usize,
    /// Number of samples that were new.
    samples: u64,
    /// Whether any sample came behind a cut.
    has_behind: bool,
}

/// Takes the floats of a record; if dropped without [`FloatReplay::end`], waiting floats are lost.
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
    /// Takes a row; skips the row if its series is unknown.
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
            // The series was dropped, but the log still has its number.
            return self.head.retire_ref(series_ref);
        };
        let row = (timestamp_ms, value);
        match replay.waiting.push(slot as usize, row) {
            Waits::Yes => {}
            Waits::Full => self.head.settle_rows(replay, Slot::of(slot)),
            Waits::No => self.head.append_run(replay, Slot::of(slot), &[row]),
        }
    }

    /// Ends the record; returns the newest time, or the smallest without any row.
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

    /// Notes rows, the oldest of which has this time.
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
        // The log has the series already.
        batch.created.clear();
        let earlier_ref = known.map(|slot| self.table.at(slot).series_ref);
        // Of several numbers of one series, newer records use the last.
        self.table.at_mut(slot).series_ref = series_ref;
        self.table.retire_ref(series_ref);
        let replay = self.replay.get_or_insert_default();
        let earlier_ref = earlier_ref.filter(|earlier_ref| *earlier_ref != series_ref);
        replay.earlier_refs.extend(earlier_ref.map(|earlier_ref| (earlier_ref, slot)));
        replay.add_series(series_ref, slot);
        Ok(())
    }

    /// Returns the slot of a series that [`Head::replay_series`] took.
    #[inline]
    pub fn replayed(&self, series_ref: u64) -> Option<Slot> {
        self.replay.as_ref()?.refs.get(series_ref).map(Slot::of)
    }

    /// Returns the numbers that series had earlier in the log, each after the series' present
    /// number; ascending.
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

    /// Appends floats of a series that come in the log's order.
    fn append_run(&mut self, replay: &mut Replay, slot: Slot, rows: &[(i64, f64)]) {
        let mut rest = rows;
        while let [(first_ms, value), after @ ..] = rest {
            // Rows in the range of blocks or behind a cut take the slow path.
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

    /// Restores a value from the in-order log. A value not newer than its series was logged twice,
    /// or is in a block.
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

    /// Restores a value from the out-of-order log; of the same time the last one counts.
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

    /// Appends all rows that wait. Callers that read samples during replay call this first.
    pub fn settle_replay(&mut self) {
        let Some(mut replay) = self.replay.take() else { return };
        for at in 0..replay.waiting.end() {
            self.settle_rows(&mut replay, Slot::of(at as u32));
        }
        self.replay = Some(replay);
    }

    /// Frees memory that only makes the replay faster, if memory is short. Called between records:
    /// the series of one may take a good part of a small head.
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

    /// Number of samples of the log that were new so far, except for those that wait.
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

    /// Removes what a block's tombstone deletes from samples of the in-order log; returns the
    /// number of the series, if it exists.
    pub fn replay_block_deletion(
        &mut self,
        labels: &Labels,
        range: TimeRange,
    ) -> Result<Option<u64>, ChunkError> {
        let Some(slot) = self.slot_of(labels) else { return Ok(None) };
        self.replay_deletion(slot, range)?;
        // Samples behind a cut are kept as out-of-order.
        self.table.at_mut(slot).delete_out_of_order(range)?;
        Ok(Some(self.table.at(slot).series_ref))
    }

    /// Restores from the log that in-order samples before this time are in blocks, or were deleted
    /// with them.
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

    /// Restores metadata from the log. `family` is empty if the record does not name it, as in
    /// upstream's.
    pub fn replay_metadata(&mut self, slot: Slot, family: &str, metadata: Metadata) {
        let table = &self.table;
        self.metadata.replay(family, metadata, || {
            let name = table.labels(slot).1.find(|(name, _)| *name == LABEL_NAME);
            name.map_or("", |(_, value)| value)
        });
    }

    /// Returns whether samples came behind a cut; neither blocks nor the out-of-order log have
    /// them.
    pub fn has_behind(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.has_behind)
    }

    /// Ends the replay: drops state that only the log needed, and series without samples.
    pub fn end_replay(&mut self) -> Result<(), ChunkError> {
        self.settle_replay();
        self.replay = None;
        // Out-of-order samples may be older than what blocks hold, and stay. So does a planned
        // cut's range: it has no block yet.
        self.truncate_before(self.floor_ms(), 0)?;
        if self.window.is_stale() {
            // A search that a deletion began is superseded.
            self.observers.take_scan();
            self.window.set_held(TimesScan::all(&self.table));
        }
        Ok(())
    }
}
