//! Damaged segments as they were found: `set-aside/000001-journal-00000007` beside the journal.
//!
//! The numbers at the begin ascend. Names without `-journal-` belong to others and stay.

use super::error::{JournalError, Result};
use std::path::{Path, PathBuf};
use tidepool_disk::error::Action;
use tidepool_disk::fs::{Access, Disk};

pub(super) const QUARANTINE_DIR: &str = "set-aside";

/// Bounds of the quarantine. The oldest files are deleted first, the newest stays in any case.
pub(super) const FILES_MAX: usize = 8;
pub(super) const BYTES_MAX: u64 = 4 << 20;

const MARK: &str = "-journal-";

const COPY_BYTES: u64 = 64 * 1024;

/// Gives a segment a second name in the quarantine, or copies it where the disk has no hard links.
pub(super) fn keep(disk: &dyn Disk, dir: &Path, segment: &Path) -> Result<PathBuf> {
    let kept = place(disk, dir, segment)?;
    if disk.link(segment, &kept).is_err() {
        copy(disk, segment, &kept)?;
    }
    finish(disk, dir)?;
    Ok(kept)
}

/// Moves a segment to the quarantine.
pub(super) fn take(disk: &dyn Disk, dir: &Path, segment: &Path) -> Result<PathBuf> {
    let kept = place(disk, dir, segment)?;
    disk.rename(segment, &kept).map_err(JournalError::on(Action::Rename, segment))?;
    finish(disk, dir)?;
    // The target was synced first: a power cut in between leaves one of the names.
    if let Some(parent) = segment.parent() {
        disk.sync_dir(parent).map_err(JournalError::on(Action::Sync, parent))?;
    }
    Ok(kept)
}

/// Path with the next free number.
fn place(disk: &dyn Disk, dir: &Path, segment: &Path) -> Result<PathBuf> {
    let quarantine = dir.join(QUARANTINE_DIR);
    disk.create_dir(&quarantine).map_err(JournalError::on(Action::Create, &quarantine))?;
    disk.sync_dir(dir).map_err(JournalError::on(Action::Sync, dir))?;
    let entries = disk.list(&quarantine).map_err(JournalError::on(Action::List, &quarantine))?;
    let numbers = entries.iter().filter_map(|entry| number_of(entry.name()?));
    let number = numbers.max().unwrap_or(0).saturating_add(1);
    let name = segment.file_name().unwrap_or_default().to_string_lossy();
    Ok(quarantine.join(format!("{number:06}{MARK}{name}")))
}

/// Syncs the names, and deletes the oldest files that are too many.
fn finish(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let quarantine = dir.join(QUARANTINE_DIR);
    disk.sync_dir(&quarantine).map_err(JournalError::on(Action::Sync, &quarantine))?;
    let entries = disk.list(&quarantine).map_err(JournalError::on(Action::List, &quarantine))?;
    let mut files: Vec<_> =
        entries.iter().filter_map(|file| Some((number_of(file.name()?)?, file))).collect();
    files.sort_by_key(|(number, _)| *number);
    let mut bytes: u64 = files.iter().map(|(_, file)| file.size_bytes).sum();
    let mut count = files.len();
    for (_, file) in &files {
        if count <= 1 || (count <= FILES_MAX && bytes <= BYTES_MAX) {
            return Ok(());
        }
        let path = quarantine.join(&file.name);
        disk.remove_file(&path).map_err(JournalError::on(Action::Remove, &path))?;
        tracing::warn!(path = %path.display(), "deleted the oldest quarantined alert journal");
        (count, bytes) = (count - 1, bytes.saturating_sub(file.size_bytes));
    }
    Ok(())
}

fn copy(disk: &dyn Disk, from: &Path, to: &Path) -> Result<()> {
    let source = disk.open(from, Access::Read).map_err(JournalError::on(Action::Open, from))?;
    let size_bytes = source.size().map_err(JournalError::on(Action::Open, from))?;
    let target = disk.create(to).map_err(JournalError::on(Action::Create, to))?;
    let mut buffer = Vec::new();
    let mut offset = 0;
    while offset < size_bytes {
        buffer.resize((size_bytes - offset).min(COPY_BYTES) as usize, 0);
        source.read_at(offset, &mut buffer).map_err(JournalError::on(Action::Read, from))?;
        target.write_at(offset, &buffer).map_err(JournalError::on(Action::Write, to))?;
        offset += buffer.len() as u64;
    }
    target.sync_data().map_err(JournalError::on(Action::Sync, to))
}

fn number_of(name: &str) -> Option<u64> {
    name.split_once(MARK)?.0.parse().ok()
}
