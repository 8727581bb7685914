//! The store as of one moment, for several selections.

use super::lookup::merged;
use super::{Engine, compile};
use crate::block::BlockReader;
use crate::error::Result;
use crate::model::{Labels, Matcher, MatcherSets, MatcherSpec, TimeRange};
use crate::select::{BlockLabels, BlockSeries, HeadSource, Lookup, SeriesSource, Windows};
use crate::wire::ChunkedSeries;
use std::rc::Rc;

/// A range without any time.
const NOTHING: TimeRange = TimeRange { start_ms: 1, end_ms: 0 };

/// The head, and the blocks that were there when it was made.
///
/// While it lives the head truncates nothing, so that what is cut meanwhile is in the head, in one
/// of the blocks, or in both. A selection shows the head as of its opening: those that are opened
/// one right after the other show the same samples, but for what is appended between two of them.
pub struct View {
    head: Rc<dyn HeadSource>,
    blocks: Vec<Rc<BlockReader>>,
    /// A position in nothing.
    _open: Box<dyn SeriesSource>,
}

impl Engine {
    /// The store in a range as it is at this moment.
    pub fn view(&self, range: TimeRange) -> Result<View> {
        if !self.is_cut_while_replaying() {
            self.check_replayed()?;
        }
        // The head comes before the list of blocks, as for one selection.
        let open = self.head.select(&[], NOTHING, &Labels::default())?;
        let blocks = self.blocks_in(range)?.into_iter().map(Rc::new).collect();
        Ok(View { head: Rc::clone(&self.head), blocks, _open: open })
    }
}

impl View {
    /// The series that all of some matchers select, with the chunks that windows touch, and the
    /// memory of the compiled matchers.
    pub fn series(
        &self,
        specs: &[MatcherSpec],
        windows: Windows,
    ) -> Result<(Box<dyn SeriesSource>, usize)> {
        let matchers = compile(specs)?;
        let bytes = matchers.iter().map(Matcher::bytes).sum();
        let head = self.head.select(specs, windows.range, &Labels::default())?;
        let blocks = self.blocks_in(windows.range).cloned().collect();
        Ok((Box::new(Selected::Open { head: Some(head), blocks, matchers, windows }), bytes))
    }

    /// The same without chunks. There may be series that have samples near the range only.
    pub fn labels(&self, specs: &[MatcherSpec], range: TimeRange) -> Result<Box<dyn SeriesSource>> {
        let lookup = Lookup { matcher_sets: vec![specs.to_vec()], range, limit: 0 };
        let sets = MatcherSets::of(compile(specs)?);
        let mut sources = vec![self.head.series(&lookup)?];
        for block in self.blocks_in(range) {
            sources.push(Box::new(BlockLabels::select(Rc::clone(block), &sets, range)?));
        }
        merged(sources)
    }

    fn blocks_in(&self, range: TimeRange) -> impl Iterator<Item = &Rc<BlockReader>> {
        self.blocks.iter().filter(move |block| range.overlaps(&block.meta().time_range()))
    }
}

/// Series of a selection. Blocks are read from the first series on: many selections may be open
/// that wait for others.
enum Selected {
    Open {
        head: Option<Box<dyn SeriesSource>>,
        blocks: Vec<Rc<BlockReader>>,
        matchers: Vec<Matcher>,
        windows: Windows,
    },
    Begun(Box<dyn SeriesSource>),
}

impl SeriesSource for Selected {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        if let Selected::Open { head, blocks, matchers, windows } = self {
            let mut sources: Vec<Box<dyn SeriesSource>> = head.take().into_iter().collect();
            for block in std::mem::take(blocks) {
                let series = BlockSeries::select(block, matchers, windows.range)?;
                sources.push(Box::new(series.touched_by(*windows)));
            }
            *self = Selected::Begun(merged(sources)?);
        }
        match self {
            Selected::Begun(series) => series.next_series(),
            Selected::Open { .. } => Ok(None),
        }
    }

    fn rewind(&mut self) -> Result<()> {
        match self {
            Selected::Begun(series) => series.rewind(),
            Selected::Open { .. } => Ok(()),
        }
    }
}
