//! Deletes files that a checkpoint replaces. A damaged file that could not be repaired is
//! quarantined instead, since a device that refused to read bytes may return them later.

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

pub(super) struct Removal {
    pub disk: Arc<dyn Disk>,
    pub quarantine: Quarantine,
    holding: Holding,
    pub counters: Arc<Counters>,
    /// Damaged segments that were not repaired. They are quarantined instead of being deleted.
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

    /// Notes that a segment stays damaged.
    pub fn note_damaged(&self, path: PathBuf) {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
    }

    /// Returns whether this segment, or a segment in this directory, stays damaged.
    pub fn is_damaged(&self, path: &Path) -> bool {
        let damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        damaged.iter().any(|found| found.starts_with(path))
    }

    /// Deletes the segments up to `last_segment`, inclusive. The caller syncs the directory.
    pub fn remove_segments(&self, listing: &WalListing, last_segment: u32) -> Result<()> {
        let mut segments = listing.segments.iter().filter(|found| found.number <= last_segment);
        segments.try_for_each(|found| self.remove_segment(&found.path))
    }

    /// Deletes a segment, or holds it for forwarding. A held segment that is damaged is quarantined
    /// as well, since forwarding still reads its undamaged records.
    pub fn remove_segment(&self, path: &Path) -> Result<()> {
        let is_gone = match self.holding.is_on() {
            // Only copied or linked, because the original moves to the held segments.
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

    pub fn remove_checkpoint(&self, path: &Path) -> Result<()> {
        // Held segments refer to series in the checkpoint, so the checkpoint is held as well.
        match self.take_damaged(path, |path| self.quarantine.take(path)) {
            true => Ok(()),
            false if self.holding.take(&*self.disk, path)? => Ok(()),
            false => remove_tree(&*self.disk, path).map_err(Action::Remove.failed(path)),
        }
    }

    /// Quarantines a damaged file by `quarantine`; returns whether that succeeded. After a failure
    /// the caller deletes the file nevertheless, because a log that only grows fills the disk.
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
