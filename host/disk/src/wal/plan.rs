//! Selects the files that a replay reads: the newest checkpoint, then the segments after it.
//!
//! Older files than the newest checkpoint remain only after a crash between writing the checkpoint
//! and deleting the files that it replaces. If the checkpoint is damaged, these files are read
//! before it, since they may have records that the checkpoint has lost.

use super::pack::Unpacker;
use super::reader::{SegmentReader, Tail};
use super::segment::{CheckpointDir, SegmentFile, WalListing};
use super::stats::Counters;
use crate::error::Result;
use crate::fs::{Access, Disk};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// The files to read, in this order, and irregularities of the directory.
#[derive(Debug, Default)]
pub(super) struct ReadingPlan {
    pub sources: VecDeque<Source>,
    pub oddities: Vec<Oddity>,
}

#[derive(Clone, Debug)]
pub(super) struct Source {
    pub segment: u32,
    pub path: PathBuf,
    pub size_bytes: u64,
    /// Whether a crash may have torn the end of this file.
    pub is_last: bool,
    /// Whether the file must stay unrepaired if it is damaged: only while the damage stays, the
    /// next replay reads the older files, too.
    pub must_stay: bool,
}

/// An irregularity that the replay skips.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Oddity {
    /// The checkpoint has no segments.
    #[error("a WAL checkpoint without segments")]
    EmptyCheckpoint {
        /// Directory of the checkpoint without segments.
        path: PathBuf,
    },
    /// The file or directory cannot be read at all.
    #[error("it cannot be read: {reason}")]
    Unreadable {
        path: PathBuf,
        /// Message of the operating system's error.
        reason: String,
    },
    /// The number of the segment does not follow the number before it.
    #[error("WAL segments from {expected:08} on are missing before this one")]
    Gap {
        path: PathBuf,
        /// Lowest number of the missing segments.
        expected: u32,
    },
}

impl Oddity {
    pub fn path(&self) -> &PathBuf {
        match self {
            Oddity::EmptyCheckpoint { path }
            | Oddity::Unreadable { path, .. }
            | Oddity::Gap { path, .. } => path,
        }
    }
}

impl ReadingPlan {
    pub fn new(disk: &dyn Disk, listing: &WalListing) -> ReadingPlan {
        let mut plan = ReadingPlan::default();
        // Newest first. An older checkpoint is read only if all newer checkpoints are damaged.
        let mut checkpoints: Vec<(u32, VecDeque<Source>)> = Vec::new();
        let mut is_complete = false;
        for (at, checkpoint) in listing.checkpoints.iter().enumerate().rev() {
            let number = checkpoint.number;
            let mut sources = match checkpoint_sources(disk, checkpoint) {
                Ok(sources) => sources,
                Err(error) => {
                    let (path, reason) = (checkpoint.path.clone(), error.to_string());
                    plan.oddities.push(Oddity::Unreadable { path, reason });
                    continue;
                }
            };
            if sources.is_empty() {
                plan.oddities.push(Oddity::EmptyCheckpoint { path: checkpoint.path.clone() });
                continue;
            }
            let has_older =
                at > 0 || listing.segments.first().is_some_and(|found| found.number <= number);
            // A check reads the whole checkpoint, so only where older files could replace it.
            is_complete = !has_older || sources.iter().all(|source| is_sound(disk, source));
            if !is_complete {
                sources.iter_mut().for_each(|source| source.must_stay = true);
            }
            checkpoints.push((number, sources));
            if is_complete {
                break;
            }
        }
        let newest = checkpoints.first().map(|(number, _)| *number);
        let oldest = checkpoints.last().map(|(number, _)| *number).filter(|_| is_complete);
        let segments = listing.segments.iter().filter(|found| Some(found.number) > oldest);
        // Empty segments at the end belong to runs that wrote nothing. They cannot be torn.
        let last = segments.clone().rfind(|found| found.size_bytes > 0);
        let mut expected = newest.and_then(|number| number.checked_add(1));
        for found in segments {
            // A checkpoint's records come after the records of the segments that it covers.
            while let Some((_, sources)) = checkpoints.pop_if(|(number, _)| *number < found.number)
            {
                plan.sources.extend(sources);
            }
            if Some(found.number) > newest {
                if let Some(expected) = expected.filter(|expected| *expected != found.number) {
                    plan.oddities.push(Oddity::Gap { path: found.path.clone(), expected });
                }
                expected = found.number.checked_add(1);
            }
            let is_last = last.is_some_and(|last| last.number == found.number);
            plan.sources.push_back(Source::new(found, found.number, is_last));
        }
        plan.sources.extend(checkpoints.into_iter().rev().flat_map(|(_, sources)| sources));
        plan
    }

    pub fn size_bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.size_bytes).sum()
    }
}

impl Source {
    fn new(found: &SegmentFile, segment: u32, is_last: bool) -> Source {
        let (path, size_bytes) = (found.path.clone(), found.size_bytes);
        Source { segment, path, size_bytes, is_last, must_stay: false }
    }
}

fn checkpoint_sources(disk: &dyn Disk, checkpoint: &CheckpointDir) -> Result<VecDeque<Source>> {
    let inside = WalListing::read(disk, &checkpoint.path)?;
    // A checkpoint is synced before its rename, so an incomplete end is damage, not a torn tail.
    let sources = inside.segments.iter().map(|found| Source::new(found, checkpoint.number, false));
    Ok(sources.collect())
}

/// Returns whether a segment of a checkpoint can be read completely.
fn is_sound(disk: &dyn Disk, source: &Source) -> bool {
    let Ok(file) = disk.open(&source.path, Access::Read) else { return false };
    let counters = Arc::new(Counters::default());
    let mut reader = SegmentReader::new(file, source.path.clone(), source.size_bytes, counters);
    let mut unpacker = Unpacker::default();
    while reader.next(&mut unpacker).is_some() {}
    reader.tail() == Tail::Clean && reader.damage().places == 0
}
