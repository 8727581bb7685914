//! What Prometheus keeps of its head beside the log: `chunks_head/` and `chunk_snapshot.*/`.
//!
//! Both are made from the log and name series by their numbers. Once somebody else has written to
//! the log they may tell of other series, and Prometheus, back on the directory, would take them
//! at their word. So they go as soon as the log has been read, before the first write. If the log
//! was damaged they may hold what it lost; then they are kept under a name that nobody reads:
//!
//! ```text
//! chunks_head ──▶ chunks_head.tmp ──▶ gone       the log was whole
//! chunks_head ──▶ chunks_head.set-aside          it was not; takes the place of an older one
//! ```
//!
//! The rename comes first, since Prometheus does not start where some of the files are missing.

use super::DataDir;
use super::error::{Action, Result};
use super::fs::{Disk, remove_tree, tree_bytes};
use std::path::Path;

const CHUNKS: &str = "chunks_head";
/// Followed by the segment and the offset up to which it stands for the log.
const SNAPSHOT_PREFIX: &str = "chunk_snapshot.";
/// Also what upstream calls a snapshot being written.
const UNFINISHED_SUFFIX: &str = ".tmp";
const SET_ASIDE_SUFFIX: &str = ".set-aside";

impl DataDir {
    /// Removes Prometheus' caches of its head, or sets them aside where the log is not whole.
    /// To be called between the end of the replay and the first write to the log.
    pub fn retire_head_caches(&self, log_is_whole: bool) -> Result<()> {
        let (disk, dir) = (&*self.disk, &*self.path);
        for entry in disk.list(dir).map_err(Action::List.failed(dir))? {
            if let Some(name) = entry.name().filter(|name| entry.is_dir && is_head_cache(name)) {
                match log_is_whole {
                    true => remove(disk, dir, name)?,
                    false => set_aside(disk, dir, name)?,
                }
            }
        }
        Ok(())
    }
}

/// Whether a directory is such a cache, half written or half removed.
pub(super) fn is_unfinished_head_cache(name: &str) -> bool {
    name.strip_suffix(UNFINISHED_SUFFIX).is_some_and(is_head_cache)
}

fn is_head_cache(name: &str) -> bool {
    let is_place = |place: &str| {
        let mut numbers = place.split('.');
        let is_number = |part: Option<&str>| {
            part.is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        };
        is_number(numbers.next()) && is_number(numbers.next()) && numbers.next().is_none()
    };
    name == CHUNKS || name.strip_prefix(SNAPSHOT_PREFIX).is_some_and(is_place)
}

fn remove(disk: &dyn Disk, dir: &Path, name: &str) -> Result<()> {
    let bytes = tree_bytes(disk, &dir.join(name)).unwrap_or(0);
    let unnamed = rename(disk, dir, name, UNFINISHED_SUFFIX)?;
    remove_tree(disk, &unnamed).map_err(Action::Remove.failed(&unnamed))?;
    let path = dir.join(name);
    tracing::info!(
        path = %path.display(), bytes,
        "removed Prometheus' cache of its head: the log, from which it was made, is read and goes on"
    );
    Ok(())
}

fn set_aside(disk: &dyn Disk, dir: &Path, name: &str) -> Result<()> {
    let kept = rename(disk, dir, name, SET_ASIDE_SUFFIX)?;
    tracing::warn!(
        path = %kept.display(),
        "the log was damaged, so Prometheus' cache of its head, which may hold what the log lost, \
         is kept; remove it once nothing is missed"
    );
    Ok(())
}

/// Gives it a longer name, in place of whatever has that name.
fn rename(disk: &dyn Disk, dir: &Path, name: &str, suffix: &str) -> Result<std::path::PathBuf> {
    let (from, to) = (dir.join(name), dir.join(format!("{name}{suffix}")));
    remove_tree(disk, &to).map_err(Action::Remove.failed(&to))?;
    disk.rename(&from, &to).map_err(Action::Rename.failed(&from))?;
    disk.sync_dir(dir).map_err(Action::Sync.failed(dir))?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::testing::{CHANGES, Fault, FaultyDisk};
    use std::fs;
    use std::io;
    use std::sync::Arc;

    const SNAPSHOT: &str = "chunk_snapshot.000007.0000065536";

    fn with_caches(root: &Path) -> io::Result<()> {
        for dir in [CHUNKS, SNAPSHOT, "chunk_snapshot.000001.0000000001.tmp", "chunks_headless"] {
            fs::create_dir_all(root.join(dir))?;
            for file in ["000001", "000002", "000003"] {
                fs::write(root.join(dir).join(file), b"x")?;
            }
        }
        Ok(())
    }

    fn names(root: &Path) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(root)?.collect::<io::Result<Vec<_>>>()?;
        let mut names: Vec<String> =
            entries.iter().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name.starts_with("chunk"));
        names.sort();
        Ok(names)
    }

    #[test]
    fn a_whole_log_needs_no_caches() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        with_caches(root.path())?;
        let data = DataDir::open(root.path())?;
        assert_eq!(names(root.path())?, [SNAPSHOT, CHUNKS, "chunks_headless"]);
        data.retire_head_caches(true)?;
        assert_eq!(names(root.path())?, ["chunks_headless"]);
        data.retire_head_caches(true)?;
        Ok(())
    }

    #[test]
    fn caches_are_kept_beside_a_damaged_log() -> std::result::Result<(), Box<dyn std::error::Error>>
    {
        let root = tempfile::tempdir()?;
        let data = DataDir::open(root.path())?;
        // The second time there is an older one in the way.
        for _ in 0..2 {
            with_caches(root.path())?;
            data.retire_head_caches(false)?;
        }
        drop(data);
        let data = DataDir::open(root.path())?;
        data.retire_head_caches(true)?;
        let snapshot = format!("{SNAPSHOT}{SET_ASIDE_SUFFIX}");
        let chunks = format!("{CHUNKS}{SET_ASIDE_SUFFIX}");
        assert_eq!(names(root.path())?, [snapshot, chunks.clone(), "chunks_headless".to_owned()]);
        assert_eq!(fs::read_dir(root.path().join(chunks))?.count(), 3);
        Ok(())
    }

    /// Under its name it is whole or gone, and the next start finishes the work.
    #[test]
    fn a_crash_at_any_call_leaves_all_or_nothing()
    -> std::result::Result<(), Box<dyn std::error::Error>> {
        for after in 0.. {
            let root = tempfile::tempdir()?;
            with_caches(root.path())?;
            let disk = FaultyDisk::default();
            let data = DataDir::open_on(Arc::new(disk.clone()), root.path())?;
            disk.set(Fault { ops: CHANGES.to_vec(), ..Fault::crash(after) });
            let retired = data.retire_head_caches(true);
            drop(data);
            for dir in [CHUNKS, SNAPSHOT] {
                let files = fs::read_dir(root.path().join(dir)).map_or(0, Iterator::count);
                assert!(files == 0 || files == 3, "{files} files in {dir} after {after} calls");
            }
            let data = DataDir::open(root.path())?;
            data.retire_head_caches(true)?;
            assert_eq!(names(root.path())?, ["chunks_headless"], "after {after} calls");
            if retired.is_ok() {
                break;
            }
        }
        Ok(())
    }
}
