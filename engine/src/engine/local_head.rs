//! The own head, seen as reads and cuts see any head.

use super::compile;
use super::log::Log;
use crate::error::{Error, Result};
use crate::head::{Head, HeadCursor};
use crate::model::{MatcherSpec, TimeRange};
use crate::select::{HeadSource, SeriesSource, merge_chunks};
use crate::wire::ChunkedSeries;
use std::cell::RefCell;
use std::rc::Rc;

/// A head of this instance, with its log.
pub struct LocalHead {
    pub(super) head: Rc<RefCell<Head>>,
    pub(super) log: Rc<RefCell<Log>>,
}

struct LocalSeries {
    head: Rc<RefCell<Head>>,
    cursor: HeadCursor,
}

impl HeadSource for LocalHead {
    fn select(&self, matchers: &[MatcherSpec], range: TimeRange) -> Result<Box<dyn SeriesSource>> {
        let cursor = self.head.borrow().select(&compile(matchers)?, range);
        Ok(Box::new(LocalSeries { head: Rc::clone(&self.head), cursor }))
    }

    fn plan_cut(&self) -> Result<Option<TimeRange>> {
        Ok(self.head.borrow_mut().plan_cut())
    }

    fn forget(&self, before_ms: i64) -> Result<bool> {
        let mut head = self.head.borrow_mut();
        let mut log = self.log.borrow_mut();
        if !log.is_truncating() {
            if head.open_cursors() > 0 {
                return Err(Error::Busy);
            }
            let generation = head.planned_generation();
            head.forget(before_ms)
                .map_err(|source| Error::Chunk { series: "with late samples".into(), source })?;
            log.truncate_late(before_ms, generation)?;
        }
        Ok(log.truncate(&head, before_ms)?)
    }
}

impl SeriesSource for LocalSeries {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        let next = self.head.borrow().next(&mut self.cursor);
        let Some((labels, chunks, may_overlap)) = next else { return Ok(None) };
        let chunks = if may_overlap { merge_chunks(&labels, chunks)? } else { chunks };
        Ok(Some(ChunkedSeries { labels, chunks }))
    }
}
