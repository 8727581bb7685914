//! Reading behind the writer, and segments that are moved instead of deleted.

use super::*;
use crate::testing::{Fault, Op};
use crate::wal::{Followed, HeldSegments, LogFollower, SeriesFiles};
use std::io::Write as _;

/// Returns everything that a follower yields now: segment, number and bytes of each record.
fn follow(follower: &mut LogFollower) -> Vec<(u32, u32, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        match follower.next(700).expect("reads") {
            Followed::Nothing => return all,
            Followed::End { .. } => {}
            Followed::Records { segment, first, records } => {
                let numbered = (first..).zip(records.iter());
                all.extend(numbered.map(|(number, record)| (segment, number, record.to_vec())));
            }
        }
    }
}

fn bytes_of(read: &[(u32, u32, Vec<u8>)]) -> Vec<Vec<u8>> {
    read.iter().map(|(.., record)| record.clone()).collect()
}

/// Numbers count from 0 in each segment.
fn assert_numbered(read: &[(u32, u32, Vec<u8>)]) {
    for pair in read.windows(2) {
        let ((segment, number, _), (next_segment, next, _)) = (&pair[0], &pair[1]);
        let follows = match segment == next_segment {
            true => *next == number + 1,
            false => next_segment > segment && *next == 0,
        };
        assert!(follows, "{segment}/{number}, then {next_segment}/{next}");
    }
}

#[test]
fn records_are_read_as_they_are_written_over_segments_and_lives() {
    let dir = tempfile::tempdir().expect("directory");
    let data = DataDir::open(dir.path()).expect("data directory");
    let mut follower = LogFollower::new(&data, LogKind::InOrder, 0);
    let (mut written, mut read) = (Vec::new(), Vec::new());
    for life in 0..3u64 {
        let mut wal = Wal::open(&data, SMALL).expect("log");
        replay(&mut wal);
        for number in 0..60u64 {
            let len = [3, 200, 9_000, 40_000][(number % 4) as usize];
            let records = [noise(life * 100 + number, len), noise(number, 10)];
            wal.append(&records).expect("appends");
            written.extend(records);
            if number % 3 != 0 {
                read.extend(follow(&mut follower));
                assert_eq!(read.len(), written.len(), "nothing is held back");
            }
        }
    }
    read.extend(follow(&mut follower));
    assert_eq!(bytes_of(&read), written);
    assert_numbered(&read);
    let again = follow(&mut LogFollower::new(&data, LogKind::InOrder, 0));
    assert_eq!(again, read, "the places are the same from the beginning");
}

#[test]
fn half_a_write_at_the_end_is_read_once_it_is_whole() {
    let dir = tempfile::tempdir().expect("directory");
    let data = DataDir::open(dir.path()).expect("data directory");
    let other = tempfile::tempdir().expect("directory");
    let record = noise(1, 5_000);
    let mut wal = open(other.path(), SMALL);
    replay(&mut wal);
    wal.append(&[noise(2, 100)]).expect("appends");
    wal.append(std::slice::from_ref(&record)).expect("appends");
    drop(wal);
    let whole = std::fs::read(other.path().join("wal/00000000")).expect("a segment");
    let path = data.wal_path().join("00000000");
    let mut file = std::fs::File::create(path).expect("a file");
    let mut follower = LogFollower::new(&data, LogKind::InOrder, 0);
    let mut read = Vec::new();
    for part in whole.chunks(997) {
        file.write_all(part).expect("writes");
        read.extend(follow(&mut follower));
    }
    assert_eq!(bytes_of(&read), [noise(2, 100), record]);
    assert_numbered(&read);
}

#[test]
fn a_follower_that_observes_reads_no_further() {
    let dir = tempfile::tempdir().expect("directory");
    let data = DataDir::open(dir.path()).expect("data directory");
    let mut wal = Wal::open(&data, SMALL).expect("log");
    replay(&mut wal);
    let mut follower = LogFollower::new(&data, LogKind::InOrder, 0);
    wal.append(&[noise(1, 50)]).expect("appends");
    follower.observe().expect("looks");
    for number in 2..40 {
        wal.append(&[noise(number, 5_000)]).expect("appends");
    }
    assert_eq!(bytes_of(&follow(&mut follower)), [noise(1, 50)]);
    follower.observe().expect("looks");
    assert_eq!(follow(&mut follower).len(), 38);
}

#[test]
fn what_is_held_is_read_until_it_is_released() {
    let dir = tempfile::tempdir().expect("directory");
    let data = DataDir::open(dir.path()).expect("data directory");
    data.holding().turn_on();
    let mut wal = Wal::open(&data, SMALL).expect("log");
    replay(&mut wal);
    let held = HeldSegments::open(&data);
    let mut written = Vec::new();
    let mut last = 0;
    for round in 0..3u64 {
        for number in 0..20 {
            let record = noise(round * 50 + number, 6_000);
            wal.append(std::slice::from_ref(&record)).expect("appends");
            written.push(record);
        }
        last = wal.cut_segment().expect("cuts");
        let mut checkpoint = wal.checkpoint(last).expect("begins");
        checkpoint.append(&[vec![round as u8 + 1; 4]]).expect("appends");
        checkpoint.commit().expect("commits");
        assert_eq!(held.last(LogKind::InOrder), Some(last));
    }
    assert!(held.bytes() > 300_000);
    let read = follow(&mut LogFollower::new(&data, LogKind::InOrder, 0));
    assert_eq!(bytes_of(&read), written);
    // Out-of-order rows that are not read yet may name series of any checkpoint.
    held.release(last, 0, None).expect("releases");
    assert_eq!(follow(&mut LogFollower::new(&data, LogKind::InOrder, 0)), read);
    // A reader at the last segment needs the checkpoint before it, and what lies between.
    held.release(last, 0, Some(last)).expect("releases");
    let left = follow(&mut LogFollower::new(&data, LogKind::InOrder, 0));
    assert!(left.len() < read.len() && read.ends_with(&left), "{} of {}", left.len(), read.len());
    assert_eq!(left.last(), read.last());
    let mut series = Vec::new();
    let files = SeriesFiles::before(&data, last).expect("files");
    let each = files.each(10_000, |segment, records| {
        series.extend(records.iter().map(|record| (segment, record.to_vec())));
        Ok::<_, ()>(())
    });
    assert_eq!(each, Ok(()));
    let checkpoints: Vec<u8> =
        series.iter().filter(|(_, record)| record.len() == 4).map(|(_, r)| r[0]).collect();
    assert_eq!(checkpoints, [2, 3], "the one before the segment, and what came later");
    held.release(last + 1, 0, Some(last)).expect("releases");
    assert_eq!(held.bytes(), 0, "the log's own checkpoint says all");
    drop((wal, data));
    assert_eq!(replayed(dir.path()).first(), Some(&vec![3; 4]));
}

/// A damaged segment that was not repaired is both quarantined and held, so that followers read its
/// undamaged records.
#[test]
fn what_is_damaged_is_held_as_well() {
    let dir = tempfile::tempdir().expect("directory");
    let data = DataDir::open(dir.path()).expect("data directory");
    data.holding().turn_on();
    let mut wal = Wal::open(&data, SMALL).expect("log");
    replay(&mut wal);
    for number in 0..20 {
        wal.append(&[noise(number, 6_000)]).expect("appends");
    }
    let last = wal.cut_segment().expect("cuts");
    wal.removal.note_damaged(data.wal_path().join("00000000"));
    let before = follow(&mut LogFollower::new(&data, LogKind::InOrder, 0));
    let mut checkpoint = wal.checkpoint(last).expect("begins");
    checkpoint.append(&[vec![1; 4]]).expect("appends");
    checkpoint.commit().expect("commits");
    let aside: Vec<String> =
        data.quarantine().entries().expect("a list").into_iter().map(|entry| entry.name).collect();
    assert!(matches!(&aside[..], [name] if name.ends_with("wal-00000000")), "{aside:?}");
    assert_eq!(follow(&mut LogFollower::new(&data, LogKind::InOrder, 0)), before);
    HeldSegments::open(&data).release(last + 1, 0, Some(last)).expect("releases");
    assert_eq!(data.quarantine().entries().expect("a list").len(), 1, "it stays quarantined");
}

fn follower_on(disk: &FaultyDisk, path: &Path) -> (Wal, LogFollower) {
    let data = DataDir::open_on(Arc::new(disk.clone()), path).expect("data directory");
    let mut wal = Wal::open(&data, SMALL).expect("log");
    replay(&mut wal);
    let follower = LogFollower::new(&data, LogKind::InOrder, 0);
    (wal, follower)
}

/// A disk was full in the middle of a batch, whose first record was in the file for a moment. A
/// follower that read it then stood behind the end of the log when the write was undone: it read
/// nothing more of the segment, and counted its records one too high from then on.
#[test]
fn a_write_that_fails_is_never_read_and_delivery_goes_on() {
    let root = tempfile::tempdir().expect("directory");
    let disk = FaultyDisk::default();
    let (mut wal, mut follower) = follower_on(&disk, root.path());
    wal.append(&[noise(1, 500)]).expect("appends");
    assert_eq!(bytes_of(&follow(&mut follower)), [noise(1, 500)]);
    // It stays in the file until the next append: cutting it off fails, too.
    let ops = vec![Op::Write, Op::SetLen];
    disk.set(Fault { ops, times: 2, torn_bytes: 2_000, ..Fault::next(Op::Write) });
    wal.append(&[noise(2, 600), noise(3, 5_000)]).expect_err("fails");
    let path = segment_path(root.path(), 0);
    assert!(std::fs::metadata(&path).expect("a file").len() > 1_100, "a whole record is there");
    assert!(follow(&mut follower).is_empty() && !follower.is_stuck());
    assert_eq!(follower.bytes_left(), 0);
    follower.observe().expect("looks");
    assert!(follow(&mut follower).is_empty());
    follower.observe().expect("looks");
    wal.append(&[noise(4, 100), noise(5, 30_000)]).expect("appends");
    follower.observe().expect("looks");
    assert_eq!(bytes_of(&follow(&mut follower)), [noise(4, 100), noise(5, 30_000)]);
    // In one segment, the write is undone and replaced.
    disk.set(Fault { torn_bytes: 2_000, ..Fault::next(Op::Write) });
    wal.append(&[noise(6, 600), noise(7, 5_000)]).expect_err("fails");
    assert!(follow(&mut follower).is_empty());
    wal.append(&[noise(8, 300)]).expect("appends");
    follower.observe().expect("looks");
    assert_eq!(bytes_of(&follow(&mut follower)), [noise(8, 300)]);
    let all = follow(&mut LogFollower::new(
        &DataDir::open_read_only(root.path()).expect("a directory"),
        LogKind::InOrder,
        0,
    ));
    let expected = [noise(1, 500), noise(4, 100), noise(5, 30_000), noise(8, 300)];
    assert_eq!(bytes_of(&all), expected);
    assert_numbered(&all);
}

/// A segment could be neither made durable nor removed. The log continued in the one before, but
/// followers took that one for ended, because a later one existed, and missed its new records.
#[test]
fn a_segment_whose_beginning_is_undone_ends_nothing() {
    let root = tempfile::tempdir().expect("directory");
    let disk = FaultyDisk::default();
    let (mut wal, mut follower) = follower_on(&disk, root.path());
    wal.append(&[noise(1, 40_000)]).expect("appends");
    let ops = vec![Op::SyncDir, Op::Remove];
    disk.set(Fault { ops, times: 2, ..Fault::next(Op::SyncDir) });
    wal.append(&[noise(2, 40_000)]).expect_err("a segment cannot be begun");
    assert_eq!(names(root.path()), ["00000000", "00000001"]);
    assert_eq!(bytes_of(&follow(&mut follower)), [noise(1, 40_000)]);
    assert_eq!(wal.append(&[noise(3, 100)]).expect("appends"), 0);
    assert_eq!(bytes_of(&follow(&mut follower)), [noise(3, 100)]);
    assert_eq!(wal.append(&[noise(4, 40_000)]).expect("appends"), 2);
    assert_eq!(follow(&mut follower), [(2, 0, noise(4, 40_000))]);
}

/// Damage at the present end of the log stops a follower, which must not report the end. New
/// segments let it continue.
#[test]
fn damage_at_the_end_is_seen_and_passed_over() {
    let root = tempfile::tempdir().expect("directory");
    let disk = FaultyDisk::default();
    let (mut wal, mut follower) = follower_on(&disk, root.path());
    wal.append(&[noise(1, 500)]).expect("appends");
    wal.append(&[noise(2, 500)]).expect("appends");
    let path = segment_path(root.path(), 0);
    let mut bytes = std::fs::read(&path).expect("a segment");
    bytes[900] ^= 1;
    std::fs::write(&path, bytes).expect("writes");
    assert_eq!(bytes_of(&follow(&mut follower)), [noise(1, 500)]);
    assert!(follower.is_stuck());
    wal.append(&[noise(3, 500)]).expect("appends");
    assert_eq!(bytes_of(&follow(&mut follower)), [noise(3, 500)]);
    assert!(!follower.is_stuck());
}
