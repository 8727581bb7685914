//! Cutting a block from the head, a slice at a time.
//!
//! Three passes over the head's series in label order: symbols are collected first, since the
//! index begins with them, then series and chunks are written, then the index is finished and the
//! block committed. The head forgets what a block holds only after that.
//!
//! If samples of the head are deleted before the block is committed, the block may hold them: then
//! the cut starts over. Check and commit are one slice, so no deletion comes between them. The mark
//! is another one, too, if the head was restarted: then its plan is gone, and the cut ends.
//!
//! A block of all that the head holds, for a snapshot, is made the same way; the head neither plans
//! nor forgets anything for it.

use super::SERIES_PER_SLICE;
use super::series_pass::SeriesPass;
use crate::block::{BlockMetaParams, SymbolCollector};
use crate::error::Result;
use crate::model::{Labels, TimeRange};
use crate::select::{HeadSource, SeriesSource};
use crate::storage::Blocks;
use std::rc::Rc;

/// A block being cut from a head.
pub struct Cut {
    head: Rc<dyn HeadSource>,
    blocks: Rc<dyn Blocks>,
    /// What the head has planned; `None` for all that it holds.
    range: Option<TimeRange>,
    hash_seed: u64,
    /// The head's when its series were selected.
    deletion_mark: u64,
    state: State,
}

enum State {
    Symbols(SymbolPass),
    Series { pass: SeriesPass, range: TimeRange },
    Forget,
    Done,
}

/// The first pass.
struct SymbolPass {
    series: Box<dyn SeriesSource>,
    symbols: SymbolCollector,
    /// From the first to the last sample so far.
    span: TimeRange,
}

/// What a slice did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutProgress {
    /// Whether the block is cut and the head has forgotten it.
    pub done: bool,
    /// ULID of the block, in the slice that committed it. A range without a sample makes none.
    pub block: Option<String>,
    /// Samples in it.
    pub samples: u64,
}

impl Cut {
    /// Begins to cut a range, which the head has planned.
    pub fn new(
        head: Rc<dyn HeadSource>,
        blocks: Rc<dyn Blocks>,
        range: TimeRange,
        hash_seed: u64,
    ) -> Result<Cut> {
        Cut::begin(head, blocks, Some(range), hash_seed)
    }

    /// Begins a block of all samples that the head holds, which stay there.
    pub fn of_whole_head(
        head: Rc<dyn HeadSource>,
        blocks: Rc<dyn Blocks>,
        hash_seed: u64,
    ) -> Result<Cut> {
        Cut::begin(head, blocks, None, hash_seed)
    }

    fn begin(
        head: Rc<dyn HeadSource>,
        blocks: Rc<dyn Blocks>,
        range: Option<TimeRange>,
        hash_seed: u64,
    ) -> Result<Cut> {
        let deletion_mark = head.deletion_mark()?;
        let state = State::Symbols(SymbolPass {
            series: head.select(&[], range.unwrap_or(TimeRange::ALL), &Labels::default())?,
            symbols: SymbolCollector::new(hash_seed),
            span: TimeRange { start_ms: i64::MAX, end_ms: i64::MIN },
        });
        Ok(Cut { head, blocks, range, hash_seed, deletion_mark, state })
    }

    /// Does the next slice.
    pub fn step(&mut self, now_ms: i64) -> Result<CutProgress> {
        let mut progress = CutProgress::default();
        let state = std::mem::replace(&mut self.state, State::Done);
        self.state = match state {
            State::Symbols(mut pass) => match pass.step()? {
                false => State::Symbols(pass),
                true => {
                    let SymbolPass { symbols, span, .. } = pass;
                    let range = self.range.unwrap_or(span);
                    let series = self.head.select(&[], range, &Labels::default())?;
                    let pass = SeriesPass::begin(&*self.blocks, now_ms, symbols, series)?;
                    State::Series { pass: pass.of_growing_head(range), range }
                }
            },
            State::Series { mut pass, range } => match pass.step()? {
                false => State::Series { pass, range },
                true if self.head.deletion_mark()? != self.deletion_mark => {
                    drop(pass);
                    if self.range.is_some() && self.head.plan_cut()? != self.range {
                        progress.done = true;
                        return Ok(progress);
                    }
                    let (head, blocks) = (Rc::clone(&self.head), Rc::clone(&self.blocks));
                    *self = Cut::begin(head, blocks, self.range, self.hash_seed)?;
                    return Ok(progress);
                }
                true => {
                    // This closes the cursor: while it is open, the head forgets nothing.
                    let meta = pass.finish(BlockMetaParams {
                        min_time_ms: range.start_ms,
                        max_time_ms: range.end_ms.saturating_add(1),
                        level: 1,
                        ..BlockMetaParams::default()
                    })?;
                    if let Some(meta) = meta {
                        progress.samples = meta.stats.num_samples;
                        progress.block = Some(meta.ulid);
                    }
                    if self.range.is_some() { State::Forget } else { State::Done }
                }
            },
            State::Forget => match self.forget() {
                Ok(true) => State::Forget,
                Ok(false) => State::Done,
                Err(error) => {
                    // The block stands; forgetting can be tried again.
                    self.state = State::Forget;
                    return Err(error);
                }
            },
            State::Done => State::Done,
        };
        progress.done = matches!(self.state, State::Done);
        Ok(progress)
    }

    fn forget(&self) -> Result<bool> {
        self.range.map_or(Ok(false), |range| self.head.forget(range.end_ms.saturating_add(1)))
    }
}

impl SymbolPass {
    /// Collects the symbols of a slice of the series; gives whether it was the last.
    fn step(&mut self) -> Result<bool> {
        for _ in 0..SERIES_PER_SLICE {
            let Some(next) = self.series.next_series()? else { return Ok(true) };
            self.symbols.add(&next.labels);
            for chunk in &next.chunks {
                self.span.start_ms = self.span.start_ms.min(chunk.min_time_ms);
                self.span.end_ms = self.span.end_ms.max(chunk.max_time_ms);
            }
        }
        Ok(false)
    }
}
