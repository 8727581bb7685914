//! Floats by columns in the in-order log.
//!
//! A column record depends on the records before it in its segment (a *chain*), never on another
//! segment, because a reader may begin with any segment, as forwarding does. The host ends segments
//! as well, so it is asked for the segment of a batch before the records of the batch are made.
//!
//! If the host then uses another segment, or an earlier version of this code wrote the log, the
//! first record of a segment may depend on the segment before. After such a record a new chain
//! begins, and the segment before is kept until the samples that depend on it are in blocks.

use super::{Head, Log};
use crate::codec::hash_word;
use crate::storage::LogKind;
use crate::wal::{ColumnError, ColumnRecord, ColumnWriter};

/// State of writing floats by columns.
pub(super) struct Columns {
    seed: u64,
    /// Created when the first float is written.
    writer: Option<ColumnWriter>,
    /// Whether floats go to the log without columns for now.
    are_off: bool,
    /// Segment of the last record.
    segment: Option<u32>,
}

impl Columns {
    /// Returns whether the next record may depend on the last one.
    pub fn is_chained(&self) -> bool {
        self.writer.as_ref().is_some_and(ColumnWriter::is_chained)
    }
}

impl Log {
    /// Writes floats by columns from now on.
    pub fn write_columns(&mut self, seed: u64) {
        self.columns = Some(Columns { seed, writer: None, are_off: false, segment: None });
    }

    /// Stops or resumes columns; they are off while memory is short.
    pub(super) fn turn_columns_off(&mut self, are_off: bool) {
        let Some(columns) = &mut self.columns else { return };
        let were_off = std::mem::replace(&mut columns.are_off, are_off);
        if are_off
            && !were_off
            && let Some(writer) = &mut columns.writer
        {
            writer.give_back();
        }
    }

    /// Returns the writer of columns, if they are on. The names of its chains differ from those of
    /// an earlier process, even with the same seed.
    pub(super) fn column_writer(&mut self) -> Option<&mut ColumnWriter> {
        // Since an earlier start, the newest segment or the number of records has grown.
        let newest = self.segments.keys().next_back();
        let life = newest.map_or(0, |segment| u64::from(*segment) + 1);
        let Columns { seed, writer, .. } = self.columns.as_mut().filter(|it| !it.are_off)?;
        let words = [*seed, life, self.progress.records];
        let seed = words.into_iter().fold(0, hash_word);
        Some(writer.get_or_insert_with(|| ColumnWriter::new(seed)))
    }

    /// Begins a new chain if the next record goes into another segment than the last record.
    pub(super) fn restart_columns_of_new_segment(&mut self) {
        let Some(columns) = self.columns.as_ref().filter(|columns| columns.is_chained()) else {
            return;
        };
        let last = columns.segment;
        // If the segment is unknown because of an error, the write of the batch reports the error.
        if self.wal.next_segment(LogKind::InOrder).ok() != last {
            self.restart_columns();
        }
    }

    /// Begins a new chain of records.
    pub(super) fn restart_columns(&mut self) {
        if let Some(Columns { writer: Some(writer), .. }) = &mut self.columns {
            writer.restart();
        }
    }

    /// Notes the segment of a batch; if `is_chained`, the batch may depend on earlier records.
    pub(super) fn note_columns(&mut self, segment: u32, newest_ms: i64, is_chained: bool) {
        let Some(columns) = &mut self.columns else { return };
        let before = columns.segment.replace(segment);
        if let Some(before) = before.filter(|before| *before != segment && is_chained) {
            // The batch depends on the earlier segment, which must be kept as long as the batch.
            self.note(before, newest_ms);
            self.restart_columns();
        }
    }

    /// Replays floats; returns whether the record was understood.
    pub(super) fn replay_columns(
        &mut self,
        head: &mut Head,
        segment: u32,
        record: &ColumnRecord<'_>,
    ) -> bool {
        let mut floats = head.replay_floats();
        let read = self.column_reader.read(record, segment).map(|rows| {
            rows.iter().for_each(|(series_ref, sample)| floats.take(*series_ref, *sample));
            !rows.is_empty()
        });
        let newest_ms = floats.end();
        self.note(segment, newest_ms);
        if read == Ok(true) {
            // The segment that the record depends on must be kept as long as the record.
            self.note(self.column_reader.first_segment().min(segment), newest_ms);
        }
        // A cut-off record repeats a record that the checkpoint has replaced, so nothing is lost.
        matches!(read, Ok(_) | Err(ColumnError::CutOff))
    }
}
