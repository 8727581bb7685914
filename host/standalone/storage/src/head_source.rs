//! `head-source`: never called, because there is one engine instance, which owns the head itself.

use crate::Component;
use crate::bindings::exports::tidepool::tsdb::head_source::{
    Deletion, Exemplars, Guest, GuestCursor, GuestExemplars, GuestStrings, OpenedCursor,
    OpenedStrings, Page,
};
use crate::bindings::tidepool::tsdb::types::{Error, Label, Lookup, Matcher, TimeRange};

pub enum Nothing {}

fn refused<T>() -> Result<T, Error> {
    Err(Error::WrongRole("head-source".into()))
}

impl Guest for Component {
    type Cursor = Nothing;
    type Strings = Nothing;
    type Exemplars = Nothing;

    fn open(_: Vec<Vec<Matcher>>, _: TimeRange, _: Vec<Label>) -> Result<OpenedCursor, Error> {
        refused()
    }

    fn label_names(_: Lookup) -> Result<OpenedStrings, Error> {
        refused()
    }

    fn label_values(_: String, _: Lookup) -> Result<OpenedStrings, Error> {
        refused()
    }

    fn scan_exemplars(_: TimeRange) -> Result<Exemplars, Error> {
        refused()
    }

    fn plan_cut() -> Result<Option<TimeRange>, Error> {
        refused()
    }

    fn truncate(_: i64) -> Result<bool, Error> {
        refused()
    }

    fn deletion_mark() -> Result<u64, Error> {
        refused()
    }
}

impl GuestCursor for Nothing {
    fn next(&self, _: u32) -> Result<Page, Error> {
        match *self {}
    }

    fn labels(&self, _: u32, _: bool) -> Result<Page, Error> {
        match *self {}
    }

    fn keep(&self, _: Vec<u32>) -> Result<(), Error> {
        match *self {}
    }

    fn delete(&self) -> Result<Deletion, Error> {
        match *self {}
    }

    fn rewind(&self) -> Result<(), Error> {
        match *self {}
    }
}

impl GuestStrings for Nothing {
    fn next(&self, _: u32) -> Result<Vec<String>, Error> {
        match *self {}
    }
}

impl GuestExemplars for Nothing {
    fn next(&self, _: u32) -> Result<Option<Vec<u8>>, Error> {
        match *self {}
    }
}
