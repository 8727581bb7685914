//! The head's side of the log: what is written for a batch, how it is read back, and which
//! segments are no longer needed.
//!
//! The newest sample time of every segment is kept. When the head forgets what a block holds, the
//! leading segments without a newer sample are replaced by a checkpoint with just the labels of
//! the series that live. Samples are never copied, and later segments stay as they are.

use crate::head::{Batch, Head, Slot};
use crate::storage::{StorageResult, Wal, WalCheckpoint};
use crate::wal::{Record, decode, put_samples, put_series, samples_record, series_record};
use std::collections::BTreeMap;

/// How many series one slice of a checkpoint holds.
const CHECKPOINT_SERIES_PER_SLICE: usize = 10_000;

/// Series of one record of a checkpoint.
const CHECKPOINT_SERIES_PER_RECORD: usize = 500;

/// What a replay has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayProgress {
    /// Whether the log's end is reached.
    pub done: bool,
    /// Segment last read.
    pub segment: u32,
    /// Records read.
    pub records: u64,
    /// Samples that the head took.
    pub samples: u64,
    /// Records of other kinds, and records that do not decode.
    pub skipped_records: u64,
}

/// The log, and which times its segments hold.
pub struct Log {
    wal: Box<dyn Wal>,
    /// Newest sample time by segment.
    segments: BTreeMap<u32, i64>,
    /// A segment is ended once its samples span this long, so that it can be dropped early.
    segment_span_ms: i64,
    /// Oldest sample time of the segment being written.
    segment_start_ms: i64,
    progress: ReplayProgress,
    truncation: Option<Truncation>,
}

/// A checkpoint on its way.
struct Truncation {
    checkpoint: Box<dyn WalCheckpoint>,
    last_segment: u32,
    slots: std::vec::IntoIter<Slot>,
}

impl Log {
    /// A log that has not been replayed yet.
    pub fn new(wal: Box<dyn Wal>, block_duration_ms: i64) -> Log {
        Log {
            wal,
            segments: BTreeMap::new(),
            segment_span_ms: block_duration_ms / 2,
            segment_start_ms: i64::MAX,
            progress: ReplayProgress::default(),
            truncation: None,
        }
    }

    /// Writes a checked batch down. Nothing of it is written on an error.
    pub fn append(&mut self, head: &Head, batch: &Batch) -> StorageResult<()> {
        let mut records = Vec::with_capacity(2);
        if !head.created(batch).is_empty() {
            records.push(series_of(head, head.created(batch)));
        }
        let rows = head.rows(batch);
        let (mut oldest_ms, mut newest_ms) = (i64::MAX, i64::MIN);
        if rows.len() > 0 {
            let count = rows.len();
            let mut rows = rows.peekable();
            let first = rows.peek().map_or((0, 0), |(r, sample)| (*r, sample.timestamp_ms));
            let mut record = samples_record(first.0, first.1, count);
            for (series_ref, sample) in rows {
                oldest_ms = oldest_ms.min(sample.timestamp_ms);
                newest_ms = newest_ms.max(sample.timestamp_ms);
                put_samples(&mut record, first, series_ref, sample);
            }
            records.push(record);
        }
        if records.is_empty() {
            return Ok(());
        }
        if newest_ms.saturating_sub(self.segment_start_ms) > self.segment_span_ms {
            self.wal.cut_segment()?;
            self.segment_start_ms = i64::MAX;
        }
        let segment = self.wal.append(&records)?;
        self.segment_start_ms = self.segment_start_ms.min(oldest_ms);
        self.note(segment, newest_ms);
        Ok(())
    }

    /// Reads the next part of the log back into the head.
    pub fn replay(
        &mut self,
        head: &mut Head,
        batch: &mut Batch,
        bytes_max: u32,
    ) -> StorageResult<ReplayProgress> {
        let Some(read) = self.wal.replay(bytes_max)? else {
            self.progress.done = true;
            return Ok(self.progress);
        };
        self.progress.segment = read.segment;
        for record in &read.records {
            self.progress.records += 1;
            if !self.replay_record(head, batch, read.segment, record) {
                self.progress.skipped_records += 1;
            }
        }
        Ok(self.progress)
    }

    /// Gives whether the whole record was understood.
    fn replay_record(
        &mut self,
        head: &mut Head,
        batch: &mut Batch,
        segment: u32,
        record: &[u8],
    ) -> bool {
        match decode(record) {
            Ok(Record::Series(series)) => {
                let mut understood = true;
                for series in series {
                    let Ok(series) = series else { return false };
                    let labels: Vec<_> = series
                        .labels
                        .iter()
                        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
                        .collect();
                    understood &= head.replay_series(batch, series.series_ref, &labels).is_ok();
                }
                self.note(segment, i64::MIN);
                understood
            }
            Ok(Record::Samples(samples)) => {
                let mut newest_ms = i64::MIN;
                let mut understood = true;
                for row in samples {
                    let Ok((series_ref, sample)) = row else {
                        understood = false;
                        break;
                    };
                    newest_ms = newest_ms.max(sample.timestamp_ms);
                    if let Some(slot) = head.by_ref(series_ref) {
                        self.progress.samples += u64::from(head.replay_sample(slot, sample));
                    }
                }
                self.note(segment, newest_ms);
                understood
            }
            Ok(Record::NotReplayed(_) | Record::Unknown(_)) | Err(_) => false,
        }
    }

    fn note(&mut self, segment: u32, newest_ms: i64) {
        let known = self.segments.entry(segment).or_insert(i64::MIN);
        *known = (*known).max(newest_ms);
    }

    /// Whether a truncation has begun that is not finished.
    pub fn is_truncating(&self) -> bool {
        self.truncation.is_some()
    }

    /// Drops leading segments that hold nothing from `before_ms` on, a slice at a time; gives
    /// whether some is left to do.
    pub fn truncate(&mut self, head: &Head, before_ms: i64) -> StorageResult<bool> {
        let mut truncation = match self.truncation.take() {
            Some(truncation) => truncation,
            None => match self.begin_truncation(head, before_ms)? {
                Some(truncation) => truncation,
                None => return Ok(false),
            },
        };
        let slice: Vec<Slot> =
            truncation.slots.by_ref().take(CHECKPOINT_SERIES_PER_SLICE).collect();
        let records: Vec<Vec<u8>> = slice
            .chunks(CHECKPOINT_SERIES_PER_RECORD)
            .map(|slots| series_of(head, slots))
            .collect();
        truncation.checkpoint.append(&records)?;
        if truncation.slots.len() > 0 {
            self.truncation = Some(truncation);
            return Ok(true);
        }
        truncation.checkpoint.commit()?;
        self.segments.retain(|segment, _| *segment > truncation.last_segment);
        Ok(false)
    }

    fn begin_truncation(
        &mut self,
        head: &Head,
        before_ms: i64,
    ) -> StorageResult<Option<Truncation>> {
        let droppable = self.segments.iter().take_while(|(_, newest_ms)| **newest_ms < before_ms);
        let Some(last_segment) = droppable.map(|(segment, _)| *segment).last() else {
            return Ok(None);
        };
        if self.segments.keys().next_back() == Some(&last_segment) {
            self.wal.cut_segment()?;
            self.segment_start_ms = i64::MAX;
        }
        let checkpoint = self.wal.checkpoint(last_segment)?;
        let slots = head.slots().collect::<Vec<_>>().into_iter();
        Ok(Some(Truncation { checkpoint, last_segment, slots }))
    }
}

fn series_of(head: &Head, slots: &[Slot]) -> Vec<u8> {
    let mut record = series_record();
    for slot in slots {
        let (count, labels) = head.labels(*slot);
        put_series(&mut record, head.series_ref(*slot), count, labels);
    }
    record
}
