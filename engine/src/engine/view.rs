//! The store as of one moment, for several selections.

use super::lookup::{BlocksIn, merged};
use super::{Engine, check_count, compile};
use crate::block::BlockReader;
use crate::compact::BadBlock;
use crate::error::Result;
use crate::model::{Labels, Matcher, MatcherSets, MatcherSpec, TimeRange};
use crate::select::{
    BlockLabels, BlockSeries, HeadSource, LatestLabels, Lookup, SeriesSource, Windows,
};
use crate::wire::ChunkedSeries;
use std::cell::RefCell;
use std::rc::Rc;

/// The head, and the blocks that existed when the view was made.
///
/// While a view exists the head truncates nothing, so samples that are cut meanwhile are in the
/// head, in one of the blocks, or in both. A selection shows the head as of the moment when the
/// selection was opened, so a later selection also shows samples that were appended in between.
pub struct View {
    head: Rc<dyn HeadSource>,
    blocks: Vec<Rc<BlockReader>>,
    left_out: Vec<BadBlock>,
    /// The head's part of the first selection, open until that selection is made.
    first: RefCell<Option<Shared>>,
    _open: Shared,
}

/// Series of the head that a view keeps open.
#[derive(Clone)]
struct Shared(Rc<RefCell<Box<dyn SeriesSource>>>);

impl SeriesSource for Shared {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        self.0.borrow_mut().next_series()
    }

    fn rewind(&mut self) -> Result<()> {
        self.0.borrow_mut().rewind()
    }
}

/// The part of a selection that concerns the head.
#[derive(Clone, Copy, Debug)]
pub struct First<'a> {
    /// Matchers that must all match.
    pub matchers: &'a [MatcherSpec],
    /// Time range, both ends included.
    pub range: TimeRange,
    /// Content to read of each series.
    pub taken: Projection,
}

/// Content of each series that a selection reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// Labels, and the chunks that overlap a window of the selection.
    Series,
    /// The labels alone, without any chunks.
    Labels,
}

impl Engine {
    /// Returns a view of the store in a range. The first selection of the view must be `first`. Its
    /// cursor in the head is opened now, and keeps the head from truncating.
    pub fn view(&self, range: TimeRange, first: First<'_>) -> Result<View> {
        if !self.is_cut_while_replaying() {
            self.check_replayed()?;
        }
        check_count(first.matchers)?;
        // The head is opened before blocks are listed; `sources` in `mod.rs` has the reason.
        let first = in_head(&*self.head, first)?;
        let first = Shared(Rc::new(RefCell::new(first)));
        let BlocksIn { open: blocks, damaged } = self.blocks_in(range)?;
        let head = Rc::clone(&self.head);
        let left_out = damaged.iter().map(|(id, error)| BadBlock::of(id, error)).collect();
        let first_part = RefCell::new(Some(first.clone()));
        Ok(View { head, blocks, left_out, first: first_part, _open: first })
    }
}

/// Opens the head's part of a selection.
fn in_head(
    head: &dyn HeadSource,
    First { matchers, range, taken }: First<'_>,
) -> Result<Box<dyn SeriesSource>> {
    match taken {
        Projection::Series => head.select(matchers, range, &Labels::default()),
        Projection::Labels => {
            head.series(&Lookup { matcher_sets: vec![matchers.to_vec()], range, limit: 0 })
        }
    }
}

impl View {
    /// Damaged blocks that may hold samples of the range, and are left out.
    pub fn left_out(&self) -> &[BadBlock] {
        &self.left_out
    }

    /// Returns the series that match all matchers, with the chunks that overlap a window, and the
    /// memory of the compiled matchers in bytes.
    pub fn series(
        &self,
        specs: &[MatcherSpec],
        windows: Windows,
    ) -> Result<(Box<dyn SeriesSource>, usize)> {
        let matchers = compile(specs)?;
        let bytes = matchers.iter().map(Matcher::bytes).sum();
        let head = self.in_head(First {
            matchers: specs,
            range: windows.range,
            taken: Projection::Series,
        })?;
        let blocks = self.blocks_in(windows.range).cloned().collect();
        let head = Some(head);
        Ok((Box::new(Selected { head, blocks, matchers, windows, begun: None }), bytes))
    }

    /// Does the same without chunks, and may include series with samples only near the range.
    pub fn labels(&self, specs: &[MatcherSpec], range: TimeRange) -> Result<Box<dyn SeriesSource>> {
        let sets = MatcherSets::of(compile(specs)?);
        let mut sources =
            vec![self.in_head(First { matchers: specs, range, taken: Projection::Labels })?];
        for block in self.blocks_in(range) {
            sources.push(Box::new(BlockLabels::select(Rc::clone(block), &sets, range)?));
        }
        merged(sources)
    }

    /// Returns the head's part of a selection; the first selection's part is already open.
    fn in_head(&self, selection: First<'_>) -> Result<Box<dyn SeriesSource>> {
        match self.first.take() {
            Some(first) => Ok(Box::new(first)),
            None => in_head(&*self.head, selection),
        }
    }

    fn blocks_in(&self, range: TimeRange) -> impl Iterator<Item = &Rc<BlockReader>> {
        self.blocks.iter().filter(move |block| range.overlaps(&block.meta().time_range()))
    }
}

/// Series of a selection. Blocks are opened with the first series, since a query opens all its
/// selections first and may read them much later.
struct Selected {
    head: Option<Box<dyn SeriesSource>>,
    blocks: Vec<Rc<BlockReader>>,
    matchers: Vec<Matcher>,
    windows: Windows,
    /// The merged sources, once the first series was requested.
    begun: Option<Box<dyn SeriesSource>>,
}

impl Selected {
    fn begun(&mut self) -> Result<&mut dyn SeriesSource> {
        let series = match self.begun.take() {
            Some(series) => series,
            None => {
                let mut sources: Vec<Box<dyn SeriesSource>> =
                    self.head.take().into_iter().collect();
                let latest = LatestLabels::default();
                for block in std::mem::take(&mut self.blocks) {
                    let series = BlockSeries::select(block, &self.matchers, self.windows.range)?;
                    sources.push(Box::new(series.touched_by(self.windows).in_turn(&latest)));
                }
                merged(sources)?
            }
        };
        Ok(&mut **self.begun.insert(series))
    }
}

impl SeriesSource for Selected {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        self.begun()?.next_series()
    }

    fn rewind(&mut self) -> Result<()> {
        self.begun.as_mut().map_or(Ok(()), |series| series.rewind())
    }

    fn estimate(&mut self) -> Result<usize> {
        self.begun()?.estimate()
    }
}
