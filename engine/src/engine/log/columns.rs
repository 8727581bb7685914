//! Floats by columns in the in-order log.
//!
//! A record builds on those before it in its segment, never on another segment: who begins to read
//! with a segment, as forwarding does, has no other. The host ends segments as well, so it is asked
//! where a batch will go before its records are made.
//!
//! A host that does not keep to what it said, or an earlier version of this, leaves a segment that
//! begins with a record which builds on the segment before. From then on a new chain begins, and
//! the segment before is kept until what builds on it is in blocks.

use super::{Head, Log};
use crate::codec::hash_word;
use crate::storage::LogKind;
use crate::wal::{ColumnError, ColumnRecord, ColumnWriter};

/// How floats are written by columns.
pub(super) struct Columns {
    seed: u64,
    /// With the first float.
    writer: Option<ColumnWriter>,
    /// Whether floats go to the log without columns for now.
    are_off: bool,
    /// The segment that the last record went to.
    segment: Option<u32>,
}

impl Columns {
    /// Whether the next record may build on the last one.
    pub fn is_chained(&self) -> bool {
        self.writer.as_ref().is_some_and(ColumnWriter::is_chained)
    }
}

impl Log {
    /// Writes floats by columns from now on.
    pub fn write_columns(&mut self, seed: u64) {
        self.columns = Some(Columns { seed, writer: None, are_off: false, segment: None });
    }

    /// Lets floats go to the log without columns, as long as memory is short.
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

    /// The writer of columns, if they are on. Whatever the seed, it names no chain as a life before
    /// did.
    pub(super) fn column_writer(&mut self) -> Option<&mut ColumnWriter> {
        let newest = self.segments.keys().next_back();
        let life = newest.map_or(0, |segment| u64::from(*segment) + 1);
        let Columns { seed, writer, .. } = self.columns.as_mut().filter(|it| !it.are_off)?;
        let words = [*seed, life, self.progress.records];
        let seed = words.into_iter().fold(0, hash_word);
        Some(writer.get_or_insert_with(|| ColumnWriter::new(seed)))
    }

    /// Lets the next record build on nothing if it will lie in another segment than the last one.
    pub(super) fn restart_columns_of_new_segment(&mut self) {
        let Some(columns) = self.columns.as_ref().filter(|columns| columns.is_chained()) else {
            return;
        };
        let last = columns.segment;
        // What keeps the log from telling keeps it from taking the batch, which reports it.
        if self.wal.next_segment(LogKind::InOrder).ok() != last {
            self.restart_columns();
        }
    }

    /// Lets the next record build on nothing.
    pub(super) fn restart_columns(&mut self) {
        if let Some(Columns { writer: Some(writer), .. }) = &mut self.columns {
            writer.restart();
        }
    }

    /// Notes where a batch went, of which the first record may build on the one before.
    pub(super) fn note_columns(&mut self, segment: u32, newest_ms: i64, is_chained: bool) {
        let Some(columns) = &mut self.columns else { return };
        let before = columns.segment.replace(segment);
        if let Some(before) = before.filter(|before| *before != segment && is_chained) {
            self.note(before, newest_ms);
            self.restart_columns();
        }
    }

    /// Takes floats back; returns whether the record was understood.
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
            // What it builds on must stay as long.
            self.note(self.column_reader.first_segment().min(segment), newest_ms);
        }
        matches!(read, Ok(_) | Err(ColumnError::CutOff))
    }
}
