//! Begins a new log in place of a quarantined log. Its segment numbers continue after the numbers
//! of the old log, because forwarding distinguishes the logs by these numbers.
//!
//! ```text
//! before   00000005  00000006      now   checkpoint.00000006/00000000  00000007     both empty
//! ```
//!
//! Upstream requires that the first segment of a log has number 0 or follows a checkpoint; hence
//! the empty checkpoint. An out-of-order log has no checkpoints.

use super::segment::{WalListing, checkpoint_name, segment_name, unfinished_checkpoint_name};
use crate::OUT_OF_ORDER_WAL_DIR;
use crate::error::{Action, Result};
use crate::fs::{Disk, DiskFile};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Begins a log in the empty directory `dir` after the log in `before`, if that log exists.
pub(crate) fn begin_behind(disk: &dyn Disk, before: Option<&Path>, dir: &Path) -> Result<()> {
    let listing = match before.map(|before| (before, disk.list(before))) {
        None => return Ok(()),
        Some((_, Err(error))) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Some((before, _)) => WalListing::read(disk, before)?,
    };
    let Some(last) = listing.number_max else { return Ok(()) };
    let Some(next) = last.checked_add(1) else { return Ok(()) };
    disk.create_dir(dir).map_err(Action::Create.failed(dir))?;
    if !dir.ends_with(OUT_OF_ORDER_WAL_DIR) {
        // Under a temporary name, which the next start removes after a crash before the rename.
        let unfinished = dir.join(unfinished_checkpoint_name(last));
        disk.create_dir(&unfinished).map_err(Action::Create.failed(&unfinished))?;
        create(disk, &unfinished.join(segment_name(0)))?;
        disk.sync_dir(&unfinished).map_err(Action::Sync.failed(&unfinished))?;
        let named = disk.rename(&unfinished, &dir.join(checkpoint_name(last)));
        named.map_err(Action::Rename.failed(&unfinished))?;
    }
    create(disk, &dir.join(segment_name(next)))?;
    disk.sync_dir(dir).map_err(Action::Sync.failed(dir))
}

fn create(disk: &dyn Disk, path: &Path) -> Result<Arc<dyn DiskFile>> {
    disk.create(path).map_err(Action::Create.failed(path))
}
