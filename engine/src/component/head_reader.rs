//! The own head, as other instances read it through their host.

use super::OpenTexts;
use super::bindings::exports::tidepool::tsdb::store::{
    self, GuestHeadCursor, HeadCursor, HeadDeletion, HeadPage, OpenedCursor, OpenedTexts,
};
use super::bindings::tidepool::tsdb::types as wit;
use crate::engine::{self, HeadReader, HeadTextReader, Opened};
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
        let engine::HeadDeletion { series, is_done } = self.0.borrow_mut().delete()?;
        Ok(HeadDeletion { series, is_done })
    }
}

impl From<engine::HeadPage> for HeadPage {
    fn from(page: engine::HeadPage) -> HeadPage {
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

impl From<Opened<HeadTextReader>> for OpenedTexts {
    fn from(opened: Opened<HeadTextReader>) -> OpenedTexts {
        match opened {
            Opened::Ready(texts) => {
                OpenedTexts::Texts(store::Texts::new(OpenTexts::OfHead(RefCell::new(texts))))
            }
            Opened::Again => OpenedTexts::Again,
            Opened::TooCostly => OpenedTexts::TooCostly,
        }
    }
}
