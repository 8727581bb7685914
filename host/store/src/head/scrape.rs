//! Stores a scrape. Between its parts there is no read, and no check of the free space; writes of
//! others run between the parts of a long scrape.
//!
//! ```text
//! histograms, exemplars, metadata   remote-write bodies, by labels
//! markers, samples, report          columns, by number: one call, which is one record in the log
//! ```
//!
//! Columns with more than [`ROWS_PER_CALL`] rows need several calls: first staleness markers, then
//! samples, and in the last call the report (`up` and others). So a scrape that was interrupted by
//! a crash or an error of the disk has no report.

use super::handle::{HeadInstance, ScrapeRows, Stored};
use super::{HeadThread, StoreError, Written, answer};
use crate::BodyRoom;
use std::collections::VecDeque;
use tidepool_runtime::{CallError, Columns, ColumnsOutcome, Error, RefusedRow, nothing_written};
use tokio::sync::oneshot;

/// Maximum rows and markers of a call, one record of the log: about 10 ms, 1.5 MB of memory.
const ROWS_PER_CALL: usize = 64 * 1024;

/// Purpose of the calls that store a scrape, for error texts.
const A_SCRAPE: &str = "storing a scrape";

/// Maximum number of parts of a scrape that are stored without other writes between them.
const PARTS_AT_ONCE: usize = 2;

/// A scrape that is stored part by part, and its progress.
pub(super) struct OpenScrape {
    scrape: ScrapeRows,
    /// Counts and refusals of the parts that were stored.
    pub stored: Stored,
    /// Number of stored bodies; the next two fields count staleness markers and rows.
    bodies: usize,
    ended: usize,
    rows: usize,
}

/// A scrape that may be stored in part, with its reply and its memory.
pub(super) type LongScrape = (OpenScrape, oneshot::Sender<Result<Stored, StoreError>>, BodyRoom);

impl OpenScrape {
    pub fn new(scrape: ScrapeRows) -> OpenScrape {
        let stored = Stored::from(nothing_written());
        OpenScrape { scrape, stored, bodies: 0, ended: 0, rows: 0 }
    }

    /// Returns whether other writes should run between the parts of a scrape.
    pub fn is_long(scrape: &ScrapeRows) -> bool {
        let ScrapeRows { bodies, count, ended, .. } = scrape;
        let calls = (count + ended.len()).div_ceil(ROWS_PER_CALL);
        bodies.len() + calls > PARTS_AT_ONCE
    }

    /// Returns whether at least a part of the scrape is stored.
    pub fn is_begun(&self) -> bool {
        self.bodies + self.ended + self.rows > 0
    }

    fn is_done(&self) -> bool {
        let ScrapeRows { bodies, count, ended, .. } = &self.scrape;
        (self.bodies, self.ended, self.rows) == (bodies.len(), ended.len(), *count)
    }
}

impl HeadThread {
    /// Stores the next part of the first scrape; removes the scrape after its last part.
    pub(super) fn go_on_with_scrape(
        &self,
        head: &mut HeadInstance,
        scrapes: &mut VecDeque<LongScrape>,
        group: &mut Vec<Written>,
    ) {
        let Some((mut scrape, reply, room)) = scrapes.pop_front() else { return };
        // Checked before the first part only, so that a lack of space does not interrupt a scrape.
        let checked = if scrape.is_begun() { Ok(()) } else { self.check_writable() };
        match checked.and_then(|()| self.append_part(head, &mut scrape)) {
            Ok(false) => scrapes.push_front((scrape, reply, room)),
            Ok(true) => group.push((reply, scrape.stored, room)),
            Err(error) => answer(reply, Err(error)),
        }
    }

    /// Stores the next part of a scrape; returns whether it was the last part. After
    /// [`StoreError::SeriesGone`] the caller requests new numbers and stores the whole scrape
    /// again, which is harmless for rows that are already stored.
    pub(super) fn append_part(
        &self,
        head: &mut HeadInstance,
        open: &mut OpenScrape,
    ) -> Result<bool, StoreError> {
        let ScrapeRows { bodies, generation, count, rows, ended, .. } = &open.scrape;
        // Bodies have labels; only columns depend on the head that assigned the numbers.
        let has_numbers = *count > 0 || !ended.is_empty();
        if has_numbers && *generation != self.shared.head.generation() {
            return Err(StoreError::SeriesGone);
        }
        if let Some((version, body)) = bodies.get(open.bodies) {
            head.instance.set_limit(self.limit(A_SCRAPE));
            let stored = self.append_body(&mut head.instance, *version, body);
            let stored = head.noting_crash(stored);
            let stored = stored.map_err(|error| StoreError::from(error).of_head())?;
            open.stored.add(stored.into(), 0);
            open.bodies += 1;
            return Ok(open.is_done());
        }
        let next = |done: usize, all: usize| done..all.min(done + ROWS_PER_CALL);
        let (some_ended, some_rows) = match count + ended.len() <= ROWS_PER_CALL {
            // Columns that fit into one call are one record: a crash leaves all of them or none.
            true => (0..ended.len(), 0..*count),
            false if open.ended < ended.len() => (next(open.ended, ended.len()), 0..0),
            false => (0..0, next(open.rows, *count)),
        };
        if !some_ended.is_empty() || !some_rows.is_empty() {
            let (first, ended) = (some_rows.start as u32, &ended[some_ended.clone()]);
            let rows = rows(some_rows.clone());
            let stored = self.append_columns(head, &open.scrape, &rows, ended)?;
            open.stored.add(stored, first);
            open.ended += some_ended.len();
            open.rows += some_rows.len();
        }
        Ok(open.is_done())
    }
    pub(super) fn append_scrape(
        &self,
        head: &mut HeadInstance,
        mut open: OpenScrape,
    ) -> Result<Stored, StoreError> {
        while !self.append_part(head, &mut open)? {}
        Ok(open.stored)
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
            // Refused rows are returned one by one. Refused markers are not: the target is back.
            Ok(ColumnsOutcome { mut written, refused_rows }) => {
                written.refused = 0;
                written.refusals.clear();
                Ok(Stored { written, refused_rows })
            }
            // All columns have the same length, so only an unknown number can make them invalid.
            Err(CallError::Refused(Error::Invalid(_))) => Err(StoreError::SeriesGone),
            Err(error) => Err(StoreError::from(error).of_head()),
        }
    }
}

impl Stored {
    /// Adds the result of a part whose first row has this number.
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
