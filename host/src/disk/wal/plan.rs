//! What is to be read of a log's directory: the newest checkpoint, then the segments after it.

use super::segment::{CheckpointDir, SegmentFile, WalListing};
use crate::disk::error::Result;
use crate::disk::fs::Disk;
use std::collections::VecDeque;
use std::path::PathBuf;

/// The files to read, in order, and what is odd about the directory.
#[derive(Debug, Default)]
pub(super) struct ReadingPlan {
    pub sources: VecDeque<Source>,
    pub oddities: Vec<Oddity>,
}

/// One file to read.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub segment: u32,
    pub path: PathBuf,
    pub size_bytes: u64,
    /// Whether a crash may have torn its end.
    pub is_last: bool,
}

/// Something that reading steps over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Oddity {
    /// A checkpoint with nothing in it.
    #[error("a WAL checkpoint without segments")]
    EmptyCheckpoint {
        /// Its directory.
        path: PathBuf,
    },
    /// A segment that does not follow the one before.
    #[error("WAL segments from {expected:08} on are missing before this one")]
    Gap {
        /// The segment after the gap.
        path: PathBuf,
        /// The first number that is missing.
        expected: u32,
    },
}

impl Oddity {
    /// Where it is.
    pub fn path(&self) -> &PathBuf {
        match self {
            Oddity::EmptyCheckpoint { path } | Oddity::Gap { path, .. } => path,
        }
    }
}

impl ReadingPlan {
    pub fn new(disk: &dyn Disk, listing: &WalListing) -> Result<ReadingPlan> {
        let mut plan = ReadingPlan::default();
        let mut after = None;
        for checkpoint in listing.checkpoints.iter().rev() {
            plan.sources = checkpoint_sources(disk, checkpoint)?;
            if !plan.sources.is_empty() {
                after = Some(checkpoint.number);
                break;
            }
            plan.oddities.push(Oddity::EmptyCheckpoint { path: checkpoint.path.clone() });
        }
        let segments = listing.segments.iter().filter(|found| Some(found.number) > after);
        let last = segments.clone().rfind(|found| found.size_bytes > 0);
        let mut expected = after.and_then(|number| number.checked_add(1));
        for found in segments {
            if let Some(expected) = expected.filter(|expected| *expected != found.number) {
                plan.oddities.push(Oddity::Gap { path: found.path.clone(), expected });
            }
            expected = found.number.checked_add(1);
            let is_last = last.is_some_and(|last| last.number == found.number);
            plan.sources.push_back(Source::new(found, found.number, is_last));
        }
        Ok(plan)
    }

    /// Bytes of all files together.
    pub fn size_bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.size_bytes).sum()
    }
}

impl Source {
    fn new(found: &SegmentFile, segment: u32, is_last: bool) -> Source {
        Source { segment, path: found.path.clone(), size_bytes: found.size_bytes, is_last }
    }
}

fn checkpoint_sources(disk: &dyn Disk, checkpoint: &CheckpointDir) -> Result<VecDeque<Source>> {
    let inside = WalListing::read(disk, &checkpoint.path)?;
    // It was synced before it got its name, so whatever is wrong in it is damage.
    let sources = inside.segments.iter().map(|found| Source::new(found, checkpoint.number, false));
    Ok(sources.collect())
}
