//! Cutting a block from the head, a slice at a time.
//!
//! Three passes over the head's series in label order: symbols are collected first, since the
//! index begins with them, then series and chunks are written, then the index is finished and the
//! block committed.

use crate::block::{BlockBuilder, BlockMetaParams, SymbolCollector};
use crate::error::Result;
use crate::model::TimeRange;
use crate::select::{HeadSource, SeriesSource, clip_chunks};
use crate::storage::Blocks;
use std::rc::Rc;

/// How many series one slice handles.
const SERIES_PER_SLICE: usize = 1000;

/// A block being cut from a head.
pub struct Cut {
    head: Rc<dyn HeadSource>,
    blocks: Rc<dyn Blocks>,
    range: TimeRange,
    state: State,
}

enum State {
    Symbols { series: Box<dyn SeriesSource>, symbols: SymbolCollector },
    Series { series: Box<dyn SeriesSource>, builder: Box<BlockBuilder> },
    Forget,
    Done,
}

/// What a slice did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutProgress {
    /// Whether the block is cut and the head has forgotten it.
    pub done: bool,
    /// ULID of the block, in the slice that committed it.
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
                let mut ended = false;
                for _ in 0..SERIES_PER_SLICE {
                    match series.next_series()? {
                        Some(next) => symbols.add(&next.labels),
                        None => {
                            ended = true;
                            break;
                        }
                    }
                }
                match ended {
                    false => State::Symbols { series, symbols },
                    true => {
                        let writer = self.blocks.create(now_ms)?;
                        let builder = Box::new(BlockBuilder::new(writer, symbols)?);
                        State::Series { series: self.head.select(&[], self.range)?, builder }
                    }
                }
            }
            State::Series { mut series, mut builder } => {
                let mut ended = false;
                for _ in 0..SERIES_PER_SLICE {
                    match series.next_series()? {
                        // What came late since the first pass stays in the head for another cut.
                        Some(next) if !builder.knows(&next.labels) => {}
                        Some(next) => {
                            let chunks = clip_chunks(&next.labels, next.chunks, self.range)?;
                            builder.add_series(&next.labels, &chunks)?;
                        }
                        None => {
                            ended = true;
                            break;
                        }
                    }
                }
                match ended {
                    false => State::Series { series, builder },
                    true => {
                        // The cursor goes first: while it is open, the head forgets nothing.
                        drop(series);
                        let meta = builder.finish(BlockMetaParams {
                            min_time_ms: self.range.start_ms,
                            max_time_ms: self.range.end_ms.saturating_add(1),
                            level: 1,
                            sources: Vec::new(),
                            parents: Vec::new(),
                        })?;
                        progress.samples = meta.stats.num_samples;
                        progress.block = Some(meta.ulid);
                        State::Forget
                    }
                }
            }
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
