//! `head-source`: the head of another instance, reached through the store.

use crate::wasm::bindings::tidepool::tsdb::head_source::{
    Deletion, Host, HostCursor, HostExemplars, HostStrings, OpenedCursor, OpenedStrings, Page,
};
use crate::wasm::state::InstanceState;
use crate::wasm::{
    Error, HeadAccess, HeadDeletion, HeadOpened, HeadPage, Label, Lookup, Matcher, TimeRange,
};
use std::sync::Arc;
use wasmtime::Result;
use wasmtime::component::Resource;

/// A cursor on the head.
pub struct HeadCursor(OpenOnHead);

/// A list of label names or values of the head.
pub struct HeadStrings(OpenOnHead);

/// Exemplars of the head.
pub struct HeadExemplars(OpenOnHead);

/// Something that is open on the head. Closed when dropped, also by an instance that crashed.
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
    /// Whether something of another instance's head is open.
    pub(in crate::wasm) fn reads_head(&self) -> bool {
        Arc::strong_count(&self.open_on_head) > 1
    }

    fn head(&self) -> Result<Arc<dyn HeadAccess>, Error> {
        let head = self.storage.head.as_ref().map(Arc::clone);
        head.ok_or_else(|| Error::WrongRole("head-source".into()))
    }

    /// Opens something on the head, and keeps it for the instance.
    fn open_on_head<T: Send + 'static>(
        &mut self,
        kind: impl FnOnce(OpenOnHead) -> T,
        open: impl FnOnce(&dyn HeadAccess) -> Result<HeadOpened<u64>, Error>,
    ) -> Result<Result<HeadOpened<Resource<T>>, Error>> {
        let opened = self.head().and_then(|head| Ok((open(&*head)?, head)));
        let (opened, head) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let _counted = Arc::clone(&self.open_on_head);
        Ok(Ok(match opened {
            HeadOpened::Ready(number) => {
                let opened = self.table.push(kind(OpenOnHead { head, number, _counted }))?;
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
        let opened =
            self.open_on_head(HeadCursor, |head| head.open(matcher_sets, range, external_labels))?;
        Ok(opened.map(|opened| match opened {
            HeadOpened::Ready(cursor) => OpenedCursor::Cursor(cursor),
            HeadOpened::Again => OpenedCursor::Again,
            HeadOpened::TooCostly => OpenedCursor::TooCostly,
        }))
    }

    fn label_names(&mut self, lookup: Lookup) -> Result<Result<OpenedStrings, Error>> {
        let opened = self.open_on_head(HeadStrings, |head| head.label_names(lookup))?;
        Ok(opened.map(Into::into))
    }

    fn label_values(
        &mut self,
        name: String,
        lookup: Lookup,
    ) -> Result<Result<OpenedStrings, Error>> {
        let opened = self.open_on_head(HeadStrings, |head| head.label_values(name, lookup))?;
        Ok(opened.map(Into::into))
    }

    fn scan_exemplars(
        &mut self,
        range: TimeRange,
    ) -> Result<Result<Resource<HeadExemplars>, Error>> {
        let opened = self.head().and_then(|head| Ok((head.scan_exemplars(range)?, head)));
        match opened {
            Ok((number, head)) => {
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

impl HostCursor for InstanceState {
    fn next(
        &mut self,
        cursor: Resource<HeadCursor>,
        bytes_max: u32,
    ) -> Result<Result<Page, Error>> {
        let HeadCursor(OpenOnHead { head, number, .. }) = self.table.get(&cursor)?;
        Ok(head.next(*number, bytes_max).map(Into::into))
    }

    fn labels(
        &mut self,
        cursor: Resource<HeadCursor>,
        bytes_max: u32,
        only_in_range: bool,
    ) -> Result<Result<Page, Error>> {
        let HeadCursor(OpenOnHead { head, number, .. }) = self.table.get(&cursor)?;
        Ok(head.labels(*number, bytes_max, only_in_range).map(Into::into))
    }

    fn keep(
        &mut self,
        cursor: Resource<HeadCursor>,
        positions: Vec<u32>,
    ) -> Result<Result<(), Error>> {
        let HeadCursor(OpenOnHead { head, number, .. }) = self.table.get(&cursor)?;
        Ok(head.keep(*number, positions))
    }

    fn delete(&mut self, cursor: Resource<HeadCursor>) -> Result<Result<Deletion, Error>> {
        let HeadCursor(OpenOnHead { head, number, .. }) = self.table.get(&cursor)?;
        let deleted = head.delete(*number);
        Ok(deleted.map(|HeadDeletion { series, is_done }| Deletion { series, is_done }))
    }

    fn rewind(&mut self, cursor: Resource<HeadCursor>) -> Result<Result<(), Error>> {
        let HeadCursor(OpenOnHead { head, number, .. }) = self.table.get(&cursor)?;
        Ok(head.rewind(*number))
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
        let HeadStrings(OpenOnHead { head, number, .. }) = self.table.get(&strings)?;
        Ok(head.next_strings(*number, bytes_max))
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
