//! Merging blocks into one, a slice at a time.
//!
//! ```text
//! symbols ──▶ series and chunks ──▶ commit ──▶ delete the parents ──▶ done
//! └──────── a crash leaves only ────────┘      └─ the child names its ─┘
//!           what storage sweeps                   parents: `superseded`
//! ```
//!
//! The new block holds every sample of its parents that was not deleted. If several parents have
//! samples of one series at the same time, the newest parent's is kept, as on reads
//! ([`BlockMeta::newest_source`]). Chunks without overlaps and deletions are copied whole, except
//! that runs of small float chunks are joined (`repack.rs`).
//!
//! Memory: the new block's symbols, each once, with some 40 bytes each; four bytes for each label
//! of each series, and eight for each series of each parent; per parent some hundred KiB of index
//! and chunks read ahead, a part of its symbols, and the chunks of two series. Memory does not grow
//! with the samples, except that all chunks of one series are in memory at once. A merge that needs
//! more than its limit gives up.

use super::linked::{self, Begun, LinkedParent, MergedSeries};
use super::parent::{Blame, Parent, find_undecodable, tombstones_crc};
use super::series_pass::SeriesPass;
use super::{BadBlock, MEMORY_BYTES_BASE, MergeError, Plan, SAMPLES_PER_CHUNK_COMPACTED};
use crate::block::{BlockMeta, BlockMetaParams, SymbolCollector};
use crate::error::Error;
use crate::index::IndexError;
use crate::select::{Merge, SeriesSource};
use crate::storage::{Blocks, StorageError};
use std::ops::ControlFlow;
use std::rc::Rc;
use tidepool_model::sort;

/// Number of label values per slice of the first pass, exceeded by one label name at most.
const VALUES_PER_SLICE: usize = 50_000;

/// Read-ahead memory of each parent besides its tables, in bytes.
const MEMORY_BYTES_PER_PARENT: u64 = 640 * 1024;

/// Memory per series of a parent in bytes: its reference is in memory twice while the list is read.
const MEMORY_BYTES_PER_PARENT_SERIES: u64 = 8;

/// A merge of blocks. If it is dropped before the commit, it leaves no trace.
pub struct BlockMerge {
    blocks: Rc<dyn Blocks>,
    plan: Plan,
    samples_per_chunk: usize,
    /// Limit of all memory of the merge.
    memory_bytes_max: u64,
    /// Part of the limit that is left for labels and series.
    labels_bytes_max: u64,
    /// ULID of each parent, with the checksum of its tombstones when the merge began.
    tombstones: Vec<(String, u32)>,
    blame: Blame,
    state: State,
}

enum State {
    Symbols(SymbolPass),
    Series {
        pass: SeriesPass,
        series: Box<MergedSeries>,
    },
    /// Parents that are not deleted yet.
    Delete(Vec<String>),
    Done,
}

/// The first pass: takes names and values from the parents' postings tables.
struct SymbolPass {
    parents: Vec<Parent>,
    symbols: SymbolCollector,
    /// Number of parents begun; `names` are the remaining label names of the last of them.
    parent: usize,
    names: std::vec::IntoIter<String>,
}

/// Result of a slice of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeProgress {
    /// Whether the merge is complete and the parents are deleted.
    pub done: bool,
    /// Number of series written so far.
    pub series: u64,
    /// The new block, if this slice committed it; no block is made if no sample is left.
    pub committed: Option<BlockMeta>,
    /// ULIDs of the parents that this slice deleted.
    pub deleted: Vec<String>,
}

impl BlockMerge {
    /// Opens all parents of a plan, or fails with the first that does not open.
    pub fn new(
        blocks: Rc<dyn Blocks>,
        plan: Plan,
        hash_seed: u64,
    ) -> std::result::Result<BlockMerge, MergeError> {
        let mut parents = Vec::with_capacity(plan.parents.len());
        for parent in &plan.parents {
            parents.push(Parent::open(&*blocks, &parent.ulid)?);
        }
        let opened = plan.parents.iter().zip(&parents);
        let tombstones =
            opened.map(|(desc, parent)| (desc.ulid.clone(), parent.tombstones_crc)).collect();
        let symbols = SymbolCollector::new(hash_seed);
        let names = Vec::new().into_iter();
        Ok(BlockMerge {
            blocks,
            plan,
            samples_per_chunk: SAMPLES_PER_CHUNK_COMPACTED,
            memory_bytes_max: u64::MAX,
            labels_bytes_max: u64::MAX,
            tombstones,
            blame: Blame::default(),
            state: State::Symbols(SymbolPass { parents, symbols, parent: 0, names }),
        })
    }

    /// Sets the number of samples up to which chunks are joined; 0 leaves all chunks as they are.
    pub fn with_samples_per_chunk(self, samples_per_chunk: usize) -> BlockMerge {
        BlockMerge { samples_per_chunk, ..self }
    }

    /// Sets the memory limit beyond which the merge gives up.
    pub fn with_memory_bytes_max(self, memory_bytes_max: u64) -> BlockMerge {
        // Later states no longer have the parents, so the limit is set before the first slice.
        let State::Symbols(SymbolPass { parents, .. }) = &self.state else { return self };
        let parents: u64 = parents.iter().map(Parent::memory_bytes_max).sum();
        let labels_bytes_max = memory_bytes_max.saturating_sub(MEMORY_BYTES_BASE + parents);
        BlockMerge { memory_bytes_max, labels_bytes_max, ..self }
    }

    /// The plan with the blocks that are being merged.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Does the next slice. After an error before the commit the merge is over and has left no
    /// trace; after an error while parents are deleted, the next call continues deleting.
    pub fn step(&mut self, now_ms: i64) -> std::result::Result<MergeProgress, MergeError> {
        let mut progress = MergeProgress::default();
        self.state = match std::mem::replace(&mut self.state, State::Done) {
            State::Symbols(pass) => self.collect(pass, now_ms)?,
            State::Series { mut pass, mut series } => {
                let ended =
                    pass.step_of(|| series.next_series()).map_err(|error| self.explain(error))?;
                self.check_memory(pass.memory_bytes())?;
                progress.series = pass.series_count();
                match ended {
                    false => State::Series { pass, series },
                    true => {
                        drop(series);
                        progress.committed = self.commit(pass)?;
                        let parents = self.plan.parents.iter().map(|parent| parent.ulid.clone());
                        State::Delete(parents.collect())
                    }
                }
            }
            State::Delete(parents) => {
                // Restored first, so that the next call continues here after an error.
                self.state = State::Delete(parents);
                self.delete_parents(&mut progress)?;
                State::Done
            }
            State::Done => State::Done,
        };
        progress.done = matches!(self.state, State::Done);
        Ok(progress)
    }

    /// Does a slice of the first pass, or begins the second.
    fn collect(&self, mut pass: SymbolPass, now_ms: i64) -> std::result::Result<State, MergeError> {
        let mut values = 0;
        self.check_memory(pass.symbols.memory_bytes())?;
        while values < VALUES_PER_SLICE {
            if let Some(name) = pass.names.next() {
                values += pass.add_values(&name).map_err(|error| {
                    let ulid = self.plan.parents.get(pass.parent.saturating_sub(1));
                    BadBlock::of(ulid.map_or("", |desc| &desc.ulid), &error.into())
                })?;
            } else if let Some(parent) = pass.parents.get(pass.parent) {
                let names: Vec<String> = parent.reader.label_names().map(str::to_owned).collect();
                pass.names = names.into_iter();
                pass.parent += 1;
            } else {
                return self.begin_series(pass, now_ms);
            }
        }
        Ok(State::Symbols(pass))
    }

    fn begin_series(
        &self,
        pass: SymbolPass,
        now_ms: i64,
    ) -> std::result::Result<State, MergeError> {
        let ulids = self.plan.parents.iter().map(|desc| desc.ulid.clone());
        let mut parents: Vec<(String, Parent)> = ulids.zip(pass.parents).collect();
        // Of two samples at one time the newest parent's is kept, so parents are sorted by age.
        sort::sort_by(&mut parents, |(ulid, parent), (other_ulid, other)| {
            let by_age = parent.meta().newest_source().cmp(other.meta().newest_source());
            by_age.then_with(|| ulid.cmp(other_ulid))
        });
        let begun = linked::begin(&*self.blocks, now_ms, &parents, self.samples_per_chunk);
        let Begun { out, linked, first_files } = begun?;
        let mut sources: Vec<Box<dyn SeriesSource>> = Vec::with_capacity(parents.len());
        let mut linked_parents = Vec::new();
        // Reversed, because `Merge` prefers the earlier source.
        for ((ulid, parent), first_file) in parents.into_iter().zip(first_files).rev() {
            match first_file {
                None => sources.push(Box::new(parent.into_series(&ulid, &self.blame)?)),
                Some(first_file) => {
                    let parent = LinkedParent::new(&ulid, parent, first_file, &self.blame);
                    linked_parents.push(parent.map_err(|error| self.explain(error))?);
                }
            }
        }
        let begin = || {
            let series = Merge::new(sources)?;
            let series = Box::new(MergedSeries::new(series, linked_parents)?);
            let pass = SeriesPass::begin(out, linked, pass.symbols, self.samples_per_chunk)?;
            Ok(State::Series { pass, series })
        };
        begin().map_err(|error| self.explain(error))
    }

    fn commit(&self, pass: SeriesPass) -> std::result::Result<Option<BlockMeta>, MergeError> {
        // Samples deleted since the parents were opened would come back with the new block.
        for (ulid, crc) in &self.tombstones {
            let now = tombstones_crc(&*self.blocks, ulid);
            if now.map_err(|error| BadBlock::of(ulid, &error))? != *crc {
                return Err(MergeError::Deleted { block: ulid.clone() });
            }
        }
        let Plan { parents, min_time_ms, max_time_ms, level, sources, hints, .. } =
            self.plan.clone();
        let params = BlockMetaParams { min_time_ms, max_time_ms, level, sources, parents, hints };
        pass.finish(params).map_err(|error| self.explain(error))
    }

    fn delete_parents(
        &mut self,
        progress: &mut MergeProgress,
    ) -> std::result::Result<(), MergeError> {
        let State::Delete(parents) = &mut self.state else { return Ok(()) };
        while let Some(ulid) = parents.last() {
            match self.blocks.delete(ulid) {
                // Retention may have deleted the parent meanwhile.
                Ok(()) | Err(StorageError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            progress.deleted.extend(parents.pop());
        }
        Ok(())
    }

    /// Fails if labels and series need more memory than is left for them.
    fn check_memory(&self, labels_bytes: u64) -> std::result::Result<(), MergeError> {
        if labels_bytes <= self.labels_bytes_max {
            return Ok(());
        }
        let what = "bytes of memory for a merge, most of them for labels";
        Err(self.explain(Error::LimitExceeded { what, max: self.memory_bytes_max }))
    }

    /// Attributes an error of the series pass to a parent, to storage or to the merge.
    fn explain(&self, error: Error) -> MergeError {
        // `blame` names a parent that could not be read.
        if let Some(bad) = self.blame.borrow_mut().take() {
            return bad.into();
        }
        let ulids = || self.plan.parents.iter().map(|desc| desc.ulid.clone());
        // The error of a chunk does not name its parent, so all parents are searched.
        if let Error::Chunk { series, .. } = &error
            && let Some(bad) = find_undecodable(&*self.blocks, ulids(), series)
        {
            return bad.into();
        }
        match error {
            Error::Storage(error) => error.into(),
            Error::Block(crate::block::BlockError::Storage(error))
            | Error::Block(crate::block::BlockError::Index(IndexError::Storage(error))) => {
                error.into()
            }
            error => MergeError::Refused { parents: ulids().collect(), source: Box::new(error) },
        }
    }
}

impl Parent {
    /// Upper bound of the parent's memory during the merge, in bytes.
    fn memory_bytes_max(&self) -> u64 {
        let series = self.meta().stats.num_series.saturating_mul(MEMORY_BYTES_PER_PARENT_SERIES);
        let tables = self.reader.index().memory_bytes_max();
        MEMORY_BYTES_PER_PARENT.saturating_add(series).saturating_add(tables)
    }
}

impl SymbolPass {
    /// Adds a label name of the current parent and its values; returns the number of values.
    fn add_values(&mut self, name: &str) -> std::result::Result<usize, IndexError> {
        let Some(parent) = self.parents.get(self.parent.saturating_sub(1)) else { return Ok(0) };
        let mut count = 0;
        self.symbols.add_text(name);
        parent.reader.index().each_label_value(name, |value| {
            self.symbols.add_text(value);
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }
}
