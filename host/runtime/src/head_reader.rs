//! Calls of the head's instance that serve the reads of other instances.

use super::bindings::exports::tidepool::tsdb::store::{OpenedCursor, OpenedStrings};
use super::instance::{CallError, Instance, StringsHandle};
use super::{HeadDeletion, HeadPage, Label, Lookup, Matcher, TimeRange};
use wasmtime::component::ResourceAny;

/// A cursor on the head of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct HeadCursorHandle(ResourceAny);

/// Result of opening a resource on the head.
pub enum HeadOpened<T> {
    Ready(T),
    /// A slice of the work is done; the caller must repeat the same call.
    Again,
    /// The call would cost the head more than a slice; the caller applies the matchers itself.
    TooCostly,
}

impl<T> HeadOpened<T> {
    /// Maps the resource of `Ready`.
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

    pub fn read_head_names(
        &mut self,
        lookup: &Lookup,
    ) -> Result<HeadOpened<StringsHandle>, CallError> {
        Ok(self.call(|guest, store| guest.call_read_head_names(store, lookup))?.into())
    }

    pub fn read_head_values(
        &mut self,
        name: &str,
        lookup: &Lookup,
    ) -> Result<HeadOpened<StringsHandle>, CallError> {
        Ok(self.call(|guest, store| guest.call_read_head_values(store, name, lookup))?.into())
    }

    pub fn next_of_head(
        &mut self,
        cursor: HeadCursorHandle,
        bytes_max: u32,
    ) -> Result<HeadPage, CallError> {
        self.call(|guest, store| guest.head_cursor().call_next(store, cursor.0, bytes_max))
    }

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

    pub fn keep_of_head(
        &mut self,
        cursor: HeadCursorHandle,
        positions: &[u32],
    ) -> Result<(), CallError> {
        self.call(|guest, store| guest.head_cursor().call_keep(store, cursor.0, positions))
    }

    pub fn rewind_head(&mut self, cursor: HeadCursorHandle) -> Result<(), CallError> {
        self.call(|guest, store| guest.head_cursor().call_rewind(store, cursor.0))
    }

    pub fn delete_from_head(
        &mut self,
        cursor: HeadCursorHandle,
    ) -> Result<HeadDeletion, CallError> {
        self.call(|guest, store| guest.head_cursor().call_delete(store, cursor.0))
    }

    /// Drops a cursor of the head.
    pub fn close_head_cursor(&mut self, cursor: HeadCursorHandle) -> Result<(), CallError> {
        self.drop_resource(cursor.0)
    }
}
