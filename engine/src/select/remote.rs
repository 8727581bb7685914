//! Another instance's head, of which every call does a slice of work.
//!
//! Where matchers cost the head more than a slice, this instance applies them: it walks over the
//! labels of all series, page by page, and tells the head which ones to keep.

use super::{ExemplarSource, HeadSource, Lookup, SeriesSource, StringSource};
use crate::error::{Error, Result};
use crate::model::{Labels, MatcherSets, MatcherSpec, TimeRange};
use crate::storage::StorageError;
use crate::wire::{ChunkedSeries, split_chunked_series};
use std::collections::BTreeSet;

/// Bytes of head series that are fetched at a time: little enough that writes do not wait long.
const PAGE_BYTES: u32 = 64 * 1024;

/// Bytes of names or values that are fetched at a time.
const STRINGS_BYTES: u32 = 64 * 1024;

/// What opening something on a head came to.
pub enum Opened<T> {
    /// It is open.
    Ready(T),
    /// A part of the work is done; the same call goes on.
    Again,
    /// The matchers cost more than a slice. The caller walks over the labels of all series, and
    /// applies them itself.
    TooCostly,
}

/// A part of the head's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadPage {
    /// `prometheus.ChunkedSeries` messages, each preceded by its length. There may be none before
    /// the end.
    pub series: Vec<u8>,
    /// Whether that was all.
    pub is_last: bool,
}

/// The result of a slice of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadDeletion {
    /// Series that may have had samples in the range.
    pub series: u64,
    /// Whether that was all.
    pub is_done: bool,
}

/// The head of another instance.
pub trait RemoteHead {
    /// A position in its series.
    type Cursor: RemoteCursor + 'static;
    /// A position in its names or values.
    type Strings: RemoteStrings + 'static;

    /// Opens a cursor of the series that any of the sets selects.
    fn open(
        &self,
        sets: &[Vec<MatcherSpec>],
        range: TimeRange,
        external: &Labels,
    ) -> Result<Opened<Self::Cursor>>;

    /// Opens label names.
    fn label_names(&self, lookup: &Lookup) -> Result<Opened<Self::Strings>>;

    /// Opens the values of a label name.
    fn label_values(&self, name: &str, lookup: &Lookup) -> Result<Opened<Self::Strings>>;

    /// The exemplars in a range, as they came.
    fn exemplars(&self, range: TimeRange) -> Result<Box<dyn ExemplarSource>>;

    /// The range that the next block should hold, if one is due.
    fn plan_cut(&self) -> Result<Option<TimeRange>>;

    /// Truncates head and log of what a committed block holds; returns whether some is left to do.
    fn truncate(&self, before_ms: i64) -> Result<bool>;

    /// A number that is another one after samples of the head were deleted.
    fn deletion_mark(&self) -> Result<u64>;
}

/// A cursor on another instance's head.
pub trait RemoteCursor {
    /// The next series, about as many bytes as are asked for.
    fn next(&mut self, bytes_max: u32) -> Result<HeadPage>;

    /// The next series without chunks and external labels.
    fn labels(&mut self, bytes_max: u32, only_in_range: bool) -> Result<HeadPage>;

    /// Keeps series of the last page of labels.
    fn keep(&mut self, positions: &[u32]) -> Result<()>;

    /// Starts again from the first series, with the kept ones only.
    fn rewind(&mut self) -> Result<()>;

    /// Deletes samples of the next series.
    fn delete(&mut self) -> Result<HeadDeletion>;
}

/// Names or values of another instance's head.
pub trait RemoteStrings {
    /// The next ones, about as many bytes as are asked for, and none at the end.
    fn next(&mut self, bytes_max: u32) -> Result<Vec<String>>;
}

/// Calls until what is asked for is open; `None` if it costs the head too much.
fn opened<T>(mut open: impl FnMut() -> Result<Opened<T>>) -> Result<Option<T>> {
    loop {
        match open()? {
            Opened::Ready(ready) => return Ok(Some(ready)),
            Opened::Again => {}
            Opened::TooCostly => return Ok(None),
        }
    }
}

/// A cursor of all series.
fn open_all<R: RemoteHead>(head: &R, range: TimeRange, external: &Labels) -> Result<R::Cursor> {
    // Without a matcher there is nothing that costs too much: a host that says so fails.
    let failed = || {
        let reason = "the head's instance refused to select all series".into();
        Error::Storage(StorageError::Io { reason })
    };
    opened(|| head.open(&[], range, external))?.ok_or_else(failed)
}

/// A cursor of the series that any of the sets selects.
fn open_selected<R: RemoteHead>(
    head: &R,
    specs: &[Vec<MatcherSpec>],
    range: TimeRange,
    external: &Labels,
) -> Result<R::Cursor> {
    if let Some(cursor) = opened(|| head.open(specs, range, external))? {
        return Ok(cursor);
    }
    let sets = MatcherSets::new(specs)?;
    let mut cursor = open_all(head, range, external)?;
    // Nothing is kept as long as nothing else is said.
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

/// The data that is fetched of series.
#[derive(Clone, Copy)]
enum What {
    /// With their chunks.
    Series,
    /// Their labels.
    Labels { only_in_range: bool },
}

/// Series of another instance's head, fetched a page at a time.
struct Pages<C> {
    cursor: C,
    what: What,
    page: HeadPage,
    read: usize,
    /// How many pages were fetched.
    fetched: usize,
}

impl<C: RemoteCursor> Pages<C> {
    fn new(cursor: C, what: What) -> Pages<C> {
        Pages { cursor, what, page: HeadPage::default(), read: 0, fetched: 0 }
    }

    fn next(&mut self) -> Result<Option<ChunkedSeries>> {
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
        // The head need not be asked again for what is here as a whole.
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

/// Series without their chunks.
struct RemoteLabels<C> {
    pages: Pages<C>,
    /// The matchers that the head did not apply.
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

/// Names or values, fetched a batch at a time.
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

/// Strings that were collected from series.
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
