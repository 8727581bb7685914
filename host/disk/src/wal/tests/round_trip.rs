//! Appended records come back, however they lie across pages, segments and restarts.

use super::*;
use proptest::prelude::*;

const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Snappy, Compression::Zstd];

#[test]
fn records_of_every_awkward_length() {
    let page = PAGE_BYTES;
    let mut lengths: Vec<usize> = (0..40).collect();
    for pages in 1..4 {
        lengths.extend(pages * page - 60..pages * page + 20);
    }
    lengths.extend([300_000, 1 << 20]);
    for compression in COMPRESSIONS {
        let root = tempfile::tempdir().expect("tempdir");
        let options = WalOptions { segment_bytes_max: 64 * page as u64, compression, ..SMALL };
        let mut wal = open(root.path(), options);
        assert!(replay(&mut wal).is_empty());
        let mut expected = Vec::new();
        for (i, len) in lengths.iter().enumerate() {
            // Every third one can be compressed.
            let record = if i % 3 == 0 { vec![i as u8; *len] } else { noise(i as u64, *len) };
            let segment = wal.append(&[&record]).expect("appends");
            expected.push((segment, record));
        }
        let stats = wal.stats();
        assert_eq!(stats.records_written, lengths.len() as u64);
        drop(wal);

        let mut wal = open(root.path(), options);
        assert!(replay(&mut wal) == expected, "{compression:?}");
        let read = wal.stats().replay;
        assert_eq!((read.damaged_places, read.torn_tails), (0, 0));
        assert_eq!(read.records, lengths.len() as u64);
        assert_eq!((read.segments_done, read.bytes_done), (read.segments_total, read.bytes_total));
        assert_eq!(wal.monitor().size_bytes().expect("size"), read.bytes_total);
    }
}

#[test]
fn a_record_may_begin_at_every_place_near_a_pages_end() {
    for left in 0..24 {
        let root = tempfile::tempdir().expect("tempdir");
        let mut wal = open(root.path(), SMALL);
        replay(&mut wal);
        let filler = noise(1, PAGE_BYTES - page::HEADER_BYTES - left);
        wal.append(&[&filler]).expect("appends");
        wal.append(&[noise(2, 10), noise(3, 20)]).expect("appends");
        drop(wal);
        let expected = [filler, noise(2, 10), noise(3, 20)];
        assert!(replayed(root.path()) == expected, "{left} bytes left");
    }
}

#[test]
fn a_batch_lies_in_one_segment_and_a_long_one_gets_a_longer_segment() {
    let root = tempfile::tempdir().expect("tempdir");
    let mut wal = open(root.path(), SMALL);
    replay(&mut wal);
    let third = noise(1, 20_000);
    assert_eq!(wal.append(&[&third, &third]).expect("fits"), 0);
    assert_eq!(wal.append(&[&third, &third]).expect("cuts"), 1);
    assert_eq!(wal.append(&[&third]).expect("fits"), 1);
    let long = noise(2, 5 * PAGE_BYTES);
    assert_eq!(wal.append(&[&third, &long, &third]).expect("long"), 2);
    assert_eq!(wal.append(&[&third]).expect("cuts"), 3);
    assert_eq!(wal.append::<&[u8]>(&[]).expect("nothing"), 3);
    assert_eq!(names(root.path()), ["00000000", "00000001", "00000002", "00000003"]);
    let size = |number| std::fs::metadata(segment_path(root.path(), number)).expect("meta").len();
    for ended in 0..3 {
        assert_eq!(size(ended) % PAGE_BYTES as u64, 0, "segment {ended} ends with a whole page");
    }
    assert_eq!(size(0), SMALL.segment_bytes_max);
}

#[test]
fn a_long_batch_does_not_leave_an_empty_segment_behind() {
    let root = tempfile::tempdir().expect("tempdir");
    let mut wal = open(root.path(), SMALL);
    replay(&mut wal);
    assert_eq!(wal.append(&[noise(1, 5 * PAGE_BYTES)]).expect("long"), 0);
    assert_eq!(names(root.path()), ["00000000"]);
}

#[test]
fn batches_of_replay_are_bounded_and_stay_in_their_segment() {
    let root = tempfile::tempdir().expect("tempdir");
    let mut wal = open(root.path(), SMALL);
    replay(&mut wal);
    for i in 0..200 {
        wal.append(&[noise(i, 1000)]).expect("appends");
    }
    drop(wal);
    let mut wal = open(root.path(), SMALL);
    assert!(matches!(wal.append(&[b"x"]), Err(DiskError::WalNotReplayed)));
    assert!(matches!(wal.cut_segment(), Err(DiskError::WalNotReplayed)));
    assert!(matches!(wal.checkpoint(0).err(), Some(DiskError::WalNotReplayed)));
    let mut count = 0;
    let mut bytes_done = 0;
    while let Some(batch) = wal.replay_batch(5000).expect("replays") {
        assert!((1..=5).contains(&batch.records.len()));
        count += batch.records.len() as u64;
        for (i, record) in (count - batch.records.len() as u64..).zip(batch.records.iter()) {
            assert!(*record == noise(i, 1000));
        }
        let replay = wal.stats().replay;
        assert!(replay.bytes_done >= bytes_done && replay.bytes_done <= replay.bytes_total);
        bytes_done = replay.bytes_done;
    }
    assert_eq!(count, 200);
    assert_eq!(wal.replay_batch(5000).expect("still at the end"), None);
}

#[test]
fn an_earlier_lifes_segment_is_never_written_to() {
    let root = tempfile::tempdir().expect("tempdir");
    for life in 0..3 {
        let mut wal = open(root.path(), SMALL);
        assert_eq!(replay(&mut wal).len(), life as usize);
        assert_eq!(wal.stats().segment_current, life);
        assert_eq!(wal.append(&[noise(1, 10)]).expect("appends"), life);
    }
    // A life that writes nothing leaves nothing.
    replay(&mut open(root.path(), SMALL));
    assert_eq!(names(root.path()), ["00000000", "00000001", "00000002"]);
}

#[test]
fn cutting_ends_segments_even_empty_ones() {
    let root = tempfile::tempdir().expect("tempdir");
    let mut wal = open(root.path(), SMALL);
    replay(&mut wal);
    assert_eq!(wal.cut_segment().expect("cuts"), 0);
    assert_eq!(wal.append(&[b"a"]).expect("appends"), 1);
    assert_eq!(wal.cut_segment().expect("cuts"), 1);
    assert_eq!(wal.stats().segment_current, 2);
    assert_eq!(wal.cut_segment().expect("cuts"), 2);
    assert_eq!(names(root.path()).len(), 4);
    drop(wal);
    assert_eq!(replay(&mut open(root.path(), SMALL)), [(1, b"a".to_vec())]);
}

#[test]
fn the_policy_says_when_to_sync() {
    for (sync, is_due) in [(SyncPolicy::Off, false), (SyncPolicy::Always, true)] {
        let root = tempfile::tempdir().expect("tempdir");
        let mut wal = open(root.path(), WalOptions { sync, ..SMALL });
        replay(&mut wal);
        wal.append(&[b"a"]).expect("appends");
        assert_eq!(wal.sync_due_at().is_some(), is_due);
        wal.sync().expect("syncs");
        wal.sync().expect("has nothing to do");
        assert_eq!((wal.stats().fsyncs, wal.sync_due_at()), (1, None));
        // At the end of a segment: unless the policy is never to sync.
        wal.append(&[b"b"]).expect("appends");
        wal.cut_segment().expect("cuts");
        assert_eq!(wal.stats().fsyncs, 1 + u64::from(is_due));
    }
}

#[test]
fn a_segment_size_that_is_no_run_of_pages_is_refused() {
    let root = tempfile::tempdir().expect("tempdir");
    let data = DataDir::open(root.path()).expect("opens");
    for segment_bytes_max in [0, 1, PAGE_BYTES as u64 + 1] {
        let wal = Wal::open(&data, WalOptions { segment_bytes_max, ..SMALL });
        assert!(matches!(wal.err(), Some(DiskError::SegmentSize { .. })));
    }
}

/// A record: its seed, its length, and whether all its bytes are the same.
type RecordSpec = (u64, usize, bool);

fn record() -> impl Strategy<Value = RecordSpec> {
    let near_page = PAGE_BYTES - 40..PAGE_BYTES + 10;
    let len =
        prop_oneof![8 => 0..300usize, 3 => 300..20_000usize, 1 => near_page, 1 => Just(100_000)];
    (any::<u64>(), len, any::<bool>())
}

/// One run: its compression, and its batches.
fn life() -> impl Strategy<Value = (usize, Vec<Vec<RecordSpec>>)> {
    (0..3usize, prop::collection::vec(prop::collection::vec(record(), 0..6), 0..8))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lives_of_batches(lives in prop::collection::vec(life(), 1..5)) {
        let root = tempfile::tempdir().expect("tempdir");
        let mut expected = Vec::new();
        for (compression, batches) in lives {
            let compression = COMPRESSIONS[compression];
            let mut wal = open(root.path(), WalOptions { compression, ..SMALL });
            prop_assert!(replay(&mut wal) == expected);
            for batch in batches {
                let records: Vec<Vec<u8>> = batch
                    .iter()
                    .map(|(seed, len, even)| if *even { vec![*seed as u8; *len] } else { noise(*seed, *len) })
                    .collect();
                let segment = wal.append(&records).expect("appends");
                expected.extend(records.into_iter().map(|record| (segment, record)));
            }
        }
        let mut wal = open(root.path(), SMALL);
        prop_assert!(replay(&mut wal) == expected);
        prop_assert_eq!(wal.stats().replay.damaged_places, 0);
    }
}

/// The engine chains records that follow each other in a segment. Without a promise it learned of a
/// segment's end only once a chained record lay in the next one, where readers that begin there
/// cannot decode it. So it asks for the segment before it encodes the records.
#[test]
fn a_batch_goes_to_the_segment_that_was_promised() {
    let root = tempfile::tempdir().expect("tempdir");
    let mut wal = open(root.path(), SMALL);
    replay(&mut wal);
    let promise = |wal: &mut Wal| wal.append::<&[u8]>(&[]).expect("a promise");
    assert_eq!(promise(&mut wal), 0);
    wal.append(&[noise(1, 30_000)]).expect("appends");
    // Another batch like the last fits; this one does not, and lies there all the same.
    assert_eq!(promise(&mut wal), 0);
    assert_eq!(wal.append(&[noise(2, 50_000)]).expect("appends"), 0);
    assert_eq!(promise(&mut wal), 1, "it is too long");
    wal.append(&[noise(3, 40_000)]).expect("appends");
    assert_eq!(promise(&mut wal), 2, "another one like that would not fit");
    wal.append(&[noise(4, 40_000)]).expect("appends");
    // Only the next one was promised anything.
    assert_eq!(wal.append(&[noise(5, 40_000)]).expect("appends"), 3);
    drop(wal);
    let segments: Vec<u32> =
        replay(&mut open(root.path(), SMALL)).iter().map(|(segment, _)| *segment).collect();
    assert_eq!(segments, [0, 0, 1, 2, 3]);
}
