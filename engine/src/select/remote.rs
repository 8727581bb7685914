//! The head of another instance; every call on it does a slice of work.
//!
//! If matchers cost the head more than a slice, this instance applies the matchers: it reads the
//! labels of all series, page by page, and reports to the head which series to keep.

use super::{ExemplarSource, HeadSource, Lookup, SeriesSource, StringSource};
use crate::error::{Error, Result};
use crate::model::{Labels, MatcherSets, MatcherSpec, TimeRange};
use crate::storage::StorageError;
use crate::wire::{ChunkedSeries, split_chunked_series};
use std::collections::BTreeSet;

/// Bytes of head series fetched at a time: few enough that writes do not wait long.
const PAGE_BYTES: u32 = 64 * 1024;

/// Bytes of names or values fetched at a time.
const STRINGS_BYTES: u32 = 64 * 1024;

/// Result of opening a cursor on a head.
pub enum Opened<T> {
    /// The cursor, which is open now.
    Ready(T),
    /// A part of the work is done; repeating the call continues it.
    Again,
    /// The matchers cost more than a slice. The caller reads the labels of all series, and applies
    /// the matchers itself.
    TooCostly,
}

/// A page of the head's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadPage {
    /// `prometheus.ChunkedSeries` messages, each preceded by its length; may be empty although more
    /// pages follow.
    pub series: Vec<u8>,
    /// Whether this is the last page.
    pub is_last: bool,
}

/// Result of a slice of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadDeletion {
    /// Number of series that may have had samples in the range.
    pub series: u64,
    /// Whether the deletion is complete.
    pub is_done: bool,
}

/// The head of another instance.
pub trait RemoteHead {
    /// A position in the series of the head.
    type Cursor: RemoteCursor + 'static;
    /// A position in label names or values of the head.
    type Strings: RemoteStrings + 'static;

    /// Opens a cursor of the series that any of the sets selects.
    fn open(
        &self,
        sets: &[Vec<MatcherSpec>],
        range: TimeRange,
        external: &Labels,
    ) -> Result<Opened<Self::Cursor>>;

    /// Opens the label names of a lookup.
    fn label_names(&self, lookup: &Lookup) -> Result<Opened<Self::Strings>>;

    /// Opens the values of a label name.
    fn label_values(&self, name: &str, lookup: &Lookup) -> Result<Opened<Self::Strings>>;

    /// Returns the exemplars in a range, not sorted.
    fn exemplars(&self, range: TimeRange) -> Result<Box<dyn ExemplarSource>>;

    /// Returns the range that the next block should hold, if one is due.
    fn plan_cut(&self) -> Result<Option<TimeRange>>;

    /// Truncates head and log up to the end of a committed block; returns whether work is left.
    fn truncate(&self, before_ms: i64) -> Result<bool>;

    /// Returns a number that changes when samples of the head are deleted.
    fn deletion_mark(&self) -> Result<u64>;
}

/// A cursor on another instance's head.
pub trait RemoteCursor {
    /// Returns the next series, about `bytes_max` bytes of messages.
    fn next(&mut self, bytes_max: u32) -> Result<HeadPage>;

    /// Returns the next series, without chunks and external labels.
    fn labels(&mut self, bytes_max: u32, only_in_range: bool) -> Result<HeadPage>;

    /// Selects series of the last page of labels, by position, for the time after the rewind.
    fn keep(&mut self, positions: &[u32]) -> Result<()>;

    /// Starts again from the first series; if series were kept, with these series only.
    fn rewind(&mut self) -> Result<()>;

    /// Deletes the samples in the range of the cursor from the next series.
    fn delete(&mut self) -> Result<HeadDeletion>;
}

/// Names or values of another instance's head.
pub trait RemoteStrings {
    /// Returns the next strings, about `bytes_max` bytes; none at the end.
    fn next(&mut self, bytes_max: u32) -> Result<Vec<String>>;
}

/// Repeats a call until its cursor is open; `None` if it costs the head too much.
fn opened<T>(mut open: impl FnMut() -> Result<Opened<T>>) -> Result<Option<T>> {
    loop {
        match open()? {
            Opened::Ready(ready) => return Ok(Some(ready)),
            Opened::Again => {}
            Opened::TooCostly => return Ok(None),
        }
    }
}

fn open_all<R: RemoteHead>(head: &R, range: TimeRange, external: &Labels) -> Result<R::Cursor> {
    // Without matchers the head never refuses, so a refusal is a failure of the host.
    let failed = || {
        let reason = "the head's instance refused to select all series".into();
        Error::Storage(StorageError::Io { reason })
    };
    opened(|| head.open(&[], range, external))?.ok_or_else(failed)
}

fn open_selected<R: RemoteHead>(
    head: &R,
    specs: &[Vec<MatcherSpec>],
    range: TimeRange,
    external: &Labels,
) -> Result<R::Cursor> {
    if let Some(cursor) = opened(|| head.open(specs, range, external))? {
        return Ok(cursor);
    }
    // Compiled only now: if the head selects, the sets are not needed.
    let sets = MatcherSets::new(specs)?;
    let mut cursor = open_all(head, range, external)?;
    // From the first `keep` on, only kept series remain.
    cursor.keep(&[])?;
    let mut positions = Vec::new();
    loop {
        let page = cursor.labels(PAGE_BYTES, true)?;
        positions.clear();
        let mut rest = page.series.as_slice();
        for position in 0u32.. {
            if rest.is_empty() {
                break;
            }
            let (series, after) = split_chunked_series(rest)?;
            rest = after;
            if sets.select(&series.labels) {
                positions.push(position);
            }
        }
        // A call of the other instance costs more than this test.
        if !positions.is_empty() {
            cursor.keep(&positions)?;
        }
        if page.is_last {
            cursor.rewind()?;
            return Ok(cursor);
        }
    }
}

impl<R: RemoteHead> HeadSource for R {
    fn select(
        &self,
        matchers: &[MatcherSpec],
        range: TimeRange,
        external: &Labels,
    ) -> Result<Box<dyn SeriesSource>> {
        let cursor = open_selected(self, &[matchers.to_vec()], range, external)?;
        Ok(Box::new(RemoteSeries { pages: Pages::new(cursor, What::Series) }))
    }

    fn series(&self, lookup: &Lookup) -> Result<Box<dyn SeriesSource>> {
        Ok(Box::new(RemoteLabels::open(self, lookup, true)?))
    }

    fn label_names(&self, lookup: &Lookup) -> Result<Box<dyn StringSource>> {
        if let Some(strings) = opened(|| RemoteHead::label_names(self, lookup))? {
            return Ok(Box::new(FetchedStrings { strings, batch: Vec::new().into_iter() }));
        }
        collected(RemoteLabels::open(self, lookup, false)?, |series, found| {
            for (name, _) in series.labels.iter() {
                // Most names are known already, and insertion needs a copy.
                if !found.contains(name) {
                    found.insert(name.to_owned());
                }
            }
        })
    }

    fn label_values(&self, name: &str, lookup: &Lookup) -> Result<Box<dyn StringSource>> {
        if let Some(strings) = opened(|| RemoteHead::label_values(self, name, lookup))? {
            return Ok(Box::new(FetchedStrings { strings, batch: Vec::new().into_iter() }));
        }
        collected(RemoteLabels::open(self, lookup, false)?, |series, found| {
            let value = series.labels.get(name);
            if !value.is_empty() && !found.contains(value) {
                found.insert(value.to_owned());
            }
        })
    }

    fn delete(&self, selectors: &[Vec<MatcherSpec>], range: TimeRange) -> Result<u64> {
        let mut cursor = open_selected(self, selectors, range, &Labels::default())?;
        let mut series = 0;
        loop {
            let slice = cursor.delete()?;
            series += slice.series;
            if slice.is_done {
                return Ok(series);
            }
        }
    }

    fn exemplars(&self, range: TimeRange) -> Result<Box<dyn ExemplarSource>> {
        RemoteHead::exemplars(self, range)
    }

    fn plan_cut(&self) -> Result<Option<TimeRange>> {
        RemoteHead::plan_cut(self)
    }

    fn truncate(&self, before_ms: i64) -> Result<bool> {
        RemoteHead::truncate(self, before_ms)
    }

    fn deletion_mark(&self) -> Result<u64> {
        RemoteHead::deletion_mark(self)
    }
}

#[derive(Clone, Copy)]
enum What {
    Series,
    Labels { only_in_range: bool },
}

/// Series of another instance's head, fetched a page at a time.
struct Pages<C> {
    cursor: C,
    what: What,
    page: HeadPage,
    read: usize,
    fetched: usize,
}

impl<C: RemoteCursor> Pages<C> {
    fn new(cursor: C, what: What) -> Pages<C> {
        Pages { cursor, what, page: HeadPage::default(), read: 0, fetched: 0 }
    }

    fn next(&mut self) -> Result<Option<ChunkedSeries>> {
        // A page without series may come before the end.
        while self.read == self.page.series.len() {
            if self.page.is_last {
                return Ok(None);
            }
            self.page = match self.what {
                What::Series => self.cursor.next(PAGE_BYTES)?,
                What::Labels { only_in_range } => self.cursor.labels(PAGE_BYTES, only_in_range)?,
            };
            self.read = 0;
            self.fetched += 1;
        }
        let (series, rest) = split_chunked_series(&self.page.series[self.read..])?;
        self.read = self.page.series.len() - rest.len();
        Ok(Some(series))
    }

    fn rewind(&mut self) -> Result<()> {
        self.read = 0;
        // A single page that is complete need not be fetched again.
        if self.fetched > 1 || !self.page.is_last {
            self.cursor.rewind()?;
            (self.page, self.fetched) = (HeadPage::default(), 0);
        }
        Ok(())
    }
}

struct RemoteSeries<C> {
    pages: Pages<C>,
}

impl<C: RemoteCursor> SeriesSource for RemoteSeries<C> {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        self.pages.next()
    }

    fn rewind(&mut self) -> Result<()> {
        self.pages.rewind()
    }
}

struct RemoteLabels<C> {
    pages: Pages<C>,
    /// Matchers that the head did not apply.
    sets: Option<MatcherSets>,
}

impl<C: RemoteCursor> RemoteLabels<C> {
    fn open<R: RemoteHead<Cursor = C>>(
        head: &R,
        lookup: &Lookup,
        only_in_range: bool,
    ) -> Result<RemoteLabels<C>> {
        let none = Labels::default();
        let selected = opened(|| head.open(&lookup.matcher_sets, lookup.range, &none))?;
        let (cursor, sets) = match selected {
            Some(cursor) => (cursor, None),
            None => (open_all(head, lookup.range, &none)?, Some(lookup.sets()?)),
        };
        Ok(RemoteLabels { pages: Pages::new(cursor, What::Labels { only_in_range }), sets })
    }
}

impl<C: RemoteCursor> SeriesSource for RemoteLabels<C> {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        while let Some(series) = self.pages.next()? {
            if self.sets.as_ref().is_none_or(|sets| sets.select(&series.labels)) {
                return Ok(Some(series));
            }
        }
        Ok(None)
    }

    fn rewind(&mut self) -> Result<()> {
        self.pages.rewind()
    }
}

struct FetchedStrings<T> {
    strings: T,
    batch: std::vec::IntoIter<String>,
}

impl<T: RemoteStrings> StringSource for FetchedStrings<T> {
    fn next_string(&mut self) -> Result<Option<String>> {
        if self.batch.as_slice().is_empty() {
            self.batch = self.strings.next(STRINGS_BYTES)?.into_iter();
        }
        Ok(self.batch.next())
    }
}

struct CollectedStrings(std::collections::btree_set::IntoIter<String>);

fn collected(
    mut series: impl SeriesSource,
    mut collect: impl FnMut(&ChunkedSeries, &mut BTreeSet<String>),
) -> Result<Box<dyn StringSource>> {
    let mut found = BTreeSet::new();
    while let Some(series) = series.next_series()? {
        collect(&series, &mut found);
    }
    Ok(Box::new(CollectedStrings(found.into_iter())))
}

impl StringSource for CollectedStrings {
    fn next_string(&mut self) -> Result<Option<String>> {
        Ok(self.0.next())
    }
}
