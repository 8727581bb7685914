//! Verifies a block or a log: checksums, orders and references.
//!
//! ```text
//! meta.json, tombstones ─▶ table of contents, symbols ─▶ series ─▶ their chunks
//!                                             label indices ─▶ postings ─▶ each series in its lists
//! ```
//!
//! Faults are reported with file and offset, and the check continues after them. Memory: four bytes
//! a series, and some thirty for each label pair.
//!
//! Some faults of `meta.json` are not found: values that no other file repeats (the range around
//! the samples, the level of compaction, names of parents and sources), names of counts that older
//! versions do not write, and white space.

mod chunks;
mod index;
mod log;
mod meta;
mod postings;
mod series;

#[cfg(test)]
mod tests;

pub use log::{LogCheck, LogCounts, RecordFinding};

use crate::block::{BlockError, BlockMeta, chunk_file_name};
use crate::index::{INDEX_FILE, IndexError, SymbolTable};
use crate::storage::{Blocks, StorageError, StorageResult};
use chunks::ChunkWalk;
use index::IndexFile;
use postings::PostingsWalk;
use series::SeriesWalk;
use std::rc::Rc;

/// Maximum number of findings reported for one block.
const FINDINGS_MAX: u64 = 1000;

const ENTRIES_PER_SLICE: usize = 1000;

/// Severity of a finding: an error or a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The block or log violates its format.
    Error,
    /// The block or log is unusual, but no data is lost.
    Warning,
}

/// A fault of a block, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether data is wrong or merely unusual.
    pub severity: Severity,
    /// Name of the file in the block.
    pub file: String,
    /// Byte offset in the file, as near as it is known.
    pub offset: u64,
    /// Description of the fault, for people.
    pub what: String,
}

/// Progress and findings of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckStep {
    /// Whether all of the block was checked.
    pub done: bool,
    /// Number of bytes that were checked so far.
    pub bytes_done: u64,
    /// Number of bytes that are to be checked.
    pub bytes_total: u64,
    /// Findings of this slice, in the order of checking.
    pub findings: Vec<Finding>,
    /// Intact series, chunks and samples of the block so far.
    pub found: BlockCounts,
}

/// Counts of the intact parts of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Number of series that can be read.
    pub series: u64,
    /// Number of chunks that decode completely.
    pub chunks: u64,
    /// Number of samples in those chunks.
    pub samples: u64,
    /// Number of float samples in those chunks.
    pub float_samples: u64,
}

/// Findings since the last slice, and numbers of findings so far.
#[derive(Default)]
struct Report {
    findings: Vec<Finding>,
    found: u64,
    errors: u64,
}

impl Report {
    fn add(&mut self, severity: Severity, file: &str, offset: u64, what: impl Into<String>) {
        self.errors += u64::from(severity == Severity::Error);
        self.found += 1;
        if self.found > FINDINGS_MAX {
            return;
        }
        // The last finding replaces all further ones: a damaged block must not fill the memory.
        let what = match self.found == FINDINGS_MAX {
            true => "further findings are not listed".to_owned(),
            false => what.into(),
        };
        self.findings.push(Finding { severity, file: file.to_owned(), offset, what });
    }

    fn error(&mut self, file: &str, offset: u64, what: impl Into<String>) {
        self.add(Severity::Error, file, offset, what);
    }

    fn warning(&mut self, file: &str, offset: u64, what: impl Into<String>) {
        self.add(Severity::Warning, file, offset, what);
    }

    /// Reports a read error, even a failure of storage, as a finding: the rest may be readable.
    fn block_error(&mut self, file: &str, error: &BlockError) {
        match error {
            BlockError::Damaged(damage) | BlockError::Index(IndexError::Damaged(damage)) => {
                self.error(&damage.file, damage.offset, damage.what);
            }
            other => self.error(file, 0, other.to_string()),
        }
    }

    fn index_error(&mut self, error: IndexError) {
        self.block_error(INDEX_FILE, &BlockError::Index(error));
    }
}

/// The check of one block, a slice at a time.
pub struct BlockCheck {
    blocks: Rc<dyn Blocks>,
    block: String,
    report: Report,
    state: State,
    meta: Option<BlockMeta>,
    index: Option<IndexFile>,
    symbols: Option<SymbolTable>,
    chunks: ChunkWalk,
    bytes_done: u64,
    bytes_total: u64,
    found: BlockCounts,
}

enum State {
    Files,
    Series(SeriesWalk),
    /// Reads chunks to which no series refers.
    Chunks(SeriesWalk),
    Postings(Box<PostingsWalk>),
    Done,
}

impl BlockCheck {
    /// Begins a check; nothing is read yet.
    pub fn new(blocks: Rc<dyn Blocks>, block: &str) -> BlockCheck {
        BlockCheck {
            blocks,
            block: block.to_owned(),
            report: Report::default(),
            state: State::Files,
            meta: None,
            index: None,
            symbols: None,
            chunks: ChunkWalk::default(),
            bytes_done: 0,
            bytes_total: 0,
            found: BlockCounts::default(),
        }
    }

    /// Checks the next part of the block.
    pub fn step(&mut self) -> StorageResult<CheckStep> {
        // If a check fails, the next call finds `Done` and ends.
        let state = std::mem::replace(&mut self.state, State::Done);
        self.state = match state {
            State::Files => self.check_files()?,
            State::Series(walk) => self.check_series(walk)?,
            State::Chunks(walk) => self.check_chunks(walk)?,
            State::Postings(walk) => self.check_postings(walk)?,
            State::Done => State::Done,
        };
        let done = matches!(self.state, State::Done);
        Ok(CheckStep {
            done,
            bytes_done: if done { self.bytes_total } else { self.bytes_done },
            bytes_total: self.bytes_total,
            findings: std::mem::take(&mut self.report.findings),
            found: self.found,
        })
    }

    fn check_files(&mut self) -> StorageResult<State> {
        let BlockCheck { blocks, block, report, .. } = self;
        self.meta = meta::check_meta(&**blocks, block, report)?;
        self.chunks = ChunkWalk::open(&**blocks, block, report)?;
        self.index = match blocks.open(block, INDEX_FILE) {
            Ok(file) => IndexFile::open(file, block, report)?,
            Err(StorageError::NotFound { .. }) => {
                report.error(INDEX_FILE, 0, "the file is missing");
                None
            }
            Err(error) => return Err(error),
        };
        self.bytes_total = self.chunks.bytes_total();
        let mut walk = SeriesWalk::default();
        if let Some(index) = &self.index {
            self.bytes_total += index.size();
            // All bytes before the series section are checked by now.
            self.bytes_done = index.layout.series;
            self.symbols = index.check_symbols(report)?;
            walk = SeriesWalk::new(index);
        }
        Ok(State::Series(walk))
    }

    fn check_series(&mut self, mut walk: SeriesWalk) -> StorageResult<State> {
        let Some(index) = &mut self.index else { return Ok(State::Chunks(walk)) };
        let range = self.meta.as_ref().map(BlockMeta::time_range);
        for _ in 0..ENTRIES_PER_SLICE {
            let Some(entry) = walk.next(index, &mut self.report)? else {
                self.found.series = walk.refs().len() as u64;
                return Ok(State::Chunks(walk));
            };
            let symbols = self.symbols.as_mut();
            walk.check_labels(&entry, symbols, &mut self.report);
            self.chunks.check_series(&entry, range, &mut self.found, &mut self.report)?;
        }
        self.found.series = walk.refs().len() as u64;
        self.bytes_done = walk.offset() + self.chunks.bytes_done();
        Ok(State::Series(walk))
    }

    fn check_chunks(&mut self, walk: SeriesWalk) -> StorageResult<State> {
        self.chunks.check_rest(&mut self.report)?;
        let Some(index) = &mut self.index else { return self.end(None) };
        self.bytes_done = index.layout.label_indices + self.chunks.bytes_total();
        index.check_label_indices(&mut self.report)?;
        match PostingsWalk::new(index, walk, &mut self.report)? {
            Some(walk) => Ok(State::Postings(Box::new(walk))),
            None => self.end(None),
        }
    }

    fn check_postings(&mut self, mut walk: Box<PostingsWalk>) -> StorageResult<State> {
        let Some(index) = &mut self.index else { return self.end(None) };
        for _ in 0..ENTRIES_PER_SLICE {
            if !walk.next(index, self.symbols.as_mut(), &mut self.report)? {
                return self.end(Some(walk));
            }
        }
        self.bytes_done = walk.offset() + self.chunks.bytes_total();
        Ok(State::Postings(walk))
    }

    /// Checks totals, after all of the block was read.
    fn end(&mut self, walk: Option<Box<PostingsWalk>>) -> StorageResult<State> {
        if let (Some(walk), Some(index)) = (walk, &mut self.index) {
            walk.finish(index, &mut self.report)?;
        }
        // After errors, the counts lack the unreadable parts.
        if let Some(meta) = &self.meta
            && self.report.errors == 0
            && self.index.is_some()
        {
            meta::check_counts(meta, &self.found, &mut self.report);
        }
        Ok(State::Done)
    }
}

fn chunk_file(number: usize) -> String {
    chunk_file_name(u32::try_from(number).unwrap_or(u32::MAX))
}
