//! Exports exemplar cursors, exemplar scans and cardinality walks.

use super::bindings::exports::tidepool::tsdb::store::{
    self, GuestCardinalityWalk, GuestExemplarCursor, GuestExemplarScan,
};
use super::bindings::tidepool::tsdb::types as wit;
use super::convert::ranked;
use crate::engine::{HeadCardinality, HeadExemplars};
use crate::head::CardinalityList;
use crate::select::ExemplarCursor;
use std::cell::RefCell;

pub struct OpenExemplars(pub RefCell<ExemplarCursor>);

impl GuestExemplarCursor for OpenExemplars {
    fn next(&self, bytes_max: u32) -> Result<Vec<store::SeriesExemplars>, wit::Error> {
        Ok(self.0.borrow_mut().next(bytes_max).into_iter().map(Into::into).collect())
    }
}

pub struct OpenExemplarScan(pub RefCell<HeadExemplars>);

impl GuestExemplarScan for OpenExemplarScan {
    fn next(&self, bytes_max: u32) -> Result<Option<Vec<u8>>, wit::Error> {
        Ok(self.0.borrow_mut().next_bytes(bytes_max))
    }
}

pub struct OpenCardinality(pub RefCell<HeadCardinality>);

impl GuestCardinalityWalk for OpenCardinality {
    fn walk(&self) -> Result<Option<u64>, wit::Error> {
        Ok(self.0.borrow_mut().walk())
    }

    fn next(
        &self,
        of: store::CardinalityList,
        bytes_max: u32,
    ) -> Result<Vec<wit::Ranked>, wit::Error> {
        let list = match of {
            store::CardinalityList::MetricsBySeries => CardinalityList::MetricsBySeries,
            store::CardinalityList::NamesBySeries => CardinalityList::NamesBySeries,
            store::CardinalityList::NamesByValues => CardinalityList::NamesByValues,
            store::CardinalityList::NamesByValueBytes => CardinalityList::NamesByValueBytes,
            store::CardinalityList::PairsBySeries => CardinalityList::PairsBySeries,
        };
        Ok(ranked(self.0.borrow_mut().next(list, bytes_max)?))
    }
}
