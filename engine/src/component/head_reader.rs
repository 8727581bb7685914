//! Exports the cursors through which other instances read the head of this instance.

use super::OpenStrings;
use super::bindings::exports::tidepool::tsdb::store::{
    self, GuestHeadCursor, HeadCursor, HeadDeletion, HeadPage, OpenedCursor, OpenedStrings,
};
use super::bindings::tidepool::tsdb::types as wit;
use crate::engine::{HeadReader, HeadStringReader};
use crate::select::{self, Opened};
use std::cell::RefCell;

pub(super) struct OpenHeadCursor(RefCell<HeadReader>);

impl GuestHeadCursor for OpenHeadCursor {
    fn next(&self, bytes_max: u32) -> Result<HeadPage, wit::Error> {
        Ok(self.0.borrow_mut().next(bytes_max)?.into())
    }

    fn labels(&self, bytes_max: u32, only_in_range: bool) -> Result<HeadPage, wit::Error> {
        Ok(self.0.borrow_mut().labels(bytes_max, only_in_range)?.into())
    }

    fn keep(&self, positions: Vec<u32>) -> Result<(), wit::Error> {
        Ok(self.0.borrow_mut().keep(&positions)?)
    }

    fn rewind(&self) -> Result<(), wit::Error> {
        self.0.borrow_mut().rewind();
        Ok(())
    }

    fn delete(&self) -> Result<HeadDeletion, wit::Error> {
        let select::HeadDeletion { series, is_done } = self.0.borrow_mut().delete()?;
        Ok(HeadDeletion { series, is_done })
    }
}

impl From<select::HeadPage> for HeadPage {
    fn from(page: select::HeadPage) -> HeadPage {
        HeadPage { series: page.series, is_last: page.is_last }
    }
}

impl From<Opened<HeadReader>> for OpenedCursor {
    fn from(opened: Opened<HeadReader>) -> OpenedCursor {
        match opened {
            Opened::Ready(reader) => {
                OpenedCursor::Cursor(HeadCursor::new(OpenHeadCursor(RefCell::new(reader))))
            }
            Opened::Again => OpenedCursor::Again,
            Opened::TooCostly => OpenedCursor::TooCostly,
        }
    }
}

impl From<Opened<HeadStringReader>> for OpenedStrings {
    fn from(opened: Opened<HeadStringReader>) -> OpenedStrings {
        match opened {
            Opened::Ready(strings) => OpenedStrings::Strings(store::Strings::new(
                OpenStrings::OfHead(RefCell::new(strings)),
            )),
            Opened::Again => OpenedStrings::Again,
            Opened::TooCostly => OpenedStrings::TooCostly,
        }
    }
}
