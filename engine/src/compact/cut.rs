//! Cutting a block from the head, a slice at a time.
//!
//! ```text
//! ┌▶ symbols ──▶ series and chunks ──▶ seal ─┬─▶ commit ──▶ truncate ──▶ done
//! └───────── series are left over ───────────┘
//! ```
//!
//! Two passes over the head's series in label order: the first collects symbols, since the index
//! begins with them; the second writes series and chunks, and finishes the index. The head drops
//! samples only after the commit of their block. Both passes walk one cursor, which returns the
//! same series after each rewind.
//!
//! If the labels need more memory than the limit, the range is cut into *pieces*: blocks of the
//! same range, each with as many of the next series as memory allows. The pieces are committed
//! together. A hint on all but the last states that other series of the range may be in no block.
//! After a crash between the commits, samples of committed pieces are also in the log; reads and
//! merges then return each sample once.
//!
//! If samples of the head are deleted before the commit, which its deletion mark shows, the blocks
//! may hold them, so the cut starts over. The mark is checked in the slice of the commit. A restart
//! of the head changes the mark as well; then the head's plan is lost, and the cut ends.
//!
//! A block of the whole head, for a snapshot, is made in the same way; the head stays as it is.

use super::block_time::new_block_ms;
use super::series_pass::SeriesPass;
use super::{HINT_OUT_OF_ORDER, MEMORY_BYTES_BASE, SAMPLES_PER_CHUNK_COMPACTED, SERIES_PER_SLICE};
use crate::block::{BlockMetaParams, LinkedChunks, SealedBlock, SymbolCollector};
use crate::error::Result;
use crate::model::{Labels, TimeRange};
use crate::select::{HeadSource, SeriesSource};
use crate::storage::Blocks;
use std::rc::Rc;

/// Least memory of a piece in bytes, however low the limit is.
const PIECE_BYTES_MIN: u64 = if cfg!(test) { 4 * 1024 } else { 1024 * 1024 };

/// Divisor: symbols may need at most half of a piece's memory.
const SYMBOLS_PART: u64 = 2;

/// A block being cut from a head.
pub struct Cut {
    head: Rc<dyn HeadSource>,
    blocks: Rc<dyn Blocks>,
    /// Range that the head has planned; `None` for a block of the whole head.
    range: Option<TimeRange>,
    hash_seed: u64,
    /// Limit of the memory for labels and series of a piece.
    piece_bytes_max: u64,
    /// The head's deletion mark when its series were selected.
    deletion_mark: u64,
    /// Finished pieces, which are not committed yet.
    sealed: Vec<SealedBlock>,
    /// Number of series in the finished pieces.
    series_done: u64,
    state: State,
}

enum State {
    Symbols { series: Box<dyn SeriesSource>, pass: SymbolPass },
    Series { series: Box<dyn SeriesSource>, pass: PiecePass },
    Commit,
    Truncate,
    Done,
}

struct SymbolPass {
    /// Number of series of earlier pieces that are still to be skipped.
    skip: u64,
    symbols: SymbolCollector,
    bytes_max: u64,
    series_count: u64,
    /// Time range of the samples so far.
    span: TimeRange,
}

enum Collected {
    Some,
    /// The piece has no memory for the next series.
    Enough,
    All,
}

struct PiecePass {
    skip: u64,
    pass: SeriesPass,
    range: TimeRange,
    /// Whether the first pass had no memory for all series, so that another piece follows.
    has_rest: bool,
}

/// Result of a slice of a cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutProgress {
    /// Whether the block is cut and the head is truncated.
    pub done: bool,
    /// ULID of the last piece, if this slice committed it; a range without samples makes no block.
    pub block: Option<String>,
    /// Number of samples in the block, or in all its pieces.
    pub samples: u64,
}

impl Cut {
    /// Begins to cut a range that the head has planned, within a limit of memory.
    pub fn new(
        head: Rc<dyn HeadSource>,
        blocks: Rc<dyn Blocks>,
        range: TimeRange,
        hash_seed: u64,
        memory_bytes_max: u64,
    ) -> Result<Cut> {
        Cut::begin(head, blocks, Some(range), hash_seed, memory_bytes_max)
    }

    /// Begins a block of all samples of the head, which keeps them.
    pub fn of_whole_head(
        head: Rc<dyn HeadSource>,
        blocks: Rc<dyn Blocks>,
        hash_seed: u64,
        memory_bytes_max: u64,
    ) -> Result<Cut> {
        Cut::begin(head, blocks, None, hash_seed, memory_bytes_max)
    }

    fn begin(
        head: Rc<dyn HeadSource>,
        blocks: Rc<dyn Blocks>,
        range: Option<TimeRange>,
        hash_seed: u64,
        memory_bytes_max: u64,
    ) -> Result<Cut> {
        // However low the limit, a piece has at least one series, so the cut makes progress.
        let piece_bytes_max =
            memory_bytes_max.saturating_sub(MEMORY_BYTES_BASE).max(PIECE_BYTES_MIN);
        let mut cut = Cut {
            head,
            blocks,
            range,
            hash_seed,
            piece_bytes_max,
            deletion_mark: 0,
            sealed: Vec::new(),
            series_done: 0,
            state: State::Done,
        };
        cut.start()?;
        Ok(cut)
    }

    /// Selects the head's series, at the beginning and after each deletion.
    fn start(&mut self) -> Result<()> {
        self.series_done = 0;
        // Read before the selection, so that a deletion in between is noticed at the commit.
        self.deletion_mark = self.head.deletion_mark()?;
        let range = self.range.unwrap_or(TimeRange::ALL);
        let series = self.head.select(&[], range, &Labels::default())?;
        self.state = self.begin_piece(series);
        Ok(())
    }

    fn begin_piece(&self, series: Box<dyn SeriesSource>) -> State {
        let pass = SymbolPass {
            skip: self.series_done,
            symbols: SymbolCollector::new(self.hash_seed),
            bytes_max: self.piece_bytes_max / SYMBOLS_PART,
            series_count: 0,
            span: TimeRange { start_ms: i64::MAX, end_ms: i64::MIN },
        };
        State::Symbols { series, pass }
    }

    /// Does the next slice of the cut.
    pub fn step(&mut self, now_ms: i64) -> Result<CutProgress> {
        let mut progress = CutProgress::default();
        let state = std::mem::replace(&mut self.state, State::Done);
        self.state = match state {
            State::Symbols { mut series, mut pass } => match pass.step(&mut *series)? {
                Collected::Some => State::Symbols { series, pass },
                Collected::Enough => self.begin_series(series, pass, true, now_ms)?,
                Collected::All => self.begin_series(series, pass, false, now_ms)?,
            },
            State::Series { mut series, mut pass } => match pass.step(&mut *series)? {
                false => State::Series { series, pass },
                true => self.seal(series, pass)?,
            },
            State::Commit if self.head.deletion_mark()? != self.deletion_mark => {
                // The pieces may hold deleted samples. If not committed, they leave no trace.
                self.sealed.clear();
                if self.range.is_some() && self.head.plan_cut()? != self.range {
                    progress.done = true;
                    return Ok(progress);
                }
                self.start()?;
                return Ok(progress);
            }
            State::Commit => {
                self.commit(&mut progress)?;
                if self.range.is_some() { State::Truncate } else { State::Done }
            }
            State::Truncate => match self.truncate() {
                Ok(true) => State::Truncate,
                Ok(false) => State::Done,
                Err(error) => {
                    // The block is committed; the next call repeats only the truncation.
                    self.state = State::Truncate;
                    return Err(error);
                }
            },
            State::Done => State::Done,
        };
        progress.done = matches!(self.state, State::Done);
        Ok(progress)
    }

    fn begin_series(
        &self,
        mut series: Box<dyn SeriesSource>,
        pass: SymbolPass,
        has_rest: bool,
        now_ms: i64,
    ) -> Result<State> {
        let SymbolPass { symbols, series_count, span, .. } = pass;
        let range = self.range.unwrap_or(span);
        // A cursor cannot jump, so the second pass skips the series of earlier pieces as well.
        series.rewind()?;
        let time_ms = new_block_ms(&*self.blocks, now_ms, range.end_ms)?;
        let out = self.blocks.create(time_ms)?;
        let linked = LinkedChunks::default();
        let pass = SeriesPass::begin(out, linked, symbols, SAMPLES_PER_CHUNK_COMPACTED)?;
        // The index has the symbols of only `series_count` series, so the pass ends after these.
        let pass = pass.with_bounds(range, series_count, self.piece_bytes_max);
        Ok(State::Series {
            series,
            pass: PiecePass { skip: self.series_done, pass, range, has_rest },
        })
    }

    /// Seals a piece; returns the state that begins the next piece or commits all pieces.
    fn seal(&mut self, mut series: Box<dyn SeriesSource>, pass: PiecePass) -> Result<State> {
        let PiecePass { pass, range, has_rest, .. } = pass;
        let is_last = !has_rest && pass.left() == 0;
        self.series_done += pass.taken();
        // A piece without the hint would prove that all samples of its range are in blocks.
        let hints = if is_last { Vec::new() } else { vec![HINT_OUT_OF_ORDER.to_owned()] };
        self.sealed.extend(pass.seal(BlockMetaParams {
            min_time_ms: range.start_ms,
            max_time_ms: range.end_ms.saturating_add(1),
            level: 1,
            hints,
            ..BlockMetaParams::default()
        })?);
        if is_last {
            // Returning closes the cursor, because an open cursor keeps the head from truncating.
            return Ok(State::Commit);
        }
        series.rewind()?;
        Ok(self.begin_piece(series))
    }

    /// Commits all pieces in order. After an error they are deleted again, and the cut fails.
    fn commit(&mut self, progress: &mut CutProgress) -> Result<()> {
        let mut committed = Vec::new();
        for piece in self.sealed.drain(..) {
            match piece.commit() {
                Ok(meta) => {
                    progress.samples += meta.stats.num_samples;
                    committed.push(meta.ulid);
                }
                Err(error) => {
                    // A piece that cannot be deleted does no harm: reads see each sample once.
                    committed.iter().for_each(|ulid| drop(self.blocks.delete(ulid)));
                    return Err(error.into());
                }
            }
        }
        progress.block = committed.pop();
        Ok(())
    }

    fn truncate(&self) -> Result<bool> {
        self.range.map_or(Ok(false), |range| self.head.truncate(range.end_ms.saturating_add(1)))
    }
}

impl SymbolPass {
    /// Collects the symbols of a slice of the series.
    fn step(&mut self, series: &mut dyn SeriesSource) -> Result<Collected> {
        if self.skip > 0 {
            skip_slice(series, &mut self.skip)?;
            return Ok(Collected::Some);
        }
        for _ in 0..SERIES_PER_SLICE {
            let Some(next) = series.next_series()? else { return Ok(Collected::All) };
            // A piece gets at least one series, since an empty piece would repeat for ever.
            if self.symbols.memory_bytes() > self.bytes_max && self.series_count > 0 {
                return Ok(Collected::Enough);
            }
            self.symbols.add(&next.labels);
            self.series_count += 1;
            for chunk in &next.chunks {
                self.span.start_ms = self.span.start_ms.min(chunk.min_time_ms);
                self.span.end_ms = self.span.end_ms.max(chunk.max_time_ms);
            }
        }
        Ok(Collected::Some)
    }
}

impl PiecePass {
    /// Writes a slice of the series; returns whether the piece is complete.
    fn step(&mut self, series: &mut dyn SeriesSource) -> Result<bool> {
        if self.skip > 0 {
            skip_slice(series, &mut self.skip)?;
            return Ok(false);
        }
        self.pass.step(series)
    }
}

/// Skips a slice of the series of earlier pieces.
fn skip_slice(series: &mut dyn SeriesSource, left: &mut u64) -> Result<()> {
    for _ in 0..SERIES_PER_SLICE {
        if *left == 0 || series.next_series()?.is_none() {
            *left = 0;
            break;
        }
        *left -= 1;
    }
    Ok(())
}
