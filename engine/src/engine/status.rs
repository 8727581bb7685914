//! Reads of a head besides series and samples: exemplars, metadata of families, and cardinality.
//! Each call does a slice of the work, because writes wait while a call runs.

use super::{Engine, compile};
use crate::error::{Error, Result};
use crate::head::{CardinalityList, CardinalityWalk, ExemplarScan, Head, SeriesExemplars};
use crate::model::{MatcherSpec, TimeRange};
use crate::select::{EXEMPLAR_PAGE_BYTES, ExemplarCursor, ExemplarSource};
use crate::wire::put_series_exemplars;
use std::cell::RefCell;
use std::rc::Rc;

/// Approximate memory of a family besides its strings, in bytes.
const FAMILY_BYTES: usize = 16;

/// A cursor on the exemplars of this instance's head.
pub struct HeadExemplars {
    head: Rc<RefCell<Head>>,
    scan: ExemplarScan,
}

/// A walk over the index of this instance's head.
pub struct HeadCardinality {
    head: Rc<RefCell<Head>>,
    walk: CardinalityWalk,
    is_done: bool,
}

impl HeadExemplars {
    pub(super) fn new(head: &Rc<RefCell<Head>>, range: TimeRange) -> HeadExemplars {
        let scan = head.borrow().exemplars.scan(range);
        HeadExemplars { head: Rc::clone(head), scan }
    }

    fn next(&mut self, bytes_max: u32) -> Option<Vec<SeriesExemplars>> {
        self.head.borrow().exemplars.next_page(&mut self.scan, bytes_max)
    }

    /// Returns the next exemplars as bytes for another instance; `None` at the end.
    pub fn next_bytes(&mut self, bytes_max: u32) -> Option<Vec<u8>> {
        let page = self.next(bytes_max)?;
        let mut bytes = Vec::new();
        page.iter().for_each(|series| put_series_exemplars(&mut bytes, series));
        Some(bytes)
    }
}

impl ExemplarSource for HeadExemplars {
    fn next_page(&mut self) -> Result<Option<Vec<SeriesExemplars>>> {
        Ok(self.next(EXEMPLAR_PAGE_BYTES))
    }
}

impl HeadCardinality {
    /// Does the next slice; returns the number of distinct labels once the walk is done.
    pub fn walk(&mut self) -> Option<u64> {
        let label_pairs = self.head.borrow().walk_cardinality(&mut self.walk);
        self.is_done = label_pairs.is_some();
        label_pairs
    }

    /// Returns the next items of a list; empty at the end.
    pub fn next(&mut self, list: CardinalityList, bytes_max: u32) -> Result<Vec<(String, u64)>> {
        if !self.is_done {
            return Err(Error::Invalid("the count is not complete".into()));
        }
        let head = self.head.borrow();
        let next = head.next_of_cardinality(&mut self.walk, list, bytes_max as usize);
        next.ok_or(Error::SeriesDropped)
    }
}

impl Engine {
    /// Returns exemplars of the series that any of the matcher sets selects, in label order.
    pub fn exemplars(
        &self,
        matcher_sets: &[Vec<MatcherSpec>],
        range: TimeRange,
    ) -> Result<ExemplarCursor> {
        let sets = matcher_sets.iter().map(|set| compile(set));
        let sets = sets.collect::<Result<Vec<_>>>()?;
        ExemplarCursor::select(self.head.exemplars(range)?, &sets)
    }

    /// Returns exemplars of this instance's head in the order of their arrival.
    pub fn scan_exemplars(&self, range: TimeRange) -> Result<HeadExemplars> {
        let owned = self.owned.as_ref().ok_or(Error::WrongRole { call: "scan-exemplars" })?;
        Ok(HeadExemplars::new(&owned.head, range))
    }

    /// Returns metadata of the families whose names are `first` or later, as (family, type, help,
    /// unit). A page has about `bytes_max` bytes; an empty page is the end.
    pub fn metadata(&self, first: &str, bytes_max: u32) -> Vec<(String, u32, String, String)> {
        let Some(owned) = &self.owned else { return Vec::new() };
        let head = owned.head.borrow();
        let (mut page, mut bytes) = (Vec::new(), 0);
        for (family, metadata) in head.metadata.from(first) {
            // One family at least, since an empty page is the end.
            if bytes >= bytes_max as usize && !page.is_empty() {
                break;
            }
            let (help, unit) = (metadata.help.to_string(), metadata.unit.to_string());
            bytes += family.len() + help.len() + unit.len() + FAMILY_BYTES;
            page.push((family.to_owned(), metadata.metric_type, help, unit));
        }
        page
    }

    /// Begins a walk over this instance's head, for lists of at most `items_max` items.
    pub fn cardinality(&self, items_max: usize) -> Result<HeadCardinality> {
        let owned = self.owned.as_ref().ok_or(Error::WrongRole { call: "cardinality" })?;
        let walk = owned.head.borrow().cardinality(items_max);
        Ok(HeadCardinality { head: Rc::clone(&owned.head), walk, is_done: false })
    }
}
