//! The calls by which the head's instance is read for other instances.

use super::bindings::exports::tidepool::tsdb::store::{OpenedCursor, OpenedStrings};
use super::instance::{CallError, Instance, StringsHandle};
use super::{HeadDeletion, HeadPage, Label, Lookup, Matcher, TimeRange};
use wasmtime::component::ResourceAny;

/// A cursor on the head of one instance; of no use to any other.
#[derive(Clone, Copy)]
pub struct HeadCursorHandle(ResourceAny);

/// What opening something on the head came to.
pub enum HeadOpened<T> {
    /// It is open.
    Ready(T),
    /// A slice of the work is done; the same call goes on.
    Again,
    /// It costs the head more than a slice of work; the caller applies the matchers itself.
    TooCostly,
}

impl<T> HeadOpened<T> {
    /// The same about something else.
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> HeadOpened<U> {
        match self {
            HeadOpened::Ready(ready) => HeadOpened::Ready(map(ready)),
            HeadOpened::Again => HeadOpened::Again,
            HeadOpened::TooCostly => HeadOpened::TooCostly,
        }
    }
}

impl From<OpenedStrings> for HeadOpened<StringsHandle> {
    fn from(opened: OpenedStrings) -> HeadOpened<StringsHandle> {
        match opened {
            OpenedStrings::Strings(strings) => HeadOpened::Ready(StringsHandle(strings)),
            OpenedStrings::Again => HeadOpened::Again,
            OpenedStrings::TooCostly => HeadOpened::TooCostly,
        }
    }
}

impl Instance {
    /// `store.read-head`
    pub fn read_head(
        &mut self,
        matcher_sets: &[Vec<Matcher>],
        range: TimeRange,
        external_labels: &[Label],
    ) -> Result<HeadOpened<HeadCursorHandle>, CallError> {
        let opened = self.call(|guest, store| {
            guest.call_read_head(store, matcher_sets, range, external_labels)
        })?;
        Ok(match opened {
            OpenedCursor::Cursor(cursor) => HeadOpened::Ready(HeadCursorHandle(cursor)),
            OpenedCursor::Again => HeadOpened::Again,
            OpenedCursor::TooCostly => HeadOpened::TooCostly,
        })
    }

    /// `store.read-head-names`
    pub fn read_head_names(
        &mut self,
        lookup: &Lookup,
    ) -> Result<HeadOpened<StringsHandle>, CallError> {
        Ok(self.call(|guest, store| guest.call_read_head_names(store, lookup))?.into())
    }

    /// `store.read-head-values`
    pub fn read_head_values(
        &mut self,
        name: &str,
        lookup: &Lookup,
    ) -> Result<HeadOpened<StringsHandle>, CallError> {
        Ok(self.call(|guest, store| guest.call_read_head_values(store, name, lookup))?.into())
    }

    /// `store.head-cursor.next`
    pub fn next_of_head(
        &mut self,
        cursor: HeadCursorHandle,
        bytes_max: u32,
    ) -> Result<HeadPage, CallError> {
        self.call(|guest, store| guest.head_cursor().call_next(store, cursor.0, bytes_max))
    }

    /// `store.head-cursor.labels`
    pub fn labels_of_head(
        &mut self,
        cursor: HeadCursorHandle,
        bytes_max: u32,
        only_in_range: bool,
    ) -> Result<HeadPage, CallError> {
        self.call(|guest, store| {
            guest.head_cursor().call_labels(store, cursor.0, bytes_max, only_in_range)
        })
    }

    /// `store.head-cursor.keep`
    pub fn keep_of_head(
        &mut self,
        cursor: HeadCursorHandle,
        positions: &[u32],
    ) -> Result<(), CallError> {
        self.call(|guest, store| guest.head_cursor().call_keep(store, cursor.0, positions))
    }

    /// `store.head-cursor.rewind`
    pub fn rewind_head(&mut self, cursor: HeadCursorHandle) -> Result<(), CallError> {
        self.call(|guest, store| guest.head_cursor().call_rewind(store, cursor.0))
    }

    /// `store.head-cursor.delete`
    pub fn delete_from_head(
        &mut self,
        cursor: HeadCursorHandle,
    ) -> Result<HeadDeletion, CallError> {
        self.call(|guest, store| guest.head_cursor().call_delete(store, cursor.0))
    }

    /// Drops a cursor on the head.
    pub fn close_head_cursor(&mut self, cursor: HeadCursorHandle) -> Result<(), CallError> {
        self.drop_resource(cursor.0)
    }
}
