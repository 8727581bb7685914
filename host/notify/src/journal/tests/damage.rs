use super::*;
use crate::journal::format::{MAGIC, MARKER, encode_begin, encode_event, encode_open};
use crate::journal::quarantine::{FILES_MAX, QUARANTINE_DIR};
use proptest::prelude::*;
use std::ops::Range;

/// A journal of one segment with six events.
fn sample() -> (MemoryDisk, Vec<Event>, Vec<Range<usize>>) {
    let all =
        [fires("A", 1), fires("B", 2), ends("A", 3), fires("C", 4), ends("B", 5), fires("A", 6)];
    let disk = disk();
    let (journal, thread) = open(&disk);
    let mut ranges = Vec::new();
    let mut begin = 0;
    for event in &all {
        journal.append(vec![event.clone()]);
        journal.flush();
        let end = disk.bytes_of(&segment_path(1)).len();
        ranges.push(begin..end);
        begin = end;
    }
    // Magic and the record of the begin: a frame of 12 bytes, kind, number, count.
    ranges[0].start = 8 + 12 + 1 + 8 + 4;
    thread.stop();
    (disk, all.to_vec(), ranges)
}

fn quarantined(disk: &MemoryDisk) -> Vec<PathBuf> {
    let dir = Path::new(DIR).join(QUARANTINE_DIR);
    disk.files().into_iter().filter(|path| path.starts_with(&dir)).collect()
}

/// A crash may leave any length of the newest segment.
#[test]
fn a_segment_that_ends_anywhere_has_its_whole_events() {
    let (disk, all, ranges) = sample();
    let bytes = disk.bytes_of(&segment_path(1));
    for length in 0..=bytes.len() {
        let disk = self::disk();
        disk.put(&segment_path(1), &bytes[..length]);
        let whole = ranges.iter().filter(|range| range.end <= length).count();
        let (journal, thread) = open(&disk);
        assert_eq!(events(&journal), all[..whole], "{length} bytes");
        assert_eq!(journal.figures().damaged_total, 0, "{length} bytes");
        let newest = *journal.newest().borrow();
        journal.append(vec![fires("D", 7)]);
        thread.stop();
        let (journal, _thread) = open(&disk.after_power_cut(Keeps::Nothing));
        assert_eq!(events(&journal), [&all[..whole], &[fires("D", 7)]].concat(), "{length} bytes");
        assert_eq!(*journal.newest().borrow(), newest + 1);
        assert_eq!(journal.figures().damaged_total, 0, "{length} bytes");
    }
}

#[test]
fn a_changed_bit_costs_one_event() {
    let (disk, all, ranges) = sample();
    let bytes = disk.bytes_of(&segment_path(1));
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let disk = self::disk();
        let disk = if at % 2 == 0 { disk } else { disk.without_links() };
        disk.put(&segment_path(1), &damaged);
        let hit = ranges.iter().position(|range| range.contains(&at));
        let mut rest = all.clone();
        if let Some(hit) = hit {
            rest.remove(hit);
        }
        let (journal, thread) = open(&disk);
        assert_eq!(events(&journal), rest, "byte {at}");
        // The last record may as well be torn.
        let is_damage = hit != Some(5);
        assert_eq!(journal.figures().damaged_total, u64::from(is_damage), "byte {at}");
        let kept = quarantined(&disk);
        assert_eq!(kept.len(), usize::from(is_damage), "byte {at}");
        assert!(kept.iter().all(|path| disk.bytes_of(path) == damaged), "byte {at}");
        journal.append(vec![fires("D", 7)]);
        thread.stop();
        // It was repaired, and is not damaged at the next start.
        let (journal, _thread) = open(&disk.after_power_cut(Keeps::Nothing));
        rest.push(fires("D", 7));
        assert_eq!(events(&journal), rest, "byte {at}");
        assert_eq!(journal.figures().damaged_total, 0, "byte {at}");
    }
}

#[test]
fn an_event_whose_record_is_damaged_is_known_from_the_next_snapshot() {
    let disk = disk();
    let (journal, thread) = open_with(&disk, short_segments());
    journal.append(vec![fires("A", 1000), fires("B", 1000), ends("C", 1000), ends("D", 5000)]);
    thread.stop();
    let path = segment_path(1);
    let mut bytes = disk.bytes_of(&path);
    let at = bytes.windows(4).rposition(|window| window == b"B fi").unwrap();
    bytes[at] ^= 1;
    disk.put(&path, &bytes);
    // Also where the damage cannot be repaired.
    for is_repaired in [false, true] {
        disk.fail(0, if is_repaired { 0 } else { usize::MAX });
        let (journal, _thread) = open(&disk);
        assert_eq!(open_numbers(&journal), [1, 2]);
        let mut found = Vec::new();
        journal.scan(0, &mut |item| match item {
            Item::Open(entry) => found.push((true, entry.number)),
            Item::Event(entry) => found.push((false, entry.number)),
        });
        assert_eq!(found, [(false, 1), (false, 3), (true, 2), (false, 4)]);
        assert_eq!(journal.figures().damaged_total, 1);
        assert_eq!(quarantined(&disk).len(), usize::from(is_repaired));
        disk.heal();
    }
}

#[test]
fn a_segment_that_cannot_be_read_costs_its_events() {
    let disk = disk();
    let (journal, thread) = open_with(&disk, short_segments());
    journal.append(vec![fires("A", 1000), fires("B", 5000), ends("A", 9000)]);
    thread.stop();
    for (first, rest, open_alerts) in [(1, vec![2, 3], vec![2]), (2, vec![1, 3], vec![2])] {
        disk.make_unreadable(&segment_path(first));
        let (journal, _thread) = open(&disk);
        let numbers: Vec<u64> = events_from(&journal, 0).iter().map(|e| e.number).collect();
        assert_eq!(numbers, rest);
        // The snapshot of the third segment has what the second one began.
        assert_eq!(open_numbers(&journal), open_alerts);
        assert_eq!(journal.figures().damaged_total, 1);
        disk.heal();
    }
    // What may be in the newest one has numbers, too: these are not given out again.
    disk.make_unreadable(&segment_path(3));
    let (journal, thread) = open(&disk);
    journal.append(vec![fires("C", 10_000)]);
    assert!(events_from(&journal, 3)[0].number > 3);
    thread.stop();
    disk.heal();
    let (journal, _thread) = open(&disk);
    let expected = [fires("A", 1000), fires("B", 5000), ends("A", 9000), fires("C", 10_000)];
    assert_eq!(events(&journal), expected);
}

#[test]
fn damage_that_comes_while_the_node_runs_is_counted_once() {
    let disk = disk();
    let (journal, _thread) = open_with(&disk, short_segments());
    journal.append(vec![fires("A", 1000), fires("B", 1000), fires("C", 5000)]);
    journal.flush();
    let path = segment_path(1);
    let mut bytes = disk.bytes_of(&path);
    bytes[60] ^= 1;
    disk.put(&path, &bytes);
    for _ in 0..2 {
        assert_eq!(events(&journal), [fires("B", 1000), fires("C", 5000)]);
        assert_eq!(journal.figures().damaged_total, 1);
    }
    disk.make_unreadable(&segment_path(3));
    assert_eq!(events(&journal), [fires("B", 1000)]);
    assert_eq!(journal.figures().damaged_total, 2);
}

#[test]
fn files_of_something_else_are_quarantined_within_bounds() {
    let disk = disk();
    for first in 1..=20 {
        disk.put(&segment_path(first), b"no journal at all");
    }
    disk.put(&Path::new(DIR).join(QUARANTINE_DIR).join("of others"), b"");
    let (journal, _thread) = open(&disk);
    assert_eq!((events(&journal), *journal.newest().borrow()), (vec![], 20));
    // The newest ones are kept, and what is not of the journal.
    assert_eq!(quarantined(&disk).len(), FILES_MAX + 1);
    assert!(!disk.files().contains(&segment_path(1)));
}

#[test]
fn an_unfinished_repair_is_removed() {
    let (disk, all, _) = sample();
    let unfinished = segment_path(1).with_file_name("00000001.tmp");
    disk.put(&unfinished, b"tide");
    let (journal, _thread) = open(&disk);
    assert_eq!(events(&journal), all);
    assert!(!disk.files().contains(&unfinished));
}

/// A write failed after it had reached the disk in part: the next segment has the events, too.
#[test]
fn events_that_two_segments_have_count_once() {
    let segment = |first: u64, opens: &[Entry], events: &[Entry]| {
        let mut bytes = MAGIC.to_vec();
        encode_begin(&mut bytes, first, opens.len() as u32);
        assert!(opens.iter().all(|entry| encode_open(&mut bytes, entry)));
        assert!(events.iter().all(|entry| encode_event(&mut bytes, entry)));
        bytes
    };
    let entry = |number, event| Entry { number, event };
    let all = [entry(1, fires("A", 1)), entry(2, fires("B", 2)), entry(3, ends("A", 3))];
    let disk = disk();
    disk.put(&segment_path(1), &segment(1, &[], &all));
    disk.put(&segment_path(2), &segment(2, &all[..1], &all[1..]));
    let (journal, _thread) = open(&disk);
    assert_eq!(events_from(&journal, 0), all);
    assert_eq!((open_numbers(&journal), journal.figures().damaged_total), (vec![2], 0));
}

/// Parts of a hostile file.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let event = (any::<u64>(), any::<bool>()).prop_map(|(number, is_open)| {
        let (mut bytes, entry) = (Vec::new(), Entry { number, event: fires("A", 1) });
        let _ = if is_open {
            encode_open(&mut bytes, &entry)
        } else {
            encode_event(&mut bytes, &entry)
        };
        bytes
    });
    let begin = any::<(u64, u32)>().prop_map(|(first, opens)| {
        let mut bytes = Vec::new();
        encode_begin(&mut bytes, first, opens);
        bytes
    });
    let frame = any::<u32>().prop_map(|length| [MARKER, length.to_le_bytes()].concat());
    let part = prop_oneof![
        event,
        begin,
        frame,
        Just(MAGIC.to_vec()),
        Just(MARKER[..3].to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
        (0..40_000_usize).prop_map(|length| vec![0; length]),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn hostile_files_do_no_harm(
        files in prop::collection::btree_map(1..=(1u64 << 62), hostile(), 0..4)
    ) {
        let disk = disk();
        for (first, bytes) in &files {
            disk.put(&segment_path(*first), bytes);
        }
        let (journal, thread) = open_with(&disk, short_segments());
        let before: Vec<u64> = events_from(&journal, 0).iter().map(|e| e.number).collect();
        prop_assert!(before.windows(2).all(|pair| pair[0] < pair[1]));
        let newest = *journal.newest().borrow();
        prop_assert!(before.iter().chain(files.keys()).all(|number| *number <= newest));
        prop_assert!(events_from(&journal, newest + 1).is_empty());
        if newest < 1 << 62 {
            journal.append(vec![fires("D", 7)]);
            journal.flush();
            thread.stop();
            let (journal, _thread) = open(&disk);
            let after: Vec<u64> = events_from(&journal, 0).iter().map(|e| e.number).collect();
            prop_assert_eq!(after, [before, vec![newest + 1]].concat());
            prop_assert_eq!(journal.figures().damaged_total, 0);
        }
    }
}
