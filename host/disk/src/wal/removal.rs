//! Deleting the files that a checkpoint replaces. A damaged file that could not be repaired is not
//! deleted but quarantined, since the device may give another time what it did not give this time.

use super::held::Holding;
use super::segment::WalListing;
use super::stats::Counters;
use crate::error::{Action, Result};
use crate::fs::{Disk, remove_tree};
use crate::quarantine::Quarantine;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

/// How a log's files are deleted.
pub(super) struct Removal {
    pub disk: Arc<dyn Disk>,
    pub quarantine: Quarantine,
    holding: Holding,
    pub counters: Arc<Counters>,
    /// Damaged segments that stay as they are.
    damaged: Mutex<HashSet<PathBuf>>,
}

impl Removal {
    pub fn new(
        disk: Arc<dyn Disk>,
        quarantine: Quarantine,
        holding: Holding,
        counters: Arc<Counters>,
    ) -> Removal {
        Removal { disk, quarantine, holding, counters, damaged: Mutex::default() }
    }

    /// This segment stays damaged.
    pub fn note_damaged(&self, path: PathBuf) {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
    }

    /// Whether a segment, or one in this directory, is damaged.
    pub fn is_damaged(&self, path: &Path) -> bool {
        let damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        damaged.iter().any(|found| found.starts_with(path))
    }

    /// Deletes the segments up to `last_segment`, inclusive. The caller syncs the directory.
    pub fn remove_segments(&self, listing: &WalListing, last_segment: u32) -> Result<()> {
        let mut segments = listing.segments.iter().filter(|found| found.number <= last_segment);
        segments.try_for_each(|found| self.remove_segment(&found.path))
    }

    /// Deletes a segment. One that is held for others and damaged is quarantined besides: they read
    /// of it what can be read.
    pub fn remove_segment(&self, path: &Path) -> Result<()> {
        let is_gone = match self.holding.is_on() {
            true => {
                self.take_damaged(path, |path| self.quarantine.keep_segment(path));
                self.holding.take(&*self.disk, path)?
            }
            false => self.take_damaged(path, |path| self.quarantine.take(path)),
        };
        if !is_gone {
            self.disk.remove_file(path).map_err(Action::Remove.failed(path))?;
        }
        self.counters.segments_deleted.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Deletes a checkpoint.
    pub fn remove_checkpoint(&self, path: &Path) -> Result<()> {
        match self.take_damaged(path, |path| self.quarantine.take(path)) {
            true => Ok(()),
            false if self.holding.take(&*self.disk, path)? => Ok(()),
            false => remove_tree(&*self.disk, path).map_err(Action::Remove.failed(path)),
        }
    }

    /// Quarantines it in this way if it is damaged; returns whether it was moved. If that fails it
    /// is deleted all the same: a log that only grows ends in a full disk.
    fn take_damaged(
        &self,
        path: &Path,
        quarantine: impl FnOnce(&Path) -> Result<Option<PathBuf>>,
    ) -> bool {
        if !self.is_damaged(path) {
            return false;
        }
        match quarantine(path) {
            Ok(kept) => {
                let to = kept.map(|kept| kept.display().to_string());
                tracing::warn!(
                    path = %path.display(), to,
                    "quarantined a damaged WAL file that is no longer needed"
                );
                true
            }
            Err(error) => {
                tracing::error!(
                    path = %path.display(), %error,
                    "could not quarantine a damaged WAL file that is no longer needed; deleting \
                     it"
                );
                false
            }
        }
    }
}
