//! Checkpoints replace segments atomically and as a whole.

use super::*;
use crate::testing::{Fault, Op};

/// A log of three segments with one record each; the third one is being written.
fn three_segments(disk: &FaultyDisk, path: &Path) -> Wal {
    let mut wal = open_on(disk, path, SMALL);
    replay(&mut wal);
    for (i, record) in [b"r0", b"r1", b"r2"].into_iter().enumerate() {
        assert_eq!(wal.append(&[record]).expect("appends"), i as u32);
        if i < 2 {
            wal.cut_segment().expect("cuts");
        }
    }
    wal
}

fn texts(wal: &mut Wal) -> Vec<(u32, String)> {
    let text = |(segment, record)| (segment, String::from_utf8_lossy(record).into_owned());
    replay(wal).iter().map(|(segment, record)| text((*segment, record))).collect()
}

fn expect(pairs: &[(u32, &str)]) -> Vec<(u32, String)> {
    pairs.iter().map(|(segment, text)| (*segment, (*text).to_owned())).collect()
}

#[test]
fn a_checkpoint_replaces_segments_while_the_log_goes_on() {
    let root = tempfile::tempdir().expect("tempdir");
    let mut wal = three_segments(&FaultyDisk::default(), root.path());
    let mut checkpoint = wal.checkpoint(1).expect("begins");
    assert!(matches!(wal.checkpoint(1).err(), Some(DiskError::CheckpointBusy)));
    // More than one segment of its own.
    for i in 0..4 {
        checkpoint.append(&[noise(i, 40_000)]).expect("appends");
        wal.append(&[b"meanwhile"]).expect("appends");
    }
    assert_eq!(wal.stats().segment_current, 2);
    checkpoint.commit().expect("commits");
    assert_eq!(names(root.path()), ["00000002", "checkpoint.00000001"]);
    assert_eq!((wal.stats().checkpoints, wal.stats().segments_deleted), (1, 2));

    // The next one replaces it.
    assert_eq!(wal.cut_segment().expect("cuts"), 2);
    let mut checkpoint = wal.checkpoint(2).expect("begins");
    checkpoint.append(&[b"c2"]).expect("appends");
    checkpoint.commit().expect("commits");
    wal.append(&[b"r3"]).expect("appends");
    assert_eq!(names(root.path()), ["00000003", "checkpoint.00000002"]);
    drop(wal);
    let mut wal = open(root.path(), SMALL);
    assert_eq!(texts(&mut wal), expect(&[(2, "c2"), (3, "r3")]));
    assert_eq!(wal.stats().replay.segments_total, 2);
}

#[test]
fn nothing_is_removed_before_its_replacement_is_durable() {
    let root = tempfile::tempdir().expect("tempdir");
    let disk = FaultyDisk::default();
    let mut wal = three_segments(&disk, root.path());
    let mut checkpoint = wal.checkpoint(1).expect("begins");
    checkpoint.append(&[b"c01"]).expect("appends");
    disk.take_log();
    checkpoint.commit().expect("commits");
    let (padded, replaced) = (Op::SetLen, [Op::Remove, Op::Remove]);
    let durable = [padded, Op::Sync, Op::SyncDir, Op::Rename, Op::SyncDir];
    let expected = [&durable[..], &replaced, &[Op::SyncDir]].concat();
    assert_eq!(disk.take_log(), expected);
}

#[test]
fn dropped_it_leaves_no_trace() {
    let root = tempfile::tempdir().expect("tempdir");
    let mut wal = three_segments(&FaultyDisk::default(), root.path());
    let mut checkpoint = wal.checkpoint(0).expect("begins");
    checkpoint.append(&[b"c"]).expect("appends");
    assert_eq!(names(root.path()).len(), 4);
    drop(checkpoint);
    assert_eq!(names(root.path()), ["00000000", "00000001", "00000002"]);
    // And can be begun again, also without any record.
    wal.checkpoint(0).expect("begins").commit().expect("commits");
    assert_eq!(names(root.path()), ["00000001", "00000002", "checkpoint.00000000"]);
    drop(wal);
    assert_eq!(texts(&mut open(root.path(), SMALL)), expect(&[(1, "r1"), (2, "r2")]));
}

#[test]
fn it_must_end_between_the_last_one_and_the_segment_being_written() {
    let root = tempfile::tempdir().expect("tempdir");
    let mut wal = three_segments(&FaultyDisk::default(), root.path());
    wal.cut_segment().expect("cuts");
    wal.checkpoint(1).expect("begins").commit().expect("commits");
    for last_segment in [0, 3, 4] {
        let refused = wal.checkpoint(last_segment).err();
        assert!(matches!(
            refused,
            Some(DiskError::CheckpointRange { current_segment: 3, newest_checkpoint: Some(1), .. })
        ));
    }
    wal.checkpoint(2).expect("is fine");
}

/// A second attempt finishes the first one from any state, and deletes the replaced segments.
#[test]
fn one_whose_commit_failed_at_any_call_can_be_begun_again() {
    let mut failures_after_the_name = 0;
    for after in 0.. {
        let root = tempfile::tempdir().expect("tempdir");
        let disk = FaultyDisk::default();
        let mut wal = three_segments(&disk, root.path());
        let commit = |wal: &mut Wal| {
            let mut checkpoint = wal.checkpoint(1)?;
            checkpoint.append(&[b"c01"])?;
            checkpoint.commit()
        };
        disk.take_log();
        let ops = crate::testing::CHANGES.to_vec();
        disk.set(Fault { ops, after, ..Fault::next(Op::Write) });
        let failed = commit(&mut wal).is_err();
        disk.clear();
        let calls = disk.take_log().len();
        if failed {
            let is_named = names(root.path()).iter().any(|name| name == "checkpoint.00000001");
            failures_after_the_name += usize::from(is_named);
            commit(&mut wal).expect("commits");
            assert_eq!(names(root.path()), ["00000002", "checkpoint.00000001"], "after {after}");
        }
        drop(wal);
        let read = texts(&mut open(root.path(), SMALL));
        assert_eq!(read, expect(&[(1, "c01"), (2, "r2")]), "after {after} calls");
        if after > calls {
            break;
        }
    }
    assert!(failures_after_the_name > 0);
}

#[test]
fn numbers_go_on_behind_a_checkpoint_without_segments() {
    let root = tempfile::tempdir().expect("tempdir");
    let mut wal = three_segments(&FaultyDisk::default(), root.path());
    wal.checkpoint(1).expect("begins").commit().expect("commits");
    drop(wal);
    std::fs::remove_file(segment_path(root.path(), 2)).expect("remove");
    let mut wal = open(root.path(), SMALL);
    replay(&mut wal);
    assert_eq!(wal.append(&[b"x"]).expect("appends"), 2);
}

#[test]
fn a_crash_at_any_call_leaves_the_old_log_or_the_new_one() {
    let old = expect(&[(0, "r0"), (1, "r1"), (2, "r2")]);
    let new = expect(&[(1, "c01"), (2, "r2")]);
    let (mut saw_old, mut saw_new) = (false, false);
    for after in 0.. {
        let root = tempfile::tempdir().expect("tempdir");
        let disk = FaultyDisk::default();
        let mut wal = three_segments(&disk, root.path());
        disk.take_log();
        disk.set(Fault::crash(after));
        let committed = wal.checkpoint(1).and_then(|mut checkpoint| {
            checkpoint.append(&[b"c01"])?;
            checkpoint.commit()
        });
        let log = disk.take_log();
        drop(wal);
        disk.clear();

        let mut wal = open(root.path(), SMALL);
        let read = texts(&mut wal);
        assert!(read == old || read == new, "after {after} calls: {read:?}");
        assert!(committed.is_err() || read == new, "after {after} calls");
        (saw_old, saw_new) = (saw_old || read == old, saw_new || read == new);
        // What stays never has a gap, and the next checkpoint sweeps it.
        wal.cut_segment().expect("cuts");
        wal.checkpoint(2).expect("begins").commit().expect("commits");
        let after_sweep = names(root.path());
        assert_eq!(after_sweep.first().map(String::as_str), Some("00000003"), "{after_sweep:?}");
        assert_eq!(after_sweep.last().map(String::as_str), Some("checkpoint.00000002"));
        if after > log.len() {
            assert!(saw_old && saw_new);
            return;
        }
    }
}

#[test]
fn a_failure_at_any_call_leaves_the_log_whole() {
    for after in 0..30 {
        let root = tempfile::tempdir().expect("tempdir");
        let disk = FaultyDisk::default();
        let mut wal = three_segments(&disk, root.path());
        let ops = crate::testing::CHANGES.to_vec();
        disk.set(Fault { ops, after, ..Fault::next(Op::Write) });
        let committed = wal.checkpoint(1).and_then(|mut checkpoint| {
            checkpoint.append(&[b"c01"])?;
            checkpoint.commit()
        });
        disk.clear();
        let has_checkpoint = names(root.path()).iter().any(|name| name == "checkpoint.00000001");
        assert!(has_checkpoint || committed.is_err());
        assert!(!names(root.path()).iter().any(|name| name.ends_with(".tmp")), "after {after}");
        drop(wal);
        let read = texts(&mut open(root.path(), SMALL));
        let first = if has_checkpoint { (1, "c01") } else { (0, "r0") };
        assert_eq!(read.first(), expect(&[first]).first(), "after {after} calls");
    }
}
