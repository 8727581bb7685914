//! The import `head-source`: the head of another instance, reached through the store.

use crate::bindings::tidepool::tsdb::head_source::{
    Deletion, Host, HostCursor, HostExemplars, HostStrings, OpenedCursor, OpenedStrings, Page,
};
use crate::state::InstanceState;
use crate::{
    Error, FirstPage, HeadAccess, HeadDeletion, HeadOpened, HeadPage, Label, Lookup, Matcher,
    TimeRange, WithFirst,
};
use std::collections::VecDeque;
use std::sync::Arc;
use wasmtime::Result;
use wasmtime::component::Resource;

/// A resource on the head is opened with a first page only while at most this number of such
/// resources is open: first pages stay in memory until the instance requests them.
const OPEN_WITH_FIRST_MAX: usize = 4;

pub struct HeadCursor {
    open: OpenOnHead,
    /// The next page, if it came together with the cursor.
    ahead: Option<(FirstPage, HeadPage)>,
}

/// A list of label names or values of the head.
pub struct HeadStrings {
    open: OpenOnHead,
    /// The next batches, which came together with the list.
    ahead: VecDeque<Vec<String>>,
}

pub struct HeadExemplars(OpenOnHead);

/// An open resource on the head. Dropping this value closes it, also after a crash.
struct OpenOnHead {
    head: Arc<dyn HeadAccess>,
    number: u64,
    _counted: Arc<()>,
}

impl Drop for OpenOnHead {
    fn drop(&mut self) {
        self.head.close(self.number);
    }
}

impl InstanceState {
    /// Returns whether a resource of another instance's head is open.
    pub(crate) fn reads_head(&self) -> bool {
        // One of the references is in the state itself.
        Arc::strong_count(&self.open_on_head) > 1
    }

    fn head(&self) -> Result<Arc<dyn HeadAccess>, Error> {
        let head = self.storage.head.as_ref().map(Arc::clone);
        head.ok_or_else(|| Error::WrongRole("head-source".into()))
    }

    /// Opens a resource on the head, and adds it to the instance's table.
    fn open_on_head<T: Send + 'static, F>(
        &mut self,
        kind: impl FnOnce(OpenOnHead, F) -> T,
        open: impl FnOnce(&dyn HeadAccess) -> Result<HeadOpened<WithFirst<F>>, Error>,
    ) -> Result<Result<HeadOpened<Resource<T>>, Error>> {
        let opened = self.head().and_then(|head| Ok((open(&*head)?, head)));
        let (opened, head) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        // `reads_head` counts these clones.
        let _counted = Arc::clone(&self.open_on_head);
        Ok(Ok(match opened {
            HeadOpened::Ready((number, first)) => {
                let opened = OpenOnHead { head, number, _counted };
                let opened = self.table.push(kind(opened, first))?;
                HeadOpened::Ready(opened)
            }
            HeadOpened::Again => HeadOpened::Again,
            HeadOpened::TooCostly => HeadOpened::TooCostly,
        }))
    }
}

impl From<HeadOpened<Resource<HeadStrings>>> for OpenedStrings {
    fn from(opened: HeadOpened<Resource<HeadStrings>>) -> OpenedStrings {
        match opened {
            HeadOpened::Ready(strings) => OpenedStrings::Strings(strings),
            HeadOpened::Again => OpenedStrings::Again,
            HeadOpened::TooCostly => OpenedStrings::TooCostly,
        }
    }
}

impl From<HeadPage> for Page {
    fn from(page: HeadPage) -> Page {
        Page { series: page.series, is_last: page.is_last }
    }
}

impl Host for InstanceState {
    fn open(
        &mut self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
    ) -> Result<Result<OpenedCursor, Error>> {
        let is_selective =
            matcher_sets.iter().all(|set| !set.is_empty()) && !matcher_sets.is_empty();
        let has_few = Arc::strong_count(&self.open_on_head) <= OPEN_WITH_FIRST_MAX;
        let first = self.first_page.filter(|_| is_selective && has_few);
        let cursor = |open, page: Option<HeadPage>| HeadCursor { open, ahead: first.zip(page) };
        let opened = self.open_on_head(cursor, |head| match first {
            Some(first) => head.open_with_first(matcher_sets, range, external_labels, first),
            None => {
                let opened = head.open(matcher_sets, range, external_labels)?;
                Ok(opened.map(|number| (number, None)))
            }
        })?;
        Ok(opened.map(|opened| match opened {
            HeadOpened::Ready(cursor) => OpenedCursor::Cursor(cursor),
            HeadOpened::Again => OpenedCursor::Again,
            HeadOpened::TooCostly => OpenedCursor::TooCostly,
        }))
    }

    fn label_names(&mut self, lookup: Lookup) -> Result<Result<OpenedStrings, Error>> {
        let opened =
            self.open_on_head(HeadStrings::new, |head| head.label_names_with_first(lookup))?;
        Ok(opened.map(Into::into))
    }

    fn label_values(
        &mut self,
        name: String,
        lookup: Lookup,
    ) -> Result<Result<OpenedStrings, Error>> {
        let opened =
            self.open_on_head(HeadStrings::new, |head| head.label_values_with_first(name, lookup))?;
        Ok(opened.map(Into::into))
    }

    fn scan_exemplars(
        &mut self,
        range: TimeRange,
    ) -> Result<Result<Resource<HeadExemplars>, Error>> {
        let opened = self.head().and_then(|head| Ok((head.scan_exemplars(range)?, head)));
        match opened {
            Ok((number, head)) => {
                // `reads_head` counts these clones.
                let _counted = Arc::clone(&self.open_on_head);
                let scan = HeadExemplars(OpenOnHead { head, number, _counted });
                Ok(Ok(self.table.push(scan)?))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    fn plan_cut(&mut self) -> Result<Result<Option<TimeRange>, Error>> {
        Ok(self.head().and_then(|head| head.plan_cut()))
    }

    fn truncate(&mut self, before_ms: i64) -> Result<Result<bool, Error>> {
        Ok(self.head().and_then(|head| head.truncate(before_ms)))
    }

    fn deletion_mark(&mut self) -> Result<Result<u64, Error>> {
        Ok(self.head().and_then(|head| head.deletion_mark()))
    }
}

impl HeadStrings {
    fn new(open: OpenOnHead, first: Vec<Vec<String>>) -> HeadStrings {
        HeadStrings { open, ahead: first.into() }
    }
}

impl HeadCursor {
    /// Takes the page that came together with the cursor, if the page is of the wanted kind. If it
    /// is of another kind, moves the head's cursor back to its start.
    fn take_ahead(&mut self, wanted: Option<FirstPage>) -> Result<Option<HeadPage>, Error> {
        match self.ahead.take() {
            None => Ok(None),
            Some((first, page)) if Some(first) == wanted => Ok(Some(page)),
            Some(_) => {
                self.open.head.rewind(self.open.number)?;
                Ok(None)
            }
        }
    }

    fn next(&mut self, bytes_max: u32) -> Result<HeadPage, Error> {
        match self.take_ahead(Some(FirstPage::Series))? {
            Some(page) => Ok(page),
            None => self.open.head.next(self.open.number, bytes_max),
        }
    }

    fn labels(&mut self, bytes_max: u32, only_in_range: bool) -> Result<HeadPage, Error> {
        let wanted = only_in_range.then_some(FirstPage::Labels);
        match self.take_ahead(wanted)? {
            Some(page) => Ok(page),
            None => self.open.head.labels(self.open.number, bytes_max, only_in_range),
        }
    }

    fn keep(&mut self, positions: Vec<u32>) -> Result<(), Error> {
        // Drops a page that came early and moves the head's cursor back to before that page.
        self.take_ahead(None)?;
        self.open.head.keep(self.open.number, positions)
    }

    fn delete(&mut self) -> Result<HeadDeletion, Error> {
        // Drops a page that came early and moves the head's cursor back to before that page.
        self.take_ahead(None)?;
        self.open.head.delete(self.open.number)
    }

    fn rewind(&mut self) -> Result<(), Error> {
        // The page is of no use, because the cursor starts again.
        self.ahead = None;
        self.open.head.rewind(self.open.number)
    }
}

impl HostCursor for InstanceState {
    fn next(
        &mut self,
        cursor: Resource<HeadCursor>,
        bytes_max: u32,
    ) -> Result<Result<Page, Error>> {
        Ok(self.table.get_mut(&cursor)?.next(bytes_max).map(Into::into))
    }

    fn labels(
        &mut self,
        cursor: Resource<HeadCursor>,
        bytes_max: u32,
        only_in_range: bool,
    ) -> Result<Result<Page, Error>> {
        Ok(self.table.get_mut(&cursor)?.labels(bytes_max, only_in_range).map(Into::into))
    }

    fn keep(
        &mut self,
        cursor: Resource<HeadCursor>,
        positions: Vec<u32>,
    ) -> Result<Result<(), Error>> {
        Ok(self.table.get_mut(&cursor)?.keep(positions))
    }

    fn delete(&mut self, cursor: Resource<HeadCursor>) -> Result<Result<Deletion, Error>> {
        let deleted = self.table.get_mut(&cursor)?.delete();
        Ok(deleted.map(|HeadDeletion { series, is_done }| Deletion { series, is_done }))
    }

    fn rewind(&mut self, cursor: Resource<HeadCursor>) -> Result<Result<(), Error>> {
        Ok(self.table.get_mut(&cursor)?.rewind())
    }

    fn drop(&mut self, cursor: Resource<HeadCursor>) -> Result<()> {
        self.table.delete(cursor)?;
        Ok(())
    }
}

impl HostStrings for InstanceState {
    fn next(
        &mut self,
        strings: Resource<HeadStrings>,
        bytes_max: u32,
    ) -> Result<Result<Vec<String>, Error>> {
        let HeadStrings { open, ahead } = self.table.get_mut(&strings)?;
        Ok(match ahead.pop_front() {
            Some(batch) => Ok(batch),
            None => open.head.next_strings(open.number, bytes_max),
        })
    }

    fn drop(&mut self, strings: Resource<HeadStrings>) -> Result<()> {
        self.table.delete(strings)?;
        Ok(())
    }
}

impl HostExemplars for InstanceState {
    fn next(
        &mut self,
        exemplars: Resource<HeadExemplars>,
        bytes_max: u32,
    ) -> Result<Result<Option<Vec<u8>>, Error>> {
        let HeadExemplars(OpenOnHead { head, number, .. }) = self.table.get(&exemplars)?;
        Ok(head.next_exemplars(*number, bytes_max))
    }

    fn drop(&mut self, exemplars: Resource<HeadExemplars>) -> Result<()> {
        self.table.delete(exemplars)?;
        Ok(())
    }
}
