//! A disk that fails: a batch is in the log as a whole or not at all.

use super::*;
use crate::testing::{Fault, Op};
use std::io::ErrorKind;

fn faulty(sync: SyncPolicy) -> (tempfile::TempDir, FaultyDisk, Wal) {
    let root = tempfile::tempdir().expect("tempdir");
    let disk = FaultyDisk::default();
    let mut wal = open_on(&disk, root.path(), WalOptions { sync, ..SMALL });
    replay(&mut wal);
    (root, disk, wal)
}

#[test]
fn a_write_that_fails_leaves_no_trace() {
    for torn_bytes in [0, 1, 6, 7, 300, 40_000] {
        let (root, disk, mut wal) = faulty(SyncPolicy::Always);
        wal.append(&[noise(1, 500)]).expect("appends");
        let path = segment_path(root.path(), 0);
        let before = std::fs::read(&path).expect("read");
        for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
            disk.set(Fault { torn_bytes, kind, ..Fault::next(Op::Write) });
            let batch = [noise(2, 100), noise(3, 40_000)];
            let error = wal.append(&batch).expect_err("fails");
            assert_eq!(error.is_no_space(), kind == ErrorKind::StorageFull);
            assert!(matches!(
                error,
                DiskError::WalWrite { segment: 0, offset: 507, abandoned: false, .. }
            ));
            assert!(std::fs::read(&path).expect("read") == before, "{torn_bytes} bytes torn");
        }
        assert_eq!(wal.append(&[noise(4, 40_000)]).expect("goes on"), 0);
        assert_eq!((wal.stats().writes_failed, wal.stats().records_written), (2, 2));
        drop(wal);
        assert!(replayed(root.path()) == [noise(1, 500), noise(4, 40_000)]);
    }
}

/// Nothing is written before the bytes of the failed batch were cut off.
#[test]
fn a_write_that_cannot_be_undone_ends_the_segment() {
    let (root, disk, mut wal) = faulty(SyncPolicy::Always);
    wal.append(&[noise(1, 500)]).expect("appends");
    let ops = vec![Op::Write, Op::SetLen];
    disk.set(Fault { ops, times: 2, torn_bytes: 107, ..Fault::next(Op::Write) });
    let error = wal.append(&[noise(2, 100)]).expect_err("fails");
    assert!(matches!(error, DiskError::WalWrite { abandoned: true, .. }));
    assert!(error.to_string().contains("takes no more records"), "{error}");
    disk.set(Fault { times: 2, ..Fault::next(Op::SetLen) });
    for _ in 0..2 {
        assert!(wal.append(&[noise(3, 100)]).is_err(), "the bytes are still there");
    }
    assert_eq!(wal.append(&[noise(4, 100)]).expect("goes on"), 1);
    drop(wal);
    let mut wal = open(root.path(), SMALL);
    assert_eq!(replay(&mut wal), [(0, noise(1, 500)), (1, noise(4, 100))]);
    assert_eq!(wal.stats().replay.damaged_places, 0);
}

#[test]
fn what_a_failed_sync_may_have_lost_is_written_again() {
    let (root, disk, mut wal) = faulty(SyncPolicy::Always);
    wal.append(&[b"safe"]).expect("appends");
    wal.sync().expect("syncs");
    wal.append(&[b"a"]).expect("appends");
    disk.set(Fault { times: 2, ..Fault::next(Op::Sync) });
    assert!(matches!(wal.sync(), Err(DiskError::WalSync { segment: 0, .. })));
    assert!(matches!(wal.sync(), Err(DiskError::WalSync { segment: 1, .. })));
    assert_eq!(wal.append(&[b"b"]).expect("goes on"), 2);
    wal.sync().expect("the new segment is fine");
    let stats = wal.stats();
    assert_eq!((stats.fsyncs, stats.fsyncs_failed), (4, 2));
    wal.append(&[b"c"]).expect("goes on");
    drop(wal);
    assert_eq!(replayed(root.path()), [&b"safe"[..], b"a", b"a", b"a", b"b", b"c"]);
}

#[test]
fn a_cut_ends_the_copy_too() {
    let (root, disk, mut wal) = faulty(SyncPolicy::Always);
    wal.append(&[b"a"]).expect("appends");
    disk.set(Fault::next(Op::Sync));
    wal.sync().expect_err("fails");
    let ended = wal.cut_segment().expect("cuts");
    assert_eq!((ended, wal.append(&[b"b"]).expect("appends")), (1, 2));
    wal.truncate(ended).expect("truncates");
    drop(wal);
    assert_eq!(replayed(root.path()), [b"b"]);
}

#[test]
fn without_a_sync_nothing_is_written_again() {
    let (root, disk, mut wal) = faulty(SyncPolicy::Off);
    wal.append(&[b"a"]).expect("appends");
    disk.set(Fault::next(Op::Sync));
    assert!(matches!(wal.sync(), Err(DiskError::WalSync { segment: 0, .. })));
    assert!(matches!(wal.sync(), Err(DiskError::WalSyncFailedBefore { segment: 0 })));
    assert_eq!(wal.append(&[b"b"]).expect("goes on"), 1);
    wal.sync().expect("the new segment is fine");
    drop(wal);
    assert_eq!(replayed(root.path()), [b"a", b"b"]);
}

#[test]
fn a_sync_that_fails_between_two_appends_of_a_group_costs_nothing() {
    let (root, disk, mut wal) = faulty(SyncPolicy::Always);
    wal.append(&[noise(1, 50_000)]).expect("appends");
    disk.set(Fault::next(Op::Sync));
    assert_eq!(wal.append(&[noise(2, 50_000)]).expect("behind a copy"), 1);
    wal.sync().expect("all of it is in the new segment");
    drop(wal);
    assert!(replayed(root.path()) == [noise(1, 50_000), noise(1, 50_000), noise(2, 50_000)]);
}

#[test]
fn a_copy_that_cannot_be_written_keeps_the_log_waiting() {
    let (root, disk, mut wal) = faulty(SyncPolicy::Always);
    wal.append(&[b"a"]).expect("appends");
    disk.set(Fault { ops: vec![Op::Sync, Op::Write], times: 3, ..Fault::next(Op::Sync) });
    assert!(matches!(wal.sync(), Err(DiskError::WalSync { segment: 0, .. })));
    assert!(matches!(wal.append(&[b"b"]), Err(DiskError::WalWrite { segment: 1, .. })));
    assert!(matches!(wal.sync(), Err(DiskError::WalWrite { segment: 1, .. })));
    assert_eq!(wal.append(&[b"b"]).expect("goes on"), 1);
    wal.sync().expect("syncs");
    drop(wal);
    assert_eq!(replayed(root.path()), [b"a", b"a", b"b"]);
}

#[test]
fn without_a_next_segment_everything_stays_as_it_is() {
    for op in [Op::Create, Op::SyncDir] {
        let (root, disk, mut wal) = faulty(SyncPolicy::Interval(std::time::Duration::ZERO));
        wal.append(&[noise(1, 50_000)]).expect("appends");
        disk.set(Fault { times: 3, kind: ErrorKind::StorageFull, ..Fault::next(op) });
        assert!(wal.append(&[noise(2, 50_000)]).expect_err("no segment").is_no_space());
        assert!(wal.cut_segment().expect_err("no segment").is_no_space());
        assert_eq!(names(root.path()), ["00000000"]);
        assert_eq!(wal.append(&[noise(3, 1000)]).expect("still fits"), 0);
        assert!(wal.append(&[noise(4, 50_000)]).expect_err("no segment").is_no_space());
        assert_eq!(wal.append(&[noise(5, 50_000)]).expect("space again"), 1);
        drop(wal);
        let expected = [noise(1, 50_000), noise(3, 1000), noise(5, 50_000)];
        assert!(replayed(root.path()) == expected);
    }
}

#[test]
fn a_segment_that_could_not_be_taken_back_leaves_no_gap() {
    let (root, disk, mut wal) = faulty(SyncPolicy::Always);
    let ops = vec![Op::SyncDir, Op::Remove];
    disk.set(Fault { ops, times: 2, ..Fault::next(Op::SyncDir) });
    wal.append(&[b"a"]).expect_err("directory not synced");
    assert_eq!(wal.append(&[b"b"]).expect("goes on"), 1);
    assert_eq!(names(root.path()), ["00000000", "00000001"]);
    drop(wal);
    assert_eq!(replayed(root.path()), [b"b"]);
}

#[test]
fn a_crash_at_any_call_keeps_what_was_acknowledged() {
    for after in 0..80 {
        let (root, disk, mut wal) = faulty(SyncPolicy::Always);
        disk.set(Fault::crash(after));
        let mut acknowledged = Vec::new();
        for i in 0..12 {
            let batch = [noise(i, 9000), noise(i + 100, 200)];
            if wal.append(&batch).and_then(|_| wal.sync()).is_err() {
                break;
            }
            acknowledged.extend(batch);
        }
        drop(wal);
        let read = replayed(root.path());
        assert!(read.starts_with(&acknowledged), "after {after} calls");
        let beyond = read.len() - acknowledged.len();
        // The batch in flight: whole (written, not synced), torn, or not there.
        assert!(beyond <= 2, "after {after} calls");
        assert!(replayed(root.path()) == read, "after {after} calls");
    }
}

#[test]
fn a_record_too_long_is_refused_whole() {
    let (root, _disk, mut wal) = faulty(SyncPolicy::Off);
    let too_long = vec![0; RECORD_BYTES_MAX + 1];
    let error = wal.append(&[b"a", &too_long[..]]).expect_err("too long");
    assert!(matches!(error, DiskError::RecordTooLong { .. }));
    wal.append(&[b"b"]).expect("goes on");
    drop(wal);
    assert_eq!(replayed(root.path()), [b"b"]);
}
