//! What a scrape stores, in one job: no other write, no read and no check of the disk's room comes
//! in between.
//!
//! ```text
//! histograms, exemplars, metadata   remote-write bodies, by labels
//! markers, samples, report          columns, by number: one call, which is one record in the log
//! ```
//!
//! Columns of more than [`ROWS_PER_CALL`] take several calls: first the markers, then the samples,
//! and the report, which ends the columns, with the last. So what a crash or an error of the disk
//! in the midst of it leaves is without report.

use super::handle::{HeadInstance, Stored};
use super::{HeadThread, StoreError};
use crate::store::ScrapeRows;
use crate::wasm::{CallError, Columns, ColumnsOutcome, Error, RefusedRow, nothing_written};

/// Rows and markers of one call, which the log holds as one record: some ten milliseconds, and 1.5
/// MB in the instance.
const ROWS_PER_CALL: usize = 64 * 1024;

/// What such calls are for.
const A_SCRAPE: &str = "storing a scrape";

impl HeadThread {
    /// Stores a scrape. With [`StoreError::SeriesGone`] the numbers have to be asked for again, and
    /// all is to be stored again: what is there already is the same.
    pub(super) fn append_scrape(
        &self,
        head: &mut HeadInstance,
        scrape: &ScrapeRows,
    ) -> Result<Stored, StoreError> {
        let ScrapeRows { bodies, generation, count, rows, ended, .. } = scrape;
        let has_numbers = *count > 0 || !ended.is_empty();
        if has_numbers && *generation != self.shared.head.generation() {
            return Err(StoreError::SeriesGone);
        }
        let mut all = Stored::from(nothing_written());
        for (version, body) in bodies {
            head.instance.set_limit(self.limit(A_SCRAPE));
            let stored = self.append_body(&mut head.instance, *version, body);
            let stored = head.noting_crash(stored);
            all.add(stored.map_err(|error| StoreError::from(error).of_head())?.into(), 0);
        }
        if count + ended.len() <= ROWS_PER_CALL {
            if has_numbers {
                all.add(self.append_columns(head, scrape, &rows(0..*count), ended)?, 0);
            }
            return Ok(all);
        }
        for ended in ended.chunks(ROWS_PER_CALL) {
            all.add(self.append_columns(head, scrape, &rows(0..0), ended)?, 0);
        }
        for first in (0..*count).step_by(ROWS_PER_CALL) {
            let rows = rows(first..*count.min(&(first + ROWS_PER_CALL)));
            all.add(self.append_columns(head, scrape, &rows, &[])?, first as u32);
        }
        Ok(all)
    }

    fn append_columns(
        &self,
        head: &mut HeadInstance,
        scrape: &ScrapeRows,
        rows: &Columns,
        ended: &[u64],
    ) -> Result<Stored, StoreError> {
        let now_ms = self.shared.clock.now_ms();
        head.instance.set_limit(self.limit(A_SCRAPE));
        let stored = head.instance.append_and_end(rows, ended, scrape.ended_at_ms, now_ms);
        match head.noting_crash(stored) {
            // Each refused row is named. That a marker is refused is no news: the target came back.
            Ok(ColumnsOutcome { mut written, refused_rows }) => {
                written.refused = 0;
                written.refusals.clear();
                Ok(Stored { written, refused_rows })
            }
            // The columns are as long as each other.
            Err(CallError::Refused(Error::Invalid(_))) => Err(StoreError::SeriesGone),
            Err(error) => Err(StoreError::from(error).of_head()),
        }
    }
}

impl Stored {
    /// Adds what became of a part that begins with this row.
    fn add(&mut self, part: Stored, first_row: u32) {
        let (all, more) = (&mut self.written, part.written);
        all.samples_written += more.samples_written;
        all.histograms_written += more.histograms_written;
        all.exemplars_written += more.exemplars_written;
        all.refused += more.refused;
        all.refusals.extend(more.refusals);
        let place = |refused: RefusedRow| RefusedRow { row: first_row + refused.row, ..refused };
        self.refused_rows.extend(part.refused_rows.into_iter().map(place));
    }
}
