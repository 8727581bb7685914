//! Cutting a block from the head, a slice at a time.
//!
//! Three passes over the head's series in label order: symbols are collected first, since the
//! index begins with them, then series and chunks are written, then the index is finished and the
//! block committed. The head forgets what a block holds only after that.

use super::SERIES_PER_SLICE;
use super::series_pass::SeriesPass;
use crate::block::{BlockMetaParams, SymbolCollector};
use crate::error::Result;
use crate::model::TimeRange;
use crate::select::{HeadSource, SeriesSource};
use crate::storage::Blocks;
use std::rc::Rc;

/// A block being cut from a head.
pub struct Cut {
    head: Rc<dyn HeadSource>,
    blocks: Rc<dyn Blocks>,
    range: TimeRange,
    state: State,
}

enum State {
    Symbols { series: Box<dyn SeriesSource>, symbols: SymbolCollector },
    Series(SeriesPass),
    Forget,
    Done,
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
        let series = head.select(&[], range)?;
        let state = State::Symbols { series, symbols: SymbolCollector::new(hash_seed) };
        Ok(Cut { head, blocks, range, state })
    }

    /// Does the next slice.
    pub fn step(&mut self, now_ms: i64) -> Result<CutProgress> {
        let mut progress = CutProgress::default();
        let state = std::mem::replace(&mut self.state, State::Done);
        self.state = match state {
            State::Symbols { mut series, mut symbols } => {
                match collect_symbols(&mut *series, &mut symbols)? {
                    false => State::Symbols { series, symbols },
                    true => {
                        let series = self.head.select(&[], self.range)?;
                        let pass = SeriesPass::begin(&*self.blocks, now_ms, symbols, series)?;
                        State::Series(pass.of_growing_head(self.range))
                    }
                }
            }
            State::Series(mut pass) => match pass.step()? {
                false => State::Series(pass),
                true => {
                    // This closes the cursor: while it is open, the head forgets nothing.
                    let meta = pass.finish(BlockMetaParams {
                        min_time_ms: self.range.start_ms,
                        max_time_ms: self.range.end_ms.saturating_add(1),
                        level: 1,
                        ..BlockMetaParams::default()
                    })?;
                    if let Some(meta) = meta {
                        progress.samples = meta.stats.num_samples;
                        progress.block = Some(meta.ulid);
                    }
                    State::Forget
                }
            },
            State::Forget => match self.head.forget(self.range.end_ms.saturating_add(1)) {
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
}

/// Collects the symbols of a slice of the series; gives whether it was the last.
fn collect_symbols(series: &mut dyn SeriesSource, symbols: &mut SymbolCollector) -> Result<bool> {
    for _ in 0..SERIES_PER_SLICE {
        match series.next_series()? {
            Some(next) => symbols.add(&next.labels),
            None => return Ok(true),
        }
    }
    Ok(false)
}
