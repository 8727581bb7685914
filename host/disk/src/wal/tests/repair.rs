//! Damaged segments are quarantined as they were found, and repaired: the next start reads the same
//! records, and finds no damage.

use super::*;
use crate::testing::{CHANGES, Fault, Op};
use std::fs;

type TestResult = std::result::Result<(), Box<dyn std::error::Error>>;

/// Makes four segments and a checkpoint with damage in three files; returns the readable records.
fn with_damage(path: &Path) -> std::result::Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let mut wal = open(path, SMALL);
    replay(&mut wal);
    let mut expected = Vec::new();
    for segment in 0..5 {
        for i in 0..3 {
            wal.append(&[noise(10 * segment + i, 1000)])?;
            let is_lost = [2, 4].contains(&segment) && i == 1;
            if segment > 0 && !is_lost {
                expected.push(noise(10 * segment + i, 1000));
            }
        }
        if segment < 4 {
            wal.cut_segment()?;
        }
    }
    let mut checkpoint = wal.checkpoint(0)?;
    checkpoint.append(&[noise(100, 500), noise(101, 500)])?;
    checkpoint.commit()?;
    drop(wal);
    expected.insert(0, noise(101, 500));
    for (file, at) in damaged(path) {
        flip(&file, at)?;
    }
    Ok(expected)
}

/// The damaged files of such a log, each with the offset of its damage.
fn damaged(path: &Path) -> [(PathBuf, usize); 3] {
    let in_checkpoint = path.join("wal/checkpoint.00000000/00000000");
    [(in_checkpoint, 100), (segment_path(path, 2), 1500), (segment_path(path, 4), 1500)]
}

fn flip(file: &Path, at: usize) -> std::io::Result<()> {
    let mut bytes = fs::read(file)?;
    bytes[at] ^= 4;
    fs::write(file, bytes)
}

fn records(wal: &mut Wal) -> Vec<Vec<u8>> {
    replay(wal).into_iter().map(|(_, record)| record).collect()
}

/// Contents of all quarantined files, oldest first; checks the ends of their names.
fn quarantine(path: &Path) -> std::result::Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let entries = DataDir::open_read_only(path)?.quarantine().entries()?;
    Ok(entries.iter().map(|entry| fs::read(&entry.path)).collect::<std::io::Result<_>>()?)
}

#[test]
fn damage_is_quarantined_and_the_log_is_whole_again() -> TestResult {
    let root = tempfile::tempdir()?;
    let expected = with_damage(root.path())?;
    let found: Vec<_> = damaged(root.path()).iter().map(|(file, _)| fs::read(file)).collect();
    let data = DataDir::open(root.path())?;
    let mut wal = Wal::open(&data, SMALL)?;
    assert_eq!(records(&mut wal), expected);
    assert_eq!(wal.stats().replay.damaged_places, 3);
    let stats = data.quarantine().stats();
    assert_eq!((stats.segments, stats.damaged_places), (3, 3));
    assert_eq!(stats.damaged_bytes, 507 + 2 * 1007);
    drop((wal, data));
    let kept = quarantine(root.path())?;
    assert!(kept.iter().zip(found).all(|(kept, found)| found.is_ok_and(|found| found == *kept)));
    assert_eq!(kept.len(), 3);
    let names = DataDir::open_read_only(root.path())?.quarantine().entries()?;
    let ends = ["-wal-checkpoint.00000000-00000000", "-wal-00000002", "-wal-00000004"];
    assert!(names.iter().zip(ends).all(|(entry, end)| entry.name.ends_with(end)), "{names:?}");

    let mut wal = open(root.path(), SMALL);
    assert_eq!(records(&mut wal), expected);
    assert!(wal.stats().replay.is_whole());
    wal.append(&[b"on"])?;
    assert_eq!(quarantine(root.path())?.len(), 3);
    Ok(())
}

/// After a crash or a failure at any call every record is read, and the damaged bytes are in the
/// log or quarantined.
#[test]
fn a_crash_or_a_failure_at_any_call_costs_nothing() -> TestResult {
    for times in [usize::MAX, 1] {
        for after in 0.. {
            let root = tempfile::tempdir()?;
            let expected = with_damage(root.path())?;
            let found = damaged(root.path()).map(|(file, _)| fs::read(file));
            let disk = FaultyDisk::default();
            let mut wal = open_on(&disk, root.path(), SMALL);
            disk.take_log();
            disk.set(Fault { ops: CHANGES.to_vec(), times, ..Fault::crash(after) });
            assert_eq!(records(&mut wal), expected, "after {after} calls");
            let calls = disk.take_log().iter().filter(|op| CHANGES.contains(op)).count();
            drop(wal);
            disk.clear();
            let mut wal = open_on(&disk, root.path(), SMALL);
            assert_eq!(records(&mut wal), expected, "after {after} calls");
            drop(wal);
            let mut wal = open_on(&disk, root.path(), SMALL);
            assert_eq!(records(&mut wal), expected, "after {after} calls");
            assert!(wal.stats().replay.is_whole(), "after {after} calls");
            let kept = quarantine(root.path())?;
            for found in found {
                assert!(kept.contains(&found?), "after {after} calls");
            }
            // A link before the crash and one after it.
            assert!(kept.len() <= 4, "after {after} calls: {}", kept.len());
            assert!(!root.path().join("wal/rewrite.tmp").exists());
            if after > calls {
                assert!(after > 20, "{after} calls are too few");
                break;
            }
        }
    }
    Ok(())
}

/// A bad byte in the last segment costs its record, but none of those written after it.
#[test]
fn records_behind_a_bad_byte_of_the_last_segment_are_kept() -> TestResult {
    let written: Vec<Vec<u8>> = (0..6).map(|i| noise(i, 300)).collect();
    for lost in 0..6 {
        let root = tempfile::tempdir()?;
        let mut wal = open(root.path(), SMALL);
        replay(&mut wal);
        for record in &written {
            wal.append(&[record])?;
        }
        drop(wal);
        let path = segment_path(root.path(), 0);
        flip(&path, lost * 307 + 200)?;
        let found = fs::read(&path)?;
        let mut wal = open(root.path(), SMALL);
        let mut expected = written.clone();
        expected.remove(lost);
        assert_eq!(records(&mut wal), expected, "record {lost}");
        assert_eq!(wal.stats().replay.torn_tails, 0, "record {lost}");
        assert_eq!(quarantine(root.path())?, [found]);
        drop(wal);
        assert_eq!(replayed(root.path()), expected);
    }
    Ok(())
}

/// With any entries in the log's directory the start succeeds with all readable records, and the
/// next start finds no irregularity.
#[test]
fn odd_directories_do_not_keep_the_log_from_opening() -> TestResult {
    type Spoil = fn(&Path) -> std::io::Result<()>;
    // What is done, which records are left of segments 1 to 3 and the checkpoint (c) up to 0.
    let cases: &[(&str, Spoil, &[&str])] = &[
        ("nothing", |_| Ok(()), &["c", "r1", "r2", "r3"]),
        (
            "a directory like a segment",
            |wal| fs::create_dir(wal.join("00000004")),
            &["c", "r1", "r2", "r3"],
        ),
        (
            "a directory in a segment's place, with something in it",
            |wal| {
                fs::remove_file(wal.join("00000002"))?;
                fs::create_dir(wal.join("00000002"))?;
                fs::write(wal.join("00000002/x"), b"x")
            },
            &["c", "r1", "r3"],
        ),
        (
            "a file like a checkpoint",
            |wal| fs::write(wal.join("checkpoint.00000002"), b"x"),
            &["c", "r1", "r2", "r3"],
        ),
        ("an empty segment", |wal| fs::write(wal.join("00000002"), b""), &["c", "r1", "r3"]),
        (
            "an empty last segment",
            |wal| fs::write(wal.join("00000004"), b""),
            &["c", "r1", "r2", "r3"],
        ),
        (
            "a segment of garbage",
            |wal| fs::write(wal.join("00000002"), noise(9, 5000)),
            &["c", "r1", "r3"],
        ),
        (
            "a last segment of garbage",
            |wal| fs::write(wal.join("00000003"), noise(9, 70_000)),
            &["c", "r1", "r2"],
        ),
        (
            "a segment of zeros",
            |wal| fs::write(wal.join("00000002"), [0; 5000]),
            &["c", "r1", "r3"],
        ),
        ("a missing segment", |wal| fs::remove_file(wal.join("00000002")), &["c", "r1", "r3"]),
        (
            "a missing first segment",
            |wal| fs::remove_file(wal.join("00000001")),
            &["c", "r2", "r3"],
        ),
        (
            "an empty checkpoint",
            |wal| fs::remove_file(wal.join("checkpoint.00000000/00000000")),
            &["r1", "r2", "r3"],
        ),
        (
            "a checkpoint of garbage",
            |wal| fs::write(wal.join("checkpoint.00000000/00000000"), noise(9, 50_000)),
            &["r1", "r2", "r3"],
        ),
        (
            "a checkpoint of an empty file",
            |wal| fs::write(wal.join("checkpoint.00000000/00000000"), b""),
            &["r1", "r2", "r3"],
        ),
        (
            "an empty newer checkpoint",
            |wal| fs::create_dir(wal.join("checkpoint.00000002")),
            &["c", "r1", "r2", "r3"],
        ),
        (
            "a checkpoint with nothing but a directory in it",
            |wal| fs::create_dir_all(wal.join("checkpoint.00000002/00000000")),
            &["c", "r1", "r2", "r3"],
        ),
        (
            "a damaged newer checkpoint, while all that it stands for is there",
            |wal| {
                fs::create_dir(wal.join("checkpoint.00000001"))?;
                fs::write(wal.join("checkpoint.00000001/00000000"), noise(9, 50_000))
            },
            &["c", "r1", "r2", "r3"],
        ),
        (
            "a sound newer checkpoint, while all that it stands for is there",
            |wal| {
                fs::create_dir(wal.join("checkpoint.00000001"))?;
                let from = wal.join("checkpoint.00000000/00000000");
                fs::copy(from, wal.join("checkpoint.00000001/00000000")).map(drop)
            },
            &["c", "r2", "r3"],
        ),
        (
            "only a damaged checkpoint beside what it stands for",
            |wal| {
                let old = wal.join("checkpoint.00000000/00000000");
                fs::rename(old, wal.join("00000000"))?;
                fs::write(wal.join("checkpoint.00000000/00000000"), noise(9, 50_000))
            },
            &["c", "r1", "r2", "r3"],
        ),
        ("no segment at all", |wal| fs::remove_dir_all(wal), &[]),
        (
            "a file in the place of the whole log",
            |wal| {
                fs::remove_dir_all(wal)?;
                fs::write(wal, b"x")
            },
            &[],
        ),
    ];
    for (what, spoil, expected) in cases {
        let root = tempfile::tempdir()?;
        let mut wal = open(root.path(), SMALL);
        replay(&mut wal);
        for record in ["r0", "r1", "r2", "r3"] {
            wal.append(&[record])?;
            if record != "r3" {
                wal.cut_segment()?;
            }
        }
        let mut checkpoint = wal.checkpoint(0)?;
        checkpoint.append(&["c"])?;
        checkpoint.commit()?;
        drop(wal);
        spoil(&root.path().join("wal"))?;
        let expected: Vec<Vec<u8>> = expected.iter().map(|text| text.as_bytes().to_vec()).collect();
        assert_eq!(replayed(root.path()), expected, "{what}");
        assert_eq!(replayed(root.path()), expected, "{what}, the second time");
        // The log goes on, and a checkpoint clears up.
        let mut wal = open(root.path(), SMALL);
        replay(&mut wal);
        wal.append(&["on"])?;
        let last = wal.cut_segment()?;
        wal.append(&["and on"])?;
        let mut checkpoint = wal.checkpoint(last)?;
        checkpoint.append(&["all"])?;
        checkpoint.commit()?;
        drop(wal);
        let mut wal = open(root.path(), SMALL);
        assert_eq!(records(&mut wal), [&b"all"[..], b"and on"], "{what}");
        assert!(wal.stats().replay.is_whole(), "{what}");
    }
    Ok(())
}

/// Bytes that the device refuses to read are kept: first in place, then in the quarantine.
#[test]
fn files_that_do_not_open_are_stepped_over_and_never_deleted() -> TestResult {
    let root = tempfile::tempdir()?;
    let disk = FaultyDisk::default();
    let mut wal = open_on(&disk, root.path(), SMALL);
    replay(&mut wal);
    for record in ["r0", "r1", "r2"] {
        wal.append(&[record])?;
        wal.cut_segment()?;
    }
    drop(wal);
    let found = fs::read(segment_path(root.path(), 0))?;
    let mut wal = open_on(&disk, root.path(), SMALL);
    disk.set(Fault::next(Op::Open));
    assert_eq!(records(&mut wal), [b"r1", b"r2"]);
    let replay_stats = wal.stats().replay;
    assert_eq!((replay_stats.damaged_places, replay_stats.damaged_bytes), (1, found.len() as u64));
    assert_eq!(
        (replay_stats.segments_done, replay_stats.bytes_done),
        (4, replay_stats.bytes_total)
    );
    assert_eq!(fs::read(segment_path(root.path(), 0))?, found);
    wal.append(&["on"])?;
    wal.checkpoint(2)?.commit()?;
    assert_eq!(quarantine(root.path())?, [found]);
    drop(wal);
    assert_eq!(replayed(root.path()), [b"on"]);

    // The same for a checkpoint, and a page that is not given.
    let mut wal = open_on(&disk, root.path(), SMALL);
    disk.set(Fault { times: 2, ..Fault::next(Op::Read) });
    replay(&mut wal);
    wal.cut_segment()?;
    let last = wal.cut_segment()?;
    wal.append(&["more"])?;
    wal.checkpoint(last)?.commit()?;
    assert_eq!(DataDir::open_read_only(root.path())?.quarantine().entries()?.len(), 2);
    Ok(())
}

/// A checkpoint is written from memory, so bytes that went bad in old segments do not affect it.
#[test]
fn segments_that_go_bad_while_the_log_is_open_hinder_nothing() -> TestResult {
    let root = tempfile::tempdir()?;
    let mut wal = open(root.path(), SMALL);
    replay(&mut wal);
    for record in ["r0", "r1", "r2"] {
        wal.append(&[record])?;
        wal.cut_segment()?;
    }
    fs::write(segment_path(root.path(), 0), noise(1, 40_000))?;
    fs::remove_file(segment_path(root.path(), 1))?;
    let mut checkpoint = wal.checkpoint(2)?;
    checkpoint.append(&["c"])?;
    checkpoint.commit()?;
    wal.append(&["on"])?;
    drop(wal);
    let mut wal = open(root.path(), SMALL);
    assert_eq!(records(&mut wal), [&b"c"[..], b"on"]);
    assert!(wal.stats().replay.is_whole());
    Ok(())
}
