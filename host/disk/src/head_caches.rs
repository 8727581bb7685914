//! Prometheus' caches of its head next to the log: `chunks_head/` and `chunk_snapshot.*/`.
//!
//! Prometheus makes both from the log, and they refer to series by number. Once another program has
//! written to the log, these numbers may mean other series, and Prometheus would trust them when it
//! works in the directory again. So tidepool removes the caches after it has read the log and
//! before its first write. If the log was damaged, the caches may contain samples that the log has
//! lost; then they are quarantined:
//!
//! ```text
//! chunks_head ──▶ chunks_head.tmp ──▶ gone       the log was whole
//! chunks_head ──▶ set-aside/…-chunks_head        the log was damaged: see `quarantine`
//! ```
//!
//! The rename comes first, since Prometheus does not start with an incomplete `chunks_head`.
//!
//! Before that, tidepool removes the records from the out-of-order log that mark which samples are
//! in `chunks_head`. Prometheus skips samples before a mark. Some marks name no position (a chunk
//! was begun), others could name positions in files that Prometheus makes later. Without marks
//! Prometheus reads the log from its beginning, whether `chunks_head` exists or not.

use super::DataDir;
use super::error::{Action, Result};
use super::fs::{Disk, remove_tree, tree_bytes};
use super::wal::Logs;
use std::path::{Path, PathBuf};

const CHUNKS: &str = "chunks_head";
/// Prefix of a name that ends with the segment and the offset up to which the log is covered.
const SNAPSHOT_PREFIX: &str = "chunk_snapshot.";
/// Suffix of unfinished work here. Upstream uses it for a snapshot that is being written.
const UNFINISHED_SUFFIX: &str = ".tmp";
/// First byte of a record that marks mmapped chunks (`tsdb/record/record.go`, `MmapMarkers`).
const MARKS_RECORD: u8 = 5;

impl DataDir {
    /// Returns whether Prometheus has left a cache of its head.
    pub(super) fn has_head_caches(&self) -> Result<bool> {
        let found = self.disk.list(&self.path).map_err(Action::List.failed(&self.path))?;
        Ok(found.iter().any(|entry| entry.is_dir && entry.name().is_some_and(is_head_cache)))
    }

    /// Removes Prometheus' caches of its head, or quarantines them if the logs are damaged. Must be
    /// called between the end of the replay and the first write to the logs.
    pub fn retire_head_caches(&self, logs: &mut Logs) -> Result<()> {
        let (disk, dir) = (&self.disk, &*self.path);
        let mut found = disk.list(dir).map_err(Action::List.failed(dir))?;
        found.retain(|entry| entry.is_dir && entry.name().is_some_and(is_head_cache));
        if found.is_empty() {
            return Ok(());
        }
        // Marks first: with marks but no `chunks_head`, Prometheus would lose samples.
        let is_mark = |record: &[u8]| record.first() == Some(&MARKS_RECORD);
        let marks = logs.drop_out_of_order_records(is_mark)?;
        if marks > 0 {
            tracing::info!(
                marks,
                "removed records of Prometheus' mmapped head chunks from the out-of-order log"
            );
        }
        for name in found.iter().filter_map(|entry| entry.name()) {
            // The caches may contain samples that a damaged log has lost.
            match logs.is_whole() {
                true => remove(disk, dir, name)?,
                false => self.set_cache_aside(&dir.join(name))?,
            }
        }
        Ok(())
    }

    fn set_cache_aside(&self, path: &Path) -> Result<()> {
        if let Some(kept) = self.quarantine.take(path)? {
            tracing::warn!(
                path = %kept.display(),
                "the WAL was damaged: quarantined Prometheus' cache of its head, which may hold \
                 samples that the WAL lost; remove it when no samples are missing"
            );
        }
        Ok(())
    }
}

/// Returns whether a directory is a head cache that is incompletely written or removed.
pub(super) fn is_unfinished_head_cache(name: &str) -> bool {
    name.strip_suffix(UNFINISHED_SUFFIX).is_some_and(is_head_cache)
}

/// Returns whether a directory is a head cache of Prometheus.
pub(super) fn is_head_cache(name: &str) -> bool {
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
    // Renamed first, since Prometheus does not start with an incomplete `chunks_head`.
    let unnamed = rename(disk, dir, name)?;
    remove_tree(disk, &unnamed).map_err(Action::Remove.failed(&unnamed))?;
    let path = dir.join(name);
    tracing::info!(
        path = %path.display(), bytes,
        "removed Prometheus' mmapped head chunks; the WAL has the same samples"
    );
    Ok(())
}

/// Appends the suffix of unfinished work to the name, and replaces a directory with that name.
fn rename(disk: &dyn Disk, dir: &Path, name: &str) -> Result<PathBuf> {
    let (from, to) = (dir.join(name), dir.join(format!("{name}{UNFINISHED_SUFFIX}")));
    remove_tree(disk, &to).map_err(Action::Remove.failed(&to))?;
    disk.rename(&from, &to).map_err(Action::Rename.failed(&from))?;
    disk.sync_dir(dir).map_err(Action::Sync.failed(dir))?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fault, FaultyDisk};
    use crate::wal::{LogKind, Wal, WalOptions};
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

    type TestResult = std::result::Result<(), Box<dyn std::error::Error>>;

    /// Opens the logs and replays them.
    fn logs(data: &DataDir) -> Result<Logs> {
        let mut logs = Logs::open(data, WalOptions::default())?;
        while logs.replay_batch(1 << 20)?.is_some() {}
        Ok(logs)
    }

    /// The records of the out-of-order log.
    fn out_of_order_records(data: &DataDir) -> Result<Vec<Vec<u8>>> {
        let mut wal = Wal::open_out_of_order(data, WalOptions::default())?;
        let mut records = Vec::new();
        while let Some(batch) = wal.replay_batch(1 << 20)? {
            records.extend(batch.records.iter().map(<[u8]>::to_vec));
        }
        Ok(records)
    }

    /// Writes two segments: every other record of the first is a mark, the second has no marks.
    fn with_marks(data: &DataDir) -> Result<()> {
        let mut logs = logs(data)?;
        let out_of_order = logs.get(LogKind::OutOfOrder)?;
        out_of_order.append(&[
            vec![2, 1],
            vec![MARKS_RECORD, 1],
            vec![2, 2],
            vec![MARKS_RECORD],
        ])?;
        out_of_order.cut_segment()?;
        out_of_order.append(&[vec![2; 70_000], vec![2, 4]]).map(drop)
    }

    fn without_marks() -> Vec<Vec<u8>> {
        vec![vec![2, 1], vec![2, 2], vec![2; 70_000], vec![2, 4]]
    }

    #[test]
    fn a_whole_log_needs_no_caches() -> TestResult {
        let root = tempfile::tempdir()?;
        with_caches(root.path())?;
        let data = DataDir::open(root.path())?;
        with_marks(&data)?;
        let second = fs::metadata(root.path().join("wbl/00000001"))?.modified()?;
        assert_eq!(names(root.path())?, [SNAPSHOT, CHUNKS, "chunks_headless"]);
        data.retire_head_caches(&mut logs(&data)?)?;
        assert_eq!(names(root.path())?, ["chunks_headless"]);
        assert_eq!(out_of_order_records(&data)?, without_marks());
        assert_eq!(fs::metadata(root.path().join("wbl/00000001"))?.modified()?, second);
        assert!(!root.path().join("wbl/rewrite.tmp").exists());
        data.retire_head_caches(&mut logs(&data)?)?;
        Ok(())
    }

    #[test]
    fn caches_are_kept_beside_a_damaged_log() -> TestResult {
        let root = tempfile::tempdir()?;
        let data = DataDir::open(root.path())?;
        // The second time there is an older one.
        for life in 0..2 {
            with_caches(root.path())?;
            let number = format!("wal/{life:08}");
            fs::write(root.path().join(number), b"no record begins like this")?;
            data.retire_head_caches(&mut logs(&data)?)?;
        }
        with_marks(&data)?;
        drop(data);
        let data = DataDir::open(root.path())?;
        data.retire_head_caches(&mut logs(&data)?)?;
        assert_eq!(names(root.path())?, ["chunks_headless"]);
        let mut kept = data.quarantine().entries()?;
        kept.retain(|entry| entry.is_dir);
        assert_eq!(kept.len(), 4);
        for entry in &kept {
            let is_cache = entry.name.ends_with(SNAPSHOT) || entry.name.ends_with(CHUNKS);
            assert!(is_cache, "{entry:?}");
            assert_eq!(fs::read_dir(&entry.path)?.count(), 3);
        }
        Ok(())
    }

    /// After a crash each cache is complete or gone, and gone only after the marks. No other record
    /// is ever missing, and the next start finishes the work.
    #[test]
    fn a_crash_at_any_call_leaves_all_or_nothing() -> TestResult {
        for after in 0.. {
            let root = tempfile::tempdir()?;
            with_caches(root.path())?;
            let disk = FaultyDisk::default();
            let data = DataDir::open_on(Arc::new(disk.clone()), root.path())?;
            with_marks(&data)?;
            let mut read = logs(&data)?;
            disk.set(Fault::crash(after));
            let retired = data.retire_head_caches(&mut read);
            drop((data, read));
            let data = DataDir::open(root.path())?;
            let mut left = out_of_order_records(&data)?;
            let has_marks = left.len() > without_marks().len();
            left.retain(|record| record[0] != MARKS_RECORD);
            assert_eq!(left, without_marks(), "after {after} calls");
            for dir in [CHUNKS, SNAPSHOT] {
                let files = fs::read_dir(root.path().join(dir)).map_or(0, Iterator::count);
                assert!(files == 3 || files == 0 && !has_marks, "{files} of {dir}, {after} calls");
            }
            data.retire_head_caches(&mut logs(&data)?)?;
            assert_eq!(out_of_order_records(&data)?, without_marks(), "after {after} calls");
            assert_eq!(names(root.path())?, ["chunks_headless"], "after {after} calls");
            if retired.is_ok() {
                assert!(after > 10, "{after} calls are too few");
                break;
            }
        }
        Ok(())
    }
}
