//! Records that wait in memory: written in long pieces, in order, once, and never dropped because
//! of a failed write.

use super::*;
use crate::testing::{Fault, Op};
use std::io::ErrorKind;
use std::time::Duration;

const BYTES_MAX: usize = 20_000;

const GATHERING: WalOptions = WalOptions {
    sync: SyncPolicy::Batch { interval: Duration::from_secs(3600), bytes_max: BYTES_MAX },
    ..SMALL
};

fn gathering() -> (tempfile::TempDir, FaultyDisk, Wal) {
    let root = tempfile::tempdir().expect("tempdir");
    let disk = FaultyDisk::default();
    let mut wal = open_on(&disk, root.path(), GATHERING);
    replay(&mut wal);
    disk.take_log();
    (root, disk, wal)
}

fn writes(disk: &FaultyDisk) -> usize {
    disk.take_log().into_iter().filter(|op| *op == Op::Write).count()
}

fn file_bytes(root: &Path, segment: u32) -> u64 {
    std::fs::metadata(segment_path(root, segment)).expect("a segment").len()
}

#[test]
fn nothing_is_written_before_it_is_time() {
    let (root, disk, mut wal) = gathering();
    for i in 0..100 {
        assert_eq!(wal.append(&[noise(i, 93)]).expect("appends"), 0);
    }
    assert_eq!((writes(&disk), wal.unwritten_bytes()), (0, 10_000));
    assert_eq!(file_bytes(root.path(), 0), 0);
    assert!(wal.sync_due_at().is_some_and(|due_at| due_at > Instant::now()));
    wal.sync().expect("syncs");
    assert_eq!((writes(&disk), wal.unwritten_bytes()), (1, 0));
    assert_eq!(file_bytes(root.path(), 0), 10_000);
    assert_eq!(wal.sync_due_at(), None);
    wal.append(&[noise(100, 93)]).expect("appends");
    // A clean end.
    drop(wal);
    assert!(replayed(root.path()) == (0..101).map(|i| noise(i, 93)).collect::<Vec<_>>());
}

#[test]
fn what_does_not_fit_is_written_and_segments_end_whole() {
    let (root, disk, mut wal) = gathering();
    let mut segments = Vec::new();
    for i in 0..40 {
        segments.push(wal.append(&[noise(i, 5000)]).expect("appends"));
        assert!(wal.unwritten_bytes() <= BYTES_MAX as u64);
    }
    assert!(writes(&disk) <= 16, "three batches or more share a write");
    wal.append(&[noise(40, 3 * BYTES_MAX)]).expect("a batch longer than the limit");
    wal.append(&[noise(41, 10)]).expect("appends");
    assert!(wal.unwritten_bytes() < 100);
    drop(wal);
    let mut wal = open(root.path(), SMALL);
    let read = replay(&mut wal);
    assert_eq!(wal.stats().replay.damaged_places, 0);
    assert!(read[..40].iter().map(|(segment, _)| *segment).eq(segments));
    let lengths = |i| {
        if i < 40 {
            5000
        } else if i == 40 {
            3 * BYTES_MAX
        } else {
            10
        }
    };
    assert!(read.into_iter().map(|(_, r)| r).eq((0..42).map(|i| noise(i, lengths(i)))));
}

#[test]
fn what_cannot_be_written_is_kept_and_nothing_more_is_taken() {
    for (torn_bytes, ops) in [
        (0, vec![Op::Write]),
        (7000, vec![Op::Write]),
        (7000, vec![Op::Write, Op::SetLen]),
        (1 << 20, vec![Op::Write, Op::SetLen]),
    ] {
        let (root, disk, mut wal) = gathering();
        for i in 0..3 {
            wal.append(&[noise(i, 5000)]).expect("appends");
        }
        let kind = ErrorKind::StorageFull;
        disk.set(Fault { ops, times: usize::MAX, torn_bytes, kind, ..Fault::next(Op::Write) });
        let error = wal.sync().expect_err("the disk is full");
        assert!(matches!(error, DiskError::WalHeld { segment: 0, bytes: 15_021, .. }), "{error}");
        assert!(error.is_no_space() && error.to_string().contains("stay in memory"), "{error}");
        for _ in 0..3 {
            let error = wal.append(&[noise(9, 10)]).expect_err("nothing more is taken");
            assert!(matches!(error, DiskError::WalHeld { .. }) && error.is_no_space(), "{error}");
            assert!(wal.cut_segment().expect_err("it would end without them").is_no_space());
        }
        assert_eq!(wal.unwritten_bytes(), 15_021);
        assert!(wal.sync_due_at().is_some(), "it is tried again");
        assert_eq!(names(root.path()), ["00000000"]);
        disk.clear();
        wal.sync().expect("there is space");
        assert_eq!(wal.append(&[noise(3, 5000)]).expect("appends"), 0);
        drop(wal);
        let mut wal = open(root.path(), SMALL);
        let read: Vec<_> = replay(&mut wal).into_iter().map(|(_, record)| record).collect();
        assert!(read == (0..4).map(|i| noise(i, 5000)).collect::<Vec<_>>(), "{torn_bytes} torn");
        assert_eq!((wal.stats().replay.damaged_places, wal.stats().replay.torn_tails), (0, 0));
    }
}

#[test]
fn a_full_buffer_on_a_full_disk_refuses_the_batch_that_came_last() {
    let (root, disk, mut wal) = gathering();
    for i in 0..3 {
        wal.append(&[noise(i, 5000)]).expect("appends");
    }
    disk.set(Fault { times: 1, kind: ErrorKind::StorageFull, ..Fault::next(Op::Write) });
    assert!(wal.append(&[noise(3, 9000)]).expect_err("no room").is_no_space());
    wal.sync().expect("there is space");
    drop(wal);
    assert!(replayed(root.path()) == (0..3).map(|i| noise(i, 5000)).collect::<Vec<_>>());
}

#[test]
fn a_segment_is_written_before_a_checkpoint_replaces_it() {
    let (root, _disk, mut wal) = gathering();
    wal.append(&[b"old"]).expect("appends");
    assert_eq!(wal.cut_segment().expect("cuts"), 0);
    assert!(file_bytes(root.path(), 0) > 0 && wal.unwritten_bytes() == 0);
    assert_eq!(wal.append(&[b"new"]).expect("appends"), 1);
    let mut checkpoint = wal.checkpoint(0).expect("begins");
    checkpoint.append(&[b"kept"]).expect("appends");
    checkpoint.commit().expect("commits");
    drop(wal);
    assert_eq!(replayed(root.path()), [&b"kept"[..], b"new"]);
}

/// Synced records are there, in order, followed by a beginning of the others.
#[test]
fn a_crash_at_any_call_keeps_what_was_synced() {
    for after in 0..40 {
        let (root, disk, mut wal) = gathering();
        disk.set(Fault::crash(after));
        let (mut appended, mut synced) = (Vec::new(), 0);
        for i in 0..24 {
            let batch = [noise(i, 9000), noise(i + 100, 200)];
            if wal.append(&batch).is_err() {
                break;
            }
            appended.extend(batch);
            if i % 5 == 4 {
                match wal.sync() {
                    Ok(()) => synced = appended.len(),
                    Err(_) => break,
                }
            }
        }
        drop(wal);
        let read = replayed(root.path());
        assert!(read.len() >= synced, "after {after} calls: {} of {synced}", read.len());
        assert!(appended.starts_with(&read), "after {after} calls");
        assert!(replayed(root.path()) == read, "after {after} calls");
    }
}

/// Two logs with one record each, which is still in memory.
fn gathering_logs() -> (tempfile::TempDir, FaultyDisk, Logs) {
    let root = tempfile::tempdir().expect("tempdir");
    let disk = FaultyDisk::default();
    let data = DataDir::open_on(Arc::new(disk.clone()), root.path()).expect("a directory");
    let mut logs = Logs::open(&data, GATHERING).expect("logs");
    assert!(logs.replay_batch(1).expect("replays").is_none());
    logs.append(LogKind::InOrder, &[noise(1, 90)]).expect("appends");
    logs.append(LogKind::OutOfOrder, &[noise(2, 90)]).expect("appends");
    disk.take_log();
    (root, disk, logs)
}

/// Numbers of records of both logs that are written to files.
fn written(root: &Path) -> [usize; 2] {
    let data = DataDir::open(root).expect("a directory");
    let mut logs = Logs::open(&data, SMALL).expect("logs");
    let mut counts = [0; 2];
    while let Some((log, batch)) = logs.replay_batch(1 << 20).expect("replays") {
        counts[usize::from(log == LogKind::OutOfOrder)] += batch.records.len();
    }
    counts
}

/// The in-order log introduces the series of out-of-order rows. While its records waited in memory,
/// forwarding dropped the rows.
#[test]
fn the_out_of_order_log_never_has_more_than_the_other() {
    type Act = fn(&mut Logs) -> Result<()>;
    let acts: [Act; 4] = [
        |logs| logs.cut_segment(LogKind::OutOfOrder).map(drop),
        |logs| logs.cut_segment(LogKind::OutOfOrder).and_then(|at| logs.truncate_out_of_order(at)),
        |logs| logs.sync(),
        |logs| {
            (0..8).try_for_each(|i| logs.append(LogKind::OutOfOrder, &[noise(i, 5000)]).map(drop))
        },
    ];
    for (number, act) in acts.into_iter().enumerate() {
        let (root, disk, mut logs) = gathering_logs();
        // On a disk that takes one write: that must be the in-order log's.
        disk.set(Fault { after: 1, times: usize::MAX, ..Fault::next(Op::Write) });
        let _ = act(&mut logs);
        assert!(writes(&disk) > 0, "act {number} writes");
        disk.set(Fault { times: usize::MAX, ..Fault::next(Op::Write) });
        drop(logs);
        assert_eq!(written(root.path()), [1, 0], "act {number}");
    }
    // A few rows write nothing.
    let (_root, disk, mut logs) = gathering_logs();
    for i in 0..50 {
        logs.append(LogKind::OutOfOrder, &[noise(i, 90)]).expect("appends");
    }
    assert_eq!(writes(&disk), 0);
}
