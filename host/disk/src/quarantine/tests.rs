//! Quarantined files stay up to the limit; a crash at any call loses nothing.

use super::*;
use crate::copy::COPY_BYTES;
use crate::testing::{Fault, FaultyDisk, Op};
use crate::wal::{LogKind, Logs};
use crate::{DataDir, FailedStarts, Result, WalOptions};
use std::fs;

type TestResult = std::result::Result<(), Box<dyn std::error::Error>>;

fn names(room: &Quarantine) -> Result<Vec<String>> {
    Ok(room.entries()?.into_iter().map(|entry| entry.name).collect())
}

/// The part of a name after the number and the time.
fn what(name: &str) -> &str {
    name.splitn(3, '-').nth(2).unwrap_or_default()
}

#[test]
fn the_oldest_go_beyond_the_bound_and_the_newest_stays() -> TestResult {
    let root = tempfile::tempdir()?;
    let data = DataDir::open(root.path())?;
    let room = data.quarantine();
    room.set_bytes_max(1000);
    for (number, bytes) in [400, 500, 300, 2000].into_iter().enumerate() {
        let path = root.path().join(format!("wal/{number:08}"));
        fs::write(&path, vec![1; bytes])?;
        let kept = room.keep_segment(&path)?.ok_or("nothing kept")?;
        assert_eq!(fs::read(kept)?.len(), bytes);
        room.trim();
        let expected: &[&str] = match number {
            0 => &["wal-00000000"],
            1 => &["wal-00000000", "wal-00000001"],
            2 => &["wal-00000001", "wal-00000002"],
            _ => &["wal-00000003"],
        };
        let names = names(room)?;
        let found: Vec<&str> = names.iter().map(|name| what(name)).collect();
        assert_eq!(found, expected);
    }
    assert_eq!((room.stats().segments, room.size_bytes()), (4, 2000));

    // Whole logs outlive newer entries, and what is not ours is left alone.
    fs::write(root.path().join("set-aside/notes"), vec![1; 5000])?;
    assert!(data.set_logs_aside()?.is_some());
    fs::write(root.path().join("wal/00000009"), vec![1; 900])?;
    room.keep_segment(&root.path().join("wal/00000009"))?;
    room.trim();
    let left = names(room)?;
    assert_eq!(
        left.iter().map(|name| what(name)).collect::<Vec<_>>(),
        ["", "logs", "wal-00000009"]
    );

    room.set_bytes_max(0);
    let left = names(room)?;
    assert_eq!(left.iter().map(|name| what(name)).collect::<Vec<_>>(), ["", "logs"]);
    assert_eq!(room.keep_segment(&root.path().join("wal/00000009"))?, None);
    assert_eq!(room.take(&root.path().join("wal/00000009"))?, None);
    assert!(!root.path().join("wal/00000009").exists());
    Ok(())
}

#[test]
fn the_callers_clock_names_entries() -> TestResult {
    let root = tempfile::tempdir()?;
    let data = DataDir::open(root.path())?;
    let room = data.quarantine();
    // 2026-11-21 14:00:00 UTC.
    room.set_clock(|| 1_795_269_600_000);
    let path = root.path().join("wal/00000007");
    fs::write(&path, b"damaged")?;
    room.keep_segment(&path)?.ok_or("nothing kept")?;
    assert_eq!(names(room)?, ["000001-20261121T140000Z-wal-00000007"]);
    Ok(())
}

#[test]
fn without_hard_links_it_is_copied_and_half_a_copy_is_swept() -> TestResult {
    let root = tempfile::tempdir()?;
    let disk = FaultyDisk::default();
    let data = DataDir::open_on(Arc::new(disk.clone()), root.path())?;
    let path = root.path().join("wal/00000001");
    fs::write(&path, vec![7; 3 * COPY_BYTES + 1])?;
    disk.set(Fault::next(Op::Link));
    let kept = data.quarantine().keep_segment(&path)?.ok_or("nothing kept")?;
    assert_eq!(fs::read(kept)?, fs::read(&path)?);
    disk.set(Fault { ops: vec![Op::Link, Op::Write], times: 2, ..Fault::next(Op::Link) });
    assert!(data.quarantine().keep_segment(&path).is_err());
    assert_eq!(fs::read_dir(root.path().join("set-aside"))?.count(), 1);
    fs::write(root.path().join("set-aside/000009-x-wal-00000001.tmp"), b"half")?;
    drop(data);
    DataDir::open(root.path())?;
    assert_eq!(fs::read_dir(root.path().join("set-aside"))?.count(), 1);
    Ok(())
}

#[test]
fn failed_starts_are_counted_by_a_name() -> TestResult {
    let root = tempfile::tempdir()?;
    let data = DataDir::open(root.path())?;
    for count in [0, 1, 2, 2, 1, 7, 0, 0] {
        for records in [None, Some(0), Some(u64::MAX), Some(12)] {
            let records = records.filter(|_| count > 0);
            data.set_failed_starts(FailedStarts { count, records })?;
            assert_eq!(data.failed_starts()?, FailedStarts { count, records });
        }
    }
    for stray in ["failed-starts.3", "failed-starts.12", "failed-starts.x", "failed-starts."] {
        fs::write(root.path().join(stray), b"garbage")?;
    }
    assert_eq!(data.failed_starts()?, FailedStarts { count: 12, records: None });
    let failed = FailedStarts { count: 3, records: Some(4) };
    data.set_failed_starts(failed)?;
    assert_eq!(data.failed_starts()?, failed);
    // Without room for how far they came, the count is kept.
    drop(data);
    let disk = FaultyDisk::default();
    let data = DataDir::open_on(Arc::new(disk.clone()), root.path())?;
    disk.set(Fault { ops: vec![Op::Write], times: 9, ..Fault::next(Op::Write) });
    data.set_failed_starts(FailedStarts { count: 4, records: Some(5) })?;
    assert_eq!(data.failed_starts()?, FailedStarts { count: 4, records: None });
    disk.clear();
    data.set_failed_starts(FailedStarts::default())?;
    assert_eq!(data.failed_starts()?, FailedStarts::default());

    assert_eq!(data.unfinished_start(), None);
    let note = data.begin_start()?;
    note.say("first")?;
    note.say("other")?;
    assert_eq!(data.unfinished_start().as_deref(), Some("other"));
    drop(note);
    assert_eq!(data.unfinished_start(), None);
    Ok(())
}

/// Each file of the logs is in its old place or in one entry, and calling again completes the move.
#[test]
fn a_crash_while_logs_are_quarantined_leaves_each_here_or_there() -> TestResult {
    let files = ["wal/00000000", "wal/checkpoint.00000001/00000000", "wbl/00000000"];
    let caches = ["chunks_head/000001", "chunk_snapshot.000001.0000000001/000001"];
    for after in 0.. {
        let root = tempfile::tempdir()?;
        let disk = FaultyDisk::default();
        let data = DataDir::open_on(Arc::new(disk.clone()), root.path())?;
        for file in files.iter().chain(&caches) {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().ok_or("no parent")?)?;
            fs::write(path, file)?;
        }
        disk.set(Fault::crash(after));
        let moved = data.set_logs_aside();
        drop(data);
        let data = DataDir::open(root.path())?;
        let kept = match &moved {
            Ok(kept) => kept.clone(),
            Err(_) => data.set_logs_aside()?,
        };
        // All were moved before the crash, if there is nothing left to move.
        let newest = data.quarantine().entries()?.pop().ok_or("nothing quarantined")?.path;
        let kept = kept.unwrap_or(newest);
        for file in files.iter().chain(&caches) {
            assert_eq!(fs::read_to_string(kept.join(file))?, **file, "after {after} calls");
        }
        assert!(!root.path().join("chunks_head").exists());
        if moved.is_ok() {
            // The numbers go on.
            let mut logs = Logs::open(&data, WalOptions::default())?;
            assert!(logs.replay_batch(1000)?.is_none() && logs.is_whole());
            assert_eq!(logs.get(LogKind::InOrder)?.append(&[b"x"])?, 3);
            assert_eq!(logs.get(LogKind::OutOfOrder)?.append(&[b"x"])?, 2);
        }
        assert_eq!(fs::read_dir(root.path().join("set-aside"))?.count(), 1, "after {after}");
        if moved.is_ok() {
            assert!(after > 8, "{after} calls are too few");
            return Ok(());
        }
    }
    Ok(())
}
