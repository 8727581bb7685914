//! Cursors through which other instances read the head of this instance. Each call does a bounded
//! slice of work, so that writes wait only briefly.

use super::Engine;
use super::log::Log;
use crate::chunk::ChunkError;
use crate::error::{Error, Result};
use crate::head::{Head, HeadCursor, HeadSeries, HeadStrings, NotNow, Slice, WorkLeft};
use crate::model::{Labels, MatcherSets, MatcherSpec, TimeRange};
use crate::select::{HeadDeletion, HeadPage, Lookup, Opened, merge_chunks, page_of_strings};
use crate::wire::{ChunkedSeries, put_chunked_series};
use std::cell::RefCell;
use std::rc::Rc;

/// Largest size for which a page is allocated at once, in bytes.
const PAGE_BYTES_USUAL: usize = 64 * 1024;

/// Bytes allocated beyond the requested size, because the last series of a page may exceed it.
const OVERSHOOT_BYTES: usize = 4 * 1024;

type OwnHead = (Rc<RefCell<Head>>, Rc<RefCell<Log>>);

/// A cursor on the head alone, for other instances.
pub struct HeadReader {
    head: Rc<RefCell<Head>>,
    log: Rc<RefCell<Log>>,
    cursor: HeadCursor,
    /// Range of the request, which deletions use.
    range: TimeRange,
    /// Whether a deletion was begun.
    is_deleting: bool,
}

/// A cursor on label names or values of the head.
pub struct HeadStringReader {
    head: Rc<RefCell<Head>>,
    strings: HeadStrings,
}

impl Engine {
    /// Opens a cursor on the head alone, over the series that any of the matcher sets selects.
    pub fn read_head(
        &self,
        sets: &[Vec<MatcherSpec>],
        range: TimeRange,
        external: &Labels,
    ) -> Result<Opened<HeadReader>> {
        let Some(sets) = MatcherSets::of_a_slice(sets) else { return Ok(Opened::TooCostly) };
        let (head, log) = self.own_head("read-head")?;
        let mut borrowed = head.borrow_mut();
        let cursor = match borrowed.select(&sets, range, external, &WorkLeft::slice()) {
            Ok(cursor) => cursor,
            Err(not_now) => return Ok(not_now.into()),
        };
        // The new cursor counts towards the limit; returning an error drops the cursor.
        if borrowed.has_too_many_cursors() {
            return Err(Error::ShortOfMemory { max: borrowed.memory_bytes_max() });
        }
        drop(borrowed);
        Ok(Opened::Ready(HeadReader { head, log, cursor, range, is_deleting: false }))
    }

    /// Opens a cursor on the label names of the head alone.
    pub fn read_head_names(&self, lookup: &Lookup) -> Result<Opened<HeadStringReader>> {
        self.open_strings(lookup, |head, sets, work| head.label_names(sets, lookup.range, work))
    }

    /// Opens a cursor on the values of a label name, in the head alone.
    pub fn read_head_values(
        &self,
        name: &str,
        lookup: &Lookup,
    ) -> Result<Opened<HeadStringReader>> {
        self.open_strings(lookup, |head, sets, work| {
            head.label_values(name, sets, lookup.range, work)
        })
    }

    fn open_strings(
        &self,
        lookup: &Lookup,
        open: impl FnOnce(
            &mut Head,
            &MatcherSets,
            &WorkLeft,
        ) -> std::result::Result<HeadStrings, NotNow>,
    ) -> Result<Opened<HeadStringReader>> {
        let Some(sets) = MatcherSets::of_a_slice(&lookup.matcher_sets) else {
            return Ok(Opened::TooCostly);
        };
        let (head, _) = self.own_head("read-head")?;
        let opened = open(&mut head.borrow_mut(), &sets, &WorkLeft::slice());
        Ok(match opened {
            Ok(strings) => Opened::Ready(HeadStringReader { head, strings }),
            Err(not_now) => not_now.into(),
        })
    }

    fn own_head(&self, call: &'static str) -> Result<OwnHead> {
        // A cut that was planned during replay reads the series that are already replayed.
        if !self.is_cut_while_replaying() {
            self.check_replayed()?;
        }
        let owned = self.owned.as_ref().ok_or(Error::WrongRole { call })?;
        Ok((Rc::clone(&owned.head), Rc::clone(&owned.log)))
    }
}

impl<T> From<NotNow> for Opened<T> {
    fn from(not_now: NotNow) -> Opened<T> {
        match not_now {
            NotNow::Again => Opened::Again,
            NotNow::TooMuch => Opened::TooCostly,
        }
    }
}

impl HeadReader {
    /// Returns the next series with their chunks, about `bytes_max` bytes.
    pub fn next(&mut self, bytes_max: u32) -> Result<HeadPage> {
        let head = self.head.borrow();
        page(bytes_max, |out| {
            let next = head.next(&mut self.cursor).map_err(chunk_error)?;
            Ok(match next {
                Slice::Next(series) => {
                    let ChunkedSeries { labels, chunks } = merged(series)?;
                    put_chunked_series(out, &labels, &chunks);
                    Slice::Next(())
                }
                Slice::Again => Slice::Again,
                Slice::End => Slice::End,
            })
        })
    }

    /// Returns the next series without chunks and external labels. `only_in_range` leaves out
    /// series without samples in the range.
    pub fn labels(&mut self, bytes_max: u32, only_in_range: bool) -> Result<HeadPage> {
        let head = self.head.borrow();
        self.cursor.begin_page();
        page(bytes_max, |out| {
            Ok(match head.next_labels(&mut self.cursor, only_in_range) {
                Slice::Next(labels) => {
                    put_chunked_series(out, &labels, &[]);
                    Slice::Next(())
                }
                Slice::Again => Slice::Again,
                Slice::End => Slice::End,
            })
        })
    }

    /// Keeps series of the last page of labels, given by their positions on that page. After the
    /// next rewind, the cursor returns only series that were kept.
    pub fn keep(&mut self, positions: &[u32]) -> Result<()> {
        match self.cursor.keep(positions) {
            true => Ok(()),
            false => Err(Error::Invalid("a position is not on the last page".into())),
        }
    }

    /// Starts again from the first series.
    pub fn rewind(&mut self) {
        self.cursor.rewind();
    }

    /// Deletes the samples in the range from the next series; in the end the log matches the head.
    pub fn delete(&mut self) -> Result<HeadDeletion> {
        let HeadReader { head, log, cursor, range, is_deleting } = self;
        delete_some(head, log, cursor, *range, is_deleting)
    }
}

impl HeadStringReader {
    /// Returns the next names or values, about `bytes_max` bytes; none at the end.
    pub fn next(&mut self, bytes_max: u32) -> Result<Vec<String>> {
        let head = self.head.borrow();
        page_of_strings(bytes_max, || Ok(head.next_string(&mut self.strings).map(str::to_owned)))
    }
}

/// Deletes the samples in a range from a slice of the series of a cursor.
pub(super) fn delete_some(
    head: &RefCell<Head>,
    log: &RefCell<Log>,
    cursor: &mut HeadCursor,
    range: TimeRange,
    is_begun: &mut bool,
) -> Result<HeadDeletion> {
    let (mut head, mut log) = (head.borrow_mut(), log.borrow_mut());
    // The first call always marks the log, which may have samples of series that the head dropped.
    if !std::mem::replace(is_begun, true) || !cursor.is_at_end() {
        let spans = head.spans_to_delete(cursor, range);
        // The log is written first, because after a failed write the head must be unchanged.
        log.append_deletion(&head, &spans, range)?;
        head.delete(&spans)
            .map_err(|source| Error::Chunk { series: "with deleted samples".into(), source })?;
        return Ok(HeadDeletion { series: spans.len() as u64, is_done: false });
    }
    let is_done = !head.find_times_again();
    if is_done {
        log.apply_deletions(&head)?;
    }
    Ok(HeadDeletion { series: 0, is_done })
}

/// Returns a series whose chunks do not overlap.
pub(super) fn merged(series: HeadSeries) -> Result<ChunkedSeries> {
    let HeadSeries { labels, chunks, may_overlap } = series;
    let chunks = if may_overlap { merge_chunks(&labels, chunks)? } else { chunks };
    Ok(ChunkedSeries { labels, chunks })
}

pub(super) fn chunk_error((labels, source): (Labels, ChunkError)) -> Error {
    Error::Chunk { series: labels.to_string(), source }
}

/// Adds series to a page until it is full, or a slice of work is done.
fn page(
    bytes_max: u32,
    mut put_next: impl FnMut(&mut Vec<u8>) -> Result<Slice<()>>,
) -> Result<HeadPage> {
    // A large `bytes_max` must not allocate much for a small answer.
    let room = PAGE_BYTES_USUAL.min(bytes_max as usize) + OVERSHOOT_BYTES;
    let mut page = HeadPage { series: Vec::with_capacity(room), is_last: false };
    // At least one byte, so that each call makes progress.
    while page.series.len() < bytes_max.max(1) as usize {
        match put_next(&mut page.series)? {
            Slice::Next(()) => {}
            Slice::Again => break,
            Slice::End => {
                page.is_last = true;
                break;
            }
        }
    }
    Ok(page)
}
