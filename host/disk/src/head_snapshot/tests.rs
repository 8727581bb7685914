//! A head snapshot is used only with the logs that it belongs to, and only if it is complete.

use super::*;
use crate::testing::{Fault, FaultyDisk};
use crate::wal::{LogKind, Logs, WalOptions};
use std::fs;
use std::sync::Arc;

type TestResult = std::result::Result<(), Box<dyn std::error::Error>>;

const LONG: Duration = Duration::from_secs(60);

fn pieces() -> Vec<Vec<u8>> {
    vec![vec![1, 2, 3], vec![0; 500], (0..200).collect(), vec![9]]
}

fn write(data: &DataDir) -> Result<u64> {
    let mut writer = HeadSnapshotWriter::begin(data, LONG)?;
    for piece in pieces() {
        writer.add(&piece)?;
    }
    writer.commit()
}

/// Reads all pieces; `None` if there is no usable snapshot.
fn read(data: &DataDir) -> Result<Option<Vec<Vec<u8>>>> {
    let Some(mut snapshot) = HeadSnapshot::open(data)? else { return Ok(None) };
    let (mut all, mut piece) = (Vec::new(), Vec::new());
    while snapshot.next(&mut piece)? {
        all.push(piece.clone());
    }
    Ok(Some(all))
}

fn is_of_use(data: &DataDir) -> bool {
    matches!(read(data), Ok(Some(found)) if found == pieces())
}

/// Opens the logs and replays them.
fn logs(data: &DataDir) -> std::result::Result<Logs, DiskError> {
    let mut logs = Logs::open(data, WalOptions::default())?;
    while logs.replay_batch(1 << 20)?.is_some() {}
    Ok(logs)
}

/// Makes two segments of the in-order log, a checkpoint, and one segment of the out-of-order log.
fn with_logs(data: &DataDir) -> std::result::Result<(), DiskError> {
    let mut logs = logs(data)?;
    let in_order = logs.get(LogKind::InOrder)?;
    for number in 0..3u8 {
        in_order.append(&[vec![1, number]])?;
        in_order.cut_segment()?;
    }
    let mut checkpoint = in_order.checkpoint(0)?;
    checkpoint.append(&[vec![1, 7]])?;
    checkpoint.commit()?;
    logs.get(LogKind::OutOfOrder)?.append(&[vec![2, 2]])?;
    logs.sync()
}

#[test]
fn it_belongs_to_the_logs_as_they_were() -> TestResult {
    let root = tempfile::tempdir()?;
    let data = DataDir::open(root.path())?;
    assert!(read(&data)?.is_none());
    with_logs(&data)?;
    let bytes = write(&data)?;
    assert_eq!(fs::metadata(root.path().join(FILE))?.len(), bytes);
    assert!(is_of_use(&data));
    // Logs that are opened, and put to their ends unread, are the same still.
    let mut unread = Logs::open(&data, WalOptions::default())?;
    unread.skip_replay();
    assert!(unread.replay_batch(1 << 20)?.is_none());
    drop(unread);
    assert!(is_of_use(&data));

    let path = |name: &str| root.path().join(name);
    let set_len = |name: &str, len: u64| -> std::io::Result<()> {
        fs::File::options().write(true).open(path(name))?.set_len(len)
    };
    let length = fs::metadata(path("wal/00000002"))?.len();
    let flip_end = || -> std::io::Result<()> {
        let mut bytes = fs::read(path("wbl/00000000"))?;
        let end = bytes.len() - 1;
        bytes[end] ^= 1;
        fs::write(path("wbl/00000000"), bytes)
    };
    type Change<'a> =
        (&'a str, &'a dyn Fn() -> std::io::Result<()>, &'a dyn Fn() -> std::io::Result<()>);
    let changes: [Change<'_>; 7] = [
        ("a new segment", &|| fs::write(path("wal/00000004"), b""), &|| {
            fs::remove_file(path("wal/00000004"))
        }),
        ("a segment less", &|| fs::rename(path("wal/00000001"), path("x")), &|| {
            fs::rename(path("x"), path("wal/00000001"))
        }),
        ("a longer segment", &|| set_len("wal/00000002", length + 1), &|| {
            set_len("wal/00000002", length)
        }),
        ("another end", &flip_end, &flip_end),
        ("a checkpoint less", &|| fs::rename(path("wal/checkpoint.00000000"), path("x")), &|| {
            fs::rename(path("x"), path("wal/checkpoint.00000000"))
        }),
        ("no out-of-order log", &|| fs::rename(path("wbl"), path("x")), &|| {
            fs::rename(path("x"), path("wbl"))
        }),
        ("a head cache of Prometheus", &|| fs::create_dir(path("chunks_head")), &|| {
            fs::remove_dir(path("chunks_head"))
        }),
    ];
    for (what, change, change_back) in changes {
        change()?;
        let found = read(&data);
        let is_other =
            matches!(found, Err(HeadSnapshotError::OtherLogs | HeadSnapshotError::OtherCaches));
        assert!(is_other, "{what}: {found:?}");
        change_back()?;
        assert!(is_of_use(&data), "{what}, taken back");
    }

    // A write, however small, is a change; and so is a life that writes nothing but a segment.
    logs(&data)?.get(LogKind::InOrder)?.append(&[vec![1]])?;
    assert!(matches!(read(&data), Err(HeadSnapshotError::OtherLogs)));
    data.remove_head_snapshot()?;
    assert!(read(&data)?.is_none());
    data.remove_head_snapshot()?;
    Ok(())
}

#[test]
fn damage_anywhere_is_found() -> TestResult {
    let root = tempfile::tempdir()?;
    let data = DataDir::open(root.path())?;
    with_logs(&data)?;
    write(&data)?;
    let path = root.path().join(FILE);
    let whole = fs::read(&path)?;
    for place in 0..whole.len() {
        for flip in [1, 0x80] {
            let mut bytes = whole.clone();
            bytes[place] ^= flip;
            fs::write(&path, bytes)?;
            assert!(read(&data).is_err(), "byte {place} ^ {flip}");
        }
    }
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len])?;
        assert!(read(&data).is_err(), "{len} bytes");
    }
    fs::write(&path, [&whole[..], &[0]].concat())?;
    assert!(read(&data).is_err(), "a byte more");
    fs::write(&path, whole)?;
    assert!(is_of_use(&data));
    Ok(())
}

/// After a crash at any call the next start finds all of it or nothing, and no leftover later.
#[test]
fn a_crash_while_it_is_written_leaves_all_or_nothing() -> TestResult {
    for after in 0.. {
        let root = tempfile::tempdir()?;
        let disk = FaultyDisk::default();
        let data = DataDir::open_on(Arc::new(disk.clone()), root.path())?;
        with_logs(&data)?;
        write(&data)?;
        // There is an older one, of the same logs.
        disk.set(Fault::crash(after));
        let written = write(&data);
        drop(data);
        let data = DataDir::open(root.path())?;
        assert!(!root.path().join(UNFINISHED_FILE).exists(), "after {after} calls");
        let found = read(&data);
        assert!(matches!(&found, Ok(None)) || is_of_use(&data), "{after} calls: {found:?}");
        if written.is_ok() {
            assert!(is_of_use(&data) && after > 10, "{after} calls");
            break;
        }
    }
    Ok(())
}

/// A start reads and removes the snapshot, then writes to the log. After a crash at any call it is
/// never usable beside a log with newer records.
#[test]
fn a_crash_after_a_start_leaves_no_stale_one() -> TestResult {
    for after in 0.. {
        let root = tempfile::tempdir()?;
        let disk = FaultyDisk::default();
        let data = DataDir::open_on(Arc::new(disk.clone()), root.path())?;
        with_logs(&data)?;
        write(&data)?;
        assert!(is_of_use(&data));
        disk.set(Fault::crash(after));
        // A removal that fails is no reason not to start.
        let _ = data.remove_head_snapshot();
        let appended = Logs::open(&data, WalOptions::default()).and_then(|mut logs| {
            logs.skip_replay();
            logs.get(LogKind::InOrder)?.append(&[vec![1, 99]])
        });
        drop(data);
        let data = DataDir::open(root.path())?;
        let (mut has_new, mut reread) = (false, Logs::open(&data, WalOptions::default())?);
        while let Some((_, batch)) = reread.replay_batch(1 << 20)? {
            has_new |= batch.records.iter().any(|record| record == [1, 99]);
        }
        assert!(!(has_new && is_of_use(&data)), "after {after} calls");
        assert!(has_new || appended.is_err(), "after {after} calls");
        if appended.is_ok() {
            assert!(!root.path().join(FILE).exists() && after > 3, "{after} calls");
            break;
        }
    }
    Ok(())
}

#[test]
fn none_is_written_where_room_or_time_is_short() -> TestResult {
    let root = tempfile::tempdir()?;
    let disk = FaultyDisk::default();
    let data = DataDir::open_on(Arc::new(disk.clone()), root.path())?;
    let names = || fs::read_dir(root.path()).map(Iterator::count);
    let before = names()?;
    disk.set_free_bytes(RESERVE_BYTES + 2);
    assert!(matches!(write(&data), Err(HeadSnapshotError::NoRoom { .. })));
    disk.set_free_bytes(RESERVE_BYTES * 2);
    let mut slow = HeadSnapshotWriter::begin(&data, Duration::ZERO)?;
    assert!(matches!(slow.add(b"x"), Err(HeadSnapshotError::TooSlow { .. })));
    drop(slow);
    assert_eq!(names()?, before);
    write(&data)?;
    assert_eq!(names()?, before + 1);
    Ok(())
}
