//! Tests of the whole journal on a disk in memory.

mod bounds;
mod crash;
mod damage;
mod format;

use super::testing::{Keeps, MemoryDisk};
use super::*;
use crate::event::{Cause, Change, Origin};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use tidepool_rules::labels::LabelSet;

const DIR: &str = "/data/alerts";

/// An event of the alert with this name. Its annotation tells it from others.
fn event(alert: &str, change: Change, time_ms: i64) -> Event {
    let summary = format!("{alert} {} at {time_ms}", change.name());
    Event {
        change,
        time_ms,
        origin: Origin { file: "/etc/rules.yml".into(), group: "disk".into() },
        labels: LabelSet::new([("alertname", alert), ("severity", "page")]),
        annotations: Arc::new([("summary".to_owned(), summary)].into()),
        value: 0.5,
        fired_at_ms: time_ms,
        cause: Cause::Evaluation,
        is_unnamed: false,
    }
}

fn fires(alert: &str, time_ms: i64) -> Event {
    event(alert, Change::Firing, time_ms)
}

fn ends(alert: &str, time_ms: i64) -> Event {
    event(alert, Change::Resolved, time_ms)
}

/// A clock that tests set; `i64::MIN` for a doubted one.
fn clock(now_ms: &Arc<AtomicI64>) -> NowMs {
    let now_ms = Arc::clone(now_ms);
    Arc::new(move || Some(now_ms.load(Relaxed)).filter(|now_ms| *now_ms != i64::MIN))
}

fn doubted() -> NowMs {
    Arc::new(|| None)
}

/// A disk with the directory of the data.
fn disk() -> MemoryDisk {
    let disk = MemoryDisk::default();
    disk.put(Path::new("/data/lock"), b"");
    disk
}

/// Segments of the journal take events of one second.
fn short_segments() -> JournalBounds {
    JournalBounds { age_ms_max: 8000, ..JournalBounds::default() }
}

fn open(disk: &MemoryDisk) -> (Journal, JournalThread) {
    open_with(disk, JournalBounds::default())
}

fn open_with(disk: &MemoryDisk, bounds: JournalBounds) -> (Journal, JournalThread) {
    Journal::open(Arc::new(disk.clone()), DIR.into(), bounds, 1, doubted())
}

fn segment_path(first: u64) -> PathBuf {
    Path::new(DIR).join(JOURNAL_DIR).join(format!("{first:08}"))
}

fn events_from(journal: &Journal, from: u64) -> Vec<Entry> {
    let mut events = Vec::new();
    journal.scan(from, &mut |item| {
        if let Item::Event(entry) = item {
            events.push(entry.clone());
        }
    });
    events
}

fn events(journal: &Journal) -> Vec<Event> {
    events_from(journal, 0).into_iter().map(|entry| entry.event).collect()
}

fn opens_from(journal: &Journal, from: u64) -> Vec<u64> {
    let mut opens = Vec::new();
    journal.scan(from, &mut |item| {
        if let Item::Open(entry) = item {
            opens.push(entry.number);
        }
    });
    opens
}

fn open_numbers(journal: &Journal) -> Vec<u64> {
    journal.open_alerts().iter().map(|entry| entry.number).collect()
}

#[test]
fn events_are_numbered_readable_at_once_and_there_after_a_restart() {
    let disk = disk();
    let (journal, thread) = open(&disk);
    let mut newest = journal.newest();
    assert_eq!((*newest.borrow_and_update(), journal.oldest()), (0, 1));
    // Nothing can be written now.
    disk.fail(0, usize::MAX);
    let all = [fires("A", 1000), fires("B", 1000), ends("A", 2000)];
    journal.append(all.to_vec());
    assert!(newest.has_changed().unwrap());
    assert_eq!((*newest.borrow(), journal.oldest()), (3, 1));
    assert_eq!(events(&journal), all);
    assert_eq!(open_numbers(&journal), [2]);
    disk.heal();
    journal.flush();
    assert_eq!(journal.figures().unwritten, 0);
    assert_eq!(events(&journal), all);
    thread.stop();

    let (journal, _thread) = open(&disk.after_power_cut(Keeps::Nothing));
    let numbers: Vec<u64> = events_from(&journal, 0).iter().map(|entry| entry.number).collect();
    assert_eq!((numbers, events(&journal)), (vec![1, 2, 3], all.to_vec()));
    assert_eq!((*journal.newest().borrow(), open_numbers(&journal)), (3, vec![2]));
    journal.append(vec![ends("B", 3000)]);
    assert_eq!(events_from(&journal, 4)[0].event, ends("B", 3000));
    assert_eq!(open_numbers(&journal), [0; 0]);
}

/// A card that fails may take minutes for a write. Rules and receivers must not feel it.
#[test]
fn a_disk_that_hangs_delays_neither_events_nor_readers() {
    let disk = disk();
    let (journal, thread) = open(&disk);
    journal.append(vec![fires("A", 1000)]);
    journal.flush();
    let hanging = disk.hang();
    for time_ms in 2000..3000 {
        journal.append(vec![fires("B", time_ms)]);
    }
    journal.set_bounds(short_segments());
    assert_eq!((events(&journal).len(), journal.figures().unwritten), (1001, 1000));
    assert_eq!(open_numbers(&journal), [1, 1001]);
    let durable = || *journal.durable().borrow();
    assert_eq!(durable(), 1);
    drop(hanging);
    journal.flush();
    assert_eq!(durable(), 1001);
    // What the disk takes no more is delivered nevertheless.
    disk.fail(0, usize::MAX);
    journal.append(vec![fires("C", 4000)]);
    journal.flush();
    assert_eq!((durable(), journal.figures().unwritten), (1002, 1));
    disk.heal();
    thread.stop();
    assert_eq!((events(&journal).len(), journal.figures().unwritten), (1002, 0));
}

#[test]
fn a_stop_writes_what_waits() {
    let disk = disk();
    let (journal, thread) = open(&disk);
    journal.append(vec![fires("A", 1000)]);
    thread.stop();
    assert_eq!(journal.figures().unwritten, 0);
    // Later events stay in memory, and nothing waits for the thread.
    journal.append(vec![ends("A", 2000)]);
    journal.flush();
    assert_eq!((events(&journal).len(), journal.figures().unwritten), (2, 1));
    let (journal, _thread) = open(&disk.after_power_cut(Keeps::Nothing));
    assert_eq!(events(&journal), [fires("A", 1000)]);
}

#[test]
fn a_quiet_journal_writes_nothing() {
    let disk = disk();
    let (journal, thread) = open(&disk);
    journal.append(Vec::new());
    journal.set_bounds(short_segments());
    journal.flush();
    thread.stop();
    assert_eq!((disk.changes(), disk.files().len()), (0, 1));

    let (journal, thread) = open(&disk);
    journal.append(vec![fires("A", 1000)]);
    thread.stop();
    let changes = disk.changes();
    let (journal_again, thread) = open(&disk);
    journal_again.flush();
    thread.stop();
    drop(journal);
    assert_eq!(disk.changes(), changes);
}

#[test]
fn a_batch_is_synced_once() {
    let disk = disk();
    let (journal, _thread) = open(&disk);
    journal.append(vec![fires("A", 1000)]);
    journal.flush();
    let changes = disk.changes();
    journal.append((0..100).map(|index| fires(&index.to_string(), 1000)).collect());
    journal.flush();
    // A write and a sync.
    assert_eq!(disk.changes(), changes + 2);
}

#[test]
fn numbers_are_above_those_of_the_caller_and_of_names() {
    let disk = disk();
    let bounds = JournalBounds::default();
    let (journal, thread) =
        Journal::open(Arc::new(disk.clone()), DIR.into(), bounds, 70, doubted());
    assert_eq!((*journal.newest().borrow(), journal.oldest()), (69, 70));
    journal.append(vec![fires("A", 1000)]);
    assert_eq!(events_from(&journal, 0)[0].number, 70);
    thread.stop();
    assert!(disk.files().contains(&segment_path(70)));
    disk.put(&segment_path(99), b"");
    // Names of others.
    disk.put(&segment_path(1).with_file_name("123"), b"");
    disk.put(&segment_path(1).with_file_name("+0000123"), b"");
    let (journal, _thread) = open(&disk);
    journal.append(vec![ends("A", 2000)]);
    assert_eq!(events_from(&journal, 71)[0].number, 100);
}

/// A pump starts at any event. It must know what was open then, and nothing that began later.
#[test]
fn a_scan_begins_with_what_is_open_at_its_first_event() {
    let disk = disk();
    let (journal, _thread) = open_with(&disk, short_segments());
    let all = [
        fires("A", 1000),
        fires("B", 1500),
        ends("A", 3000),
        fires("C", 5000),
        ends("B", 7000),
        fires("A", 7100),
    ];
    let open_before: [&[u64]; 8] = [&[], &[], &[1], &[1, 2], &[2], &[2, 4], &[4], &[4, 6]];
    for event in &all {
        journal.append(vec![event.clone()]);
        journal.flush();
    }
    assert!(journal.figures().segments > 3);
    let journal_again = open(&disk).0;
    // All in memory.
    let unwritten = open_with(&self::disk(), short_segments());
    unwritten.1.stop();
    unwritten.0.append(all.to_vec());
    for journal in [&journal, &journal_again, &unwritten.0] {
        for from in 0..=7 {
            assert_eq!(opens_from(journal, from), open_before[from as usize], "from {from}");
            let numbers: Vec<_> = events_from(journal, from).iter().map(|e| e.number).collect();
            assert_eq!(numbers, (from.max(1)..=6).collect::<Vec<_>>());
        }
        assert_eq!(open_numbers(journal), [4, 6]);
    }
}

#[test]
fn events_of_other_groups_are_other_alerts() {
    let (journal, _thread) = open(&disk());
    let mut other = ends("A", 2000);
    other.origin.group = "other".into();
    journal.append(vec![fires("A", 1000), other]);
    assert_eq!(open_numbers(&journal), [1]);
}

/// A command reads the files while the node appends.
#[test]
fn a_journal_is_read_beside_a_node() {
    let disk = disk();
    assert!(read_dir(&disk, Path::new(DIR), 0, &mut |_| {}).unwrap().is_empty());
    let (journal, _thread) = open_with(&disk, short_segments());
    journal.append(vec![fires("A", 1000), fires("B", 5000)]);
    journal.flush();
    let path = segment_path(2);
    let half_written = [disk.bytes_of(&path), vec![0xf5, 0xff, 0xc0]].concat();
    disk.put(&path, &half_written);
    let (files, changes) = (disk.files(), disk.changes());
    let mut found = Vec::new();
    let damage = read_dir(&disk, Path::new(DIR), 2, &mut |item| match item {
        Item::Open(entry) => found.push(("open", entry.event.clone())),
        Item::Event(entry) => found.push(("event", entry.event.clone())),
    });
    assert_eq!(damage.unwrap(), []);
    assert_eq!(found, [("open", fires("A", 1000)), ("event", fires("B", 5000))]);
    // Damage is named, and repaired by the node alone.
    let path = segment_path(1);
    let mut bytes = disk.bytes_of(&path);
    let length = bytes.len();
    bytes[length - 1] ^= 1;
    disk.put(&path, &bytes);
    let damage = read_dir(&disk, Path::new(DIR), 0, &mut |_| {}).unwrap();
    assert_eq!(damage.len(), 1);
    assert_eq!((&damage[0].path, damage[0].offset + damage[0].bytes), (&path, length as u64));
    assert_eq!((disk.files(), disk.changes()), (files, changes));
}

#[test]
fn scans_go_on_while_events_come_and_segments_are_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let bounds = JournalBounds { bytes_max: 1 << 16, ..JournalBounds::default() };
    let disk = Arc::new(tidepool_disk::fs::RealDisk);
    let dir = directory.path().join("alerts");
    let (journal, thread) = Journal::open(disk, dir, bounds, 1, doubted());
    let writer = journal.clone();
    let writes = std::thread::spawn(move || {
        for time_ms in 0..4000 {
            writer.append(vec![fires("A", time_ms)]);
            if time_ms % 100 == 0 {
                writer.flush();
            }
        }
    });
    while !writes.is_finished() {
        let oldest = journal.oldest();
        let found: Vec<u64> = events_from(&journal, 0).iter().map(|entry| entry.number).collect();
        if let Some(first) = found.first() {
            assert!(*first >= oldest);
            // A segment may vanish after it was looked for, so that the numbers begin with a later
            // one, but no number is missing behind what is there now.
            let kept: Vec<u64> =
                found.iter().copied().filter(|number| *number >= journal.oldest()).collect();
            assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + 1), "{kept:?}");
        }
    }
    writes.join().unwrap();
    journal.flush();
    assert!(journal.figures().dropped_total > 0);
    assert_eq!(events_from(&journal, 0).last().unwrap().number, 4000);
    thread.stop();
}
