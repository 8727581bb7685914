//! Implements [`HeadSource`] for the head of this instance.

use super::compile;
use super::head_reader::{chunk_error, delete_some, merged};
use super::log::Log;
use super::status::HeadExemplars;
use crate::chunk::ChunkError;
use crate::error::{Error, Result};
use crate::head::{Head, HeadCursor, HeadStrings, Slice, WorkLeft};
use crate::model::{Labels, MatcherSets, MatcherSpec, TimeRange};
use crate::select::{ExemplarSource, HeadSource, Lookup, SeriesSource, StringSource};
use crate::storage::StorageError;
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

struct LocalLabels {
    head: Rc<RefCell<Head>>,
    cursor: HeadCursor,
}

struct LocalStrings {
    head: Rc<RefCell<Head>>,
    strings: HeadStrings,
}

impl LocalHead {
    fn strings(&self, strings: HeadStrings) -> Box<dyn StringSource> {
        Box::new(LocalStrings { head: Rc::clone(&self.head), strings })
    }
}

impl HeadSource for LocalHead {
    fn select(
        &self,
        matchers: &[MatcherSpec],
        range: TimeRange,
        external: &Labels,
    ) -> Result<Box<dyn SeriesSource>> {
        let mut head = self.head.borrow_mut();
        let sets = MatcherSets::of(compile(matchers)?);
        let cursor = head.select(&sets, range, external, &WorkLeft::unbounded())?;
        if head.has_too_many_cursors() {
            return Err(Error::ShortOfMemory { max: head.memory_bytes_max() });
        }
        Ok(Box::new(LocalSeries { head: Rc::clone(&self.head), cursor }))
    }

    fn series(&self, lookup: &Lookup) -> Result<Box<dyn SeriesSource>> {
        let (sets, none) = (lookup.sets()?, Labels::default());
        let work = WorkLeft::unbounded();
        let cursor = self.head.borrow_mut().select(&sets, lookup.range, &none, &work)?;
        Ok(Box::new(LocalLabels { head: Rc::clone(&self.head), cursor }))
    }

    fn label_names(&self, lookup: &Lookup) -> Result<Box<dyn StringSource>> {
        let (sets, work) = (lookup.sets()?, WorkLeft::unbounded());
        Ok(self.strings(self.head.borrow_mut().label_names(&sets, lookup.range, &work)?))
    }

    fn label_values(&self, name: &str, lookup: &Lookup) -> Result<Box<dyn StringSource>> {
        let (sets, work) = (lookup.sets()?, WorkLeft::unbounded());
        Ok(self.strings(self.head.borrow_mut().label_values(name, &sets, lookup.range, &work)?))
    }

    fn delete(&self, selectors: &[Vec<MatcherSpec>], range: TimeRange) -> Result<u64> {
        let (sets, none) = (MatcherSets::new(selectors)?, Labels::default());
        let work = WorkLeft::unbounded();
        let mut cursor = self.head.borrow_mut().select(&sets, range, &none, &work)?;
        let (mut series, mut is_begun) = (0, false);
        loop {
            let slice = delete_some(&self.head, &self.log, &mut cursor, range, &mut is_begun)?;
            series += slice.series;
            if slice.is_done {
                return Ok(series);
            }
        }
    }

    fn exemplars(&self, range: TimeRange) -> Result<Box<dyn ExemplarSource>> {
        Ok(Box::new(HeadExemplars::new(&self.head, range)))
    }

    fn plan_cut(&self) -> Result<Option<TimeRange>> {
        let mut head = self.head.borrow_mut();
        let had_plan = head.has_plan();
        let range = head.plan_cut();
        let mut log = self.log.borrow_mut();
        // Segments end only when the plan is made; if every call ended them, they would be short.
        if let Some(range) = range
            && !had_plan
            && !log.is_replaying()
            && head.holds_nothing_after(range)
        {
            log.end_segments_at_cut(&head);
        }
        Ok(range)
    }

    fn truncate(&self, before_ms: i64) -> Result<bool> {
        let mut head = self.head.borrow_mut();
        let mut log = self.log.borrow_mut();
        if !head.may_truncate(before_ms) {
            // An empty head has nothing to truncate, which is no error.
            return if head.is_empty() { Ok(false) } else { Err(Error::NotPlanned { before_ms }) };
        }
        if !log.is_truncating() {
            // An open cursor still needs the samples that it began with.
            if head.open_cursors() > 0 {
                return Err(Error::Busy);
            }
            if log.is_replaying() {
                // During replay only the head is truncated, because the log is still being read.
                head.truncate(before_ms).map_err(out_of_order_chunk)?;
                head.end_plan(before_ms);
                return Ok(false);
            }
            let generation = head.planned_generation();
            head.truncate(before_ms).map_err(out_of_order_chunk)?;
            if let Err(error) = log.truncate_out_of_order(before_ms, generation) {
                return Err(without_room(&mut head, before_ms, error.into()));
            }
        }
        match log.truncate(&mut head, before_ms) {
            Ok(more) => {
                if !more {
                    head.end_plan(before_ms);
                }
                Ok(more)
            }
            Err(error) => Err(without_room(&mut head, before_ms, error)),
        }
    }

    fn deletion_mark(&self) -> Result<u64> {
        Ok(self.head.borrow().deletion_mark())
    }
}

fn out_of_order_chunk(source: ChunkError) -> Error {
    Error::Chunk { series: "with out-of-order samples".into(), source }
}

/// Keeps the plan of a cut if the log could not be truncated for lack of space. The cut is then
/// repeated, without any samples, until the log is truncated. After other errors the plan ends, so
/// that the next cut is not blocked; that cut truncates the log as well.
fn without_room(head: &mut Head, before_ms: i64, error: Error) -> Error {
    if !matches!(error, Error::Storage(StorageError::NoSpace { .. })) {
        head.end_plan(before_ms);
    }
    error
}

impl SeriesSource for LocalSeries {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        let head = self.head.borrow();
        loop {
            match head.next(&mut self.cursor).map_err(chunk_error)? {
                Slice::Again => {}
                Slice::End => return Ok(None),
                Slice::Next(series) => return merged(series).map(Some),
            }
        }
    }

    fn rewind(&mut self) -> Result<()> {
        self.cursor.rewind();
        Ok(())
    }
}

impl SeriesSource for LocalLabels {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        let head = self.head.borrow();
        loop {
            match head.next_labels(&mut self.cursor, true) {
                Slice::Again => {}
                Slice::End => return Ok(None),
                Slice::Next(labels) => {
                    return Ok(Some(ChunkedSeries { labels, chunks: Vec::new() }));
                }
            }
        }
    }

    fn rewind(&mut self) -> Result<()> {
        self.cursor.rewind();
        Ok(())
    }
}

impl StringSource for LocalStrings {
    fn next_string(&mut self) -> Result<Option<String>> {
        Ok(self.head.borrow().next_string(&mut self.strings).map(str::to_owned))
    }
}
