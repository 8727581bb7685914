//! Reading continues after any damage to the files.

use super::*;
use crate::testing::{Fault, Op};
use proptest::prelude::*;
use std::fs;

/// Writes a log of one segment; returns the end of each record in the file.
fn written(path: &Path, records: &[Vec<u8>]) -> Vec<u64> {
    let mut wal = open(path, WalOptions { segment_bytes_max: 1 << 20, ..SMALL });
    replay(&mut wal);
    let ends = records.iter().map(|record| {
        wal.append(&[record]).expect("appends");
        fs::metadata(segment_path(path, 0)).expect("meta").len()
    });
    ends.collect()
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_off_and_the_log_goes_on() {
    let lengths = [100, PAGE_BYTES - 300, 10, 0, 500, 40_000, 30];
    let records: Vec<Vec<u8>> = (0..).zip(lengths).map(|(i, len)| noise(i, len)).collect();
    let root = tempfile::tempdir().expect("tempdir");
    let ends = written(root.path(), &records);
    let bytes = fs::read(segment_path(root.path(), 0)).expect("read");
    let middle = (ends[0] as usize..bytes.len()).step_by(977);
    let near_ends = ends.iter().flat_map(|end| end.saturating_sub(20)..=end + 20);
    let cuts = middle.chain(near_ends.map(|cut| cut as usize)).filter(|cut| *cut <= bytes.len());
    for cut in cuts.chain(0..120) {
        let root = tempfile::tempdir().expect("tempdir");
        fs::create_dir(root.path().join("wal")).expect("create");
        fs::write(segment_path(root.path(), 0), &bytes[..cut]).expect("write");
        let whole = ends.iter().filter(|end| **end as usize <= cut).count();
        let mut wal = open(root.path(), SMALL);
        let read: Vec<_> = replay(&mut wal).into_iter().map(|(_, record)| record).collect();
        // Padding at a page's end belongs to the record before it, but is not needed.
        assert!(read.len() == whole || read.len() == whole + 1, "cut at {cut}");
        assert!(read == records[..read.len()], "cut at {cut}");
        let stats = wal.stats().replay;
        assert_eq!(stats.damaged_places, 0, "cut at {cut}");
        let size = fs::metadata(segment_path(root.path(), 0)).expect("meta").len();
        assert_eq!(size + stats.torn_bytes, cut as u64);
        assert_eq!(stats.torn_tails, u64::from(stats.torn_bytes > 0));

        wal.append(&[b"after"]).expect("appends");
        assert_eq!(names(root.path()), ["00000000", "00000001"]);
        drop(wal);
        let mut wal = open(root.path(), SMALL);
        assert_eq!(replay(&mut wal).len(), read.len() + 1, "cut at {cut}");
        assert_eq!(wal.stats().replay.torn_tails, 0, "cut at {cut}");
    }
}

#[test]
fn a_tail_of_zeros_is_padding_and_one_behind_a_torn_record_goes_with_it() {
    let records = [noise(1, 100), noise(2, 100)];
    let root = tempfile::tempdir().expect("tempdir");
    let ends = written(root.path(), &records);
    let path = segment_path(root.path(), 0);
    let file = fs::OpenOptions::new().write(true).open(&path).expect("open");
    file.set_len(3 * PAGE_BYTES as u64 + 5).expect("extend");
    assert_eq!(replayed(root.path()), records);
    file.set_len(ends[1] - 1).expect("cut");
    file.set_len(3 * PAGE_BYTES as u64 + 5).expect("extend");
    assert_eq!(replayed(root.path()), records[..1]);
    assert_eq!(file.metadata().expect("meta").len(), ends[0]);
}

#[test]
fn the_torn_segment_may_be_followed_by_empty_ones() {
    let root = tempfile::tempdir().expect("tempdir");
    let ends = written(root.path(), &[noise(1, 100), noise(2, 100)]);
    let path = segment_path(root.path(), 0);
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("open")
        .set_len(ends[1] - 1)
        .expect("cut");
    fs::write(segment_path(root.path(), 1), b"").expect("write");
    let mut wal = open(root.path(), SMALL);
    assert_eq!(replay(&mut wal), [(0, noise(1, 100))]);
    assert_eq!(wal.append(&[b"x"]).expect("appends"), 2);
    assert_eq!(fs::metadata(path).expect("meta").len(), ends[0]);
}

#[test]
fn every_flipped_byte_costs_at_most_its_record() {
    let lengths = [3000, 100, 20_000, 15_000, 200, 70_000, 60, 7000, 25_000, 400, 30_000, 90];
    let records: Vec<Vec<u8>> = (0..).zip(lengths).map(|(i, len)| noise(i, len)).collect();
    let root = tempfile::tempdir().expect("tempdir");
    let ends = written(root.path(), &records);
    // A second segment, so that the first is not the last.
    let mut wal = open(root.path(), SMALL);
    replay(&mut wal);
    wal.append(&[b"next"]).expect("appends");
    drop(wal);
    let path = segment_path(root.path(), 0);
    let bytes = fs::read(&path).expect("read");
    let starts: Vec<u64> = [0].into_iter().chain(ends.iter().copied()).collect();
    for at in
        (0..bytes.len()).step_by(997).chain(starts.iter().flat_map(|start| {
            (*start as usize..*start as usize + 8).filter(|at| *at < bytes.len())
        }))
    {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, &flipped).expect("write");
        let mut wal = open(root.path(), SMALL);
        let read: Vec<_> = replay(&mut wal).into_iter().map(|(_, record)| record).collect();
        let is_hit = |i: usize| (starts[i]..ends[i]).contains(&(at as u64));
        let mut rest = &read[..];
        for (i, record) in records.iter().enumerate() {
            match rest.split_first() {
                Some((first, after)) if first == record => rest = after,
                _ => assert!(is_hit(i), "record {i} lost by a flip at {at}"),
            }
        }
        assert_eq!(rest, [b"next"], "flip at {at}");
        let stats = wal.stats().replay;
        assert_eq!(stats.torn_tails, 0);
        let is_whole = read.len() == records.len() + 1;
        assert_eq!(stats.damaged_bytes == 0, is_whole, "flip at {at}");
        drop(wal);
        assert_eq!(replayed(root.path()).len(), read.len(), "flip at {at}");
        let _ = fs::remove_dir_all(root.path().join("set-aside"));
    }
}

/// A page that holds the first fragment of a record and nothing else.
fn unfinished(seed: u64) -> Vec<u8> {
    let mut pages = Vec::new();
    page::put_record(&mut pages, 0, &noise(seed, 2 * PAGE_BYTES), Compression::None);
    pages.truncate(PAGE_BYTES);
    pages
}

#[test]
fn a_record_without_its_end_is_not_joined_to_the_next() {
    let root = tempfile::tempdir().expect("tempdir");
    fs::create_dir(root.path().join("wal")).expect("create");
    let long = noise(2, PAGE_BYTES + 100);
    let mut bytes = unfinished(1);
    page::put_record(&mut bytes, 0, &long, Compression::None);
    bytes.resize(3 * PAGE_BYTES, 0);
    // Once more, with the damage inside the unfinished record.
    bytes.extend(unfinished(3));
    bytes.resize(5 * PAGE_BYTES, 0xff);
    page::put_record(&mut bytes, 0, &long, Compression::None);
    fs::write(segment_path(root.path(), 0), &bytes).expect("write");
    let mut wal = open(root.path(), SMALL);
    assert!(replay(&mut wal) == [(0, long.clone()), (0, long)]);
    let stats = wal.stats().replay;
    assert_eq!((stats.damaged_places, stats.damaged_bytes), (2, 3 * PAGE_BYTES as u64));
}

#[test]
fn a_record_packed_in_an_unknown_way_costs_only_itself() {
    let root = tempfile::tempdir().expect("tempdir");
    let records = [noise(1, 100), noise(2, 100), noise(3, 100)];
    let ends = written(root.path(), &records);
    let path = segment_path(root.path(), 0);
    let intact = fs::read(&path).expect("read");
    // Bits without a meaning yet, two packings at once, and a packing that it is not.
    for flags in [0x20, 0x40, 0x80, 0x18, 0x08, 0x10] {
        for (lost, start) in [(1, ends[0]), (2, ends[1])] {
            let mut bytes = intact.clone();
            bytes[start as usize] |= flags;
            fs::write(&path, &bytes).expect("write");
            let mut wal = open(root.path(), SMALL);
            let read: Vec<_> = replay(&mut wal).into_iter().map(|(_, record)| record).collect();
            let expected: Vec<_> = (0..3).filter(|i| *i != lost).map(|i| &records[i]).collect();
            assert!(read.iter().eq(expected), "flags {flags:#x}");
            let stats = wal.stats().replay;
            assert_eq!((stats.damaged_places, stats.damaged_bytes), (1, 107));
            // It was written whole, so no crash did this: it is not for cutting off.
            assert_eq!(stats.torn_tails, 0);
        }
    }
}

#[test]
fn gaps_garbage_and_strangers_do_not_stop_the_start() {
    let root = tempfile::tempdir().expect("tempdir");
    written(root.path(), &[noise(1, 100)]);
    let wal_dir = root.path().join("wal");
    fs::write(segment_path(root.path(), 3), noise(7, 100_000)).expect("write");
    fs::copy(segment_path(root.path(), 0), segment_path(root.path(), 5)).expect("copy");
    fs::write(wal_dir.join("6"), b"").expect("write");
    fs::write(wal_dir.join("00000008.repair"), b"x").expect("write");
    fs::write(wal_dir.join("99999999999"), b"x").expect("write");
    fs::write(wal_dir.join("checkpoint.00000002"), b"a file").expect("write");
    fs::create_dir(wal_dir.join("checkpoint.00000004")).expect("create");
    fs::create_dir(wal_dir.join("00000009")).expect("create");
    let mut wal = open(root.path(), SMALL);
    assert_eq!(replay(&mut wal), [(0, noise(1, 100)), (5, noise(1, 100))]);
    let stats = wal.stats().replay;
    assert_eq!((stats.damaged_places, stats.damaged_bytes), (1, 100_000));
    assert_eq!(wal.append(&[b"x"]).expect("appends"), 7);
    assert_eq!(fs::read(segment_path(root.path(), 3)).expect("read"), b"");
}

#[test]
fn a_log_of_garbage_alone_is_quarantined() {
    let root = tempfile::tempdir().expect("tempdir");
    fs::create_dir(root.path().join("wal")).expect("create");
    fs::write(segment_path(root.path(), 7), noise(7, 100_000)).expect("write");
    let mut wal = open(root.path(), SMALL);
    assert!(replay(&mut wal).is_empty());
    assert_eq!(wal.stats().replay.damaged_bytes, 100_000);
    assert_eq!(fs::read(segment_path(root.path(), 7)).expect("read"), b"");
    assert_eq!(wal.append(&[b"x"]).expect("appends"), 8);
}

#[test]
fn the_highest_number_is_an_error_that_says_so() {
    let root = tempfile::tempdir().expect("tempdir");
    fs::create_dir(root.path().join("wal")).expect("create");
    fs::write(segment_path(root.path(), u32::MAX), b"").expect("write");
    let mut wal = open(root.path(), SMALL);
    replay(&mut wal);
    let error = wal.append(&[b"x"]).expect_err("no number left");
    assert!(matches!(error, DiskError::SegmentNumbersExhausted { .. }), "{error}");
}

#[test]
fn an_unreadable_page_is_skipped_and_never_cut_off() {
    let root = tempfile::tempdir().expect("tempdir");
    let records: Vec<Vec<u8>> = (0..5).map(|i| noise(i, 20_000)).collect();
    written(root.path(), &records);
    let path = segment_path(root.path(), 0);
    let size = fs::metadata(&path).expect("meta").len();
    let disk = FaultyDisk::default();
    let mut wal = open_on(&disk, root.path(), SMALL);
    // The window, then its first page.
    disk.set(Fault { times: 2, ..Fault::next(Op::Read) });
    let read: Vec<_> = replay(&mut wal).into_iter().map(|(_, record)| record).collect();
    assert_eq!(read, records[2..]);
    drop(wal);
    let mut wal = open_on(&disk, root.path(), SMALL);
    disk.set(Fault { times: usize::MAX, ..Fault::next(Op::Read) });
    assert!(replay(&mut wal).is_empty());
    assert_eq!(wal.stats().replay.damaged_bytes, size);
    disk.clear();
    drop(wal);
    assert_eq!(replayed(root.path()), records);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_at_all(
        mut bytes in prop::collection::vec(0..6u8, 0..300),
        at in prop::collection::vec((0..3 * PAGE_BYTES, any::<u8>()), 0..20),
        pages in 0..4usize,
    ) {
        bytes.resize(bytes.len() + pages * PAGE_BYTES, 0);
        for (at, value) in at {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let root = tempfile::tempdir().expect("tempdir");
        fs::create_dir(root.path().join("wal")).expect("create");
        fs::write(segment_path(root.path(), 0), &bytes).expect("write");
        let mut wal = open(root.path(), SMALL);
        let read = replay(&mut wal);
        wal.append(&[b"x"]).expect("appends");
        drop(wal);
        let mut wal = open(root.path(), SMALL);
        prop_assert_eq!(replay(&mut wal).len(), read.len() + 1);
    }
}
