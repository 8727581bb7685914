use super::*;

/// Appends these in turn, each once the one before was written or has failed.
fn steps() -> Vec<Vec<Event>> {
    vec![
        vec![fires("A", 1000), fires("B", 1000)],
        vec![ends("A", 1500)],
        // Another segment, and another one in a batch.
        vec![fires("C", 3000), fires("D", 5000)],
        vec![ends("C", 5100)],
        vec![fires("A", 9000), ends("B", 9100)],
    ]
}

fn all() -> Vec<Event> {
    steps().concat()
}

const OPEN_AT_END: [u64; 2] = [5, 7];

/// Runs the steps on a disk, and returns how many events were on disk at last.
fn run(disk: &MemoryDisk) -> (Journal, usize) {
    let (journal, thread) = open_with(disk, short_segments());
    let mut durable = 0;
    for (index, step) in steps().into_iter().enumerate() {
        journal.append(step);
        journal.flush();
        if journal.figures().unwritten == 0 {
            durable = steps()[..=index].concat().len();
        }
        assert_eq!(events(&journal), steps()[..=index].concat(), "readable whatever the disk does");
    }
    thread.stop();
    if journal.figures().unwritten == 0 {
        durable = all().len();
    }
    (journal, durable)
}

fn changes_of_a_run() -> usize {
    let disk = disk();
    assert_eq!(run(&disk).1, all().len());
    disk.changes()
}

/// One or a few calls fail, such as those of a full disk: nothing is lost, and nothing twice.
#[test]
fn a_failed_call_costs_nothing() {
    let changes = changes_of_a_run();
    assert!(changes > 15, "{changes}");
    for (after, times) in (0..changes).flat_map(|after| [(after, 1), (after, 2), (after, 4)]) {
        let story = format!("{times} calls fail after {after}");
        let disk = disk();
        disk.fail(after, times);
        let (journal, thread) = open_with(&disk, short_segments());
        for step in steps() {
            journal.append(step);
            journal.flush();
        }
        disk.heal();
        journal.flush();
        let figures = journal.figures();
        assert_eq!((figures.unwritten, figures.last_error), (0, None), "{story}");
        assert_eq!(figures.lost_total, 0, "{story}");
        assert_eq!(open_numbers(&journal), OPEN_AT_END, "{story}");
        assert_eq!(events(&journal), all(), "{story}");
        thread.stop();
        for keeps in [Keeps::Nothing, Keeps::Half, Keeps::Everything] {
            let (journal, _thread) = open(&disk.after_power_cut(keeps));
            assert_eq!(events(&journal), all(), "{story}, {keeps:?}");
            assert_eq!(open_numbers(&journal), OPEN_AT_END, "{story}, {keeps:?}");
            assert_eq!(journal.figures().damaged_total, 0, "{story}, {keeps:?}");
            let numbers: Vec<u64> = events_from(&journal, 0).iter().map(|e| e.number).collect();
            assert_eq!(numbers, (1..=8).collect::<Vec<_>>(), "{story}, {keeps:?}");
        }
    }
}

/// The process or the machine ends at each call. What was flushed is there, and nothing else is.
#[test]
fn a_crash_costs_what_was_not_synced() {
    for after in 0..changes_of_a_run() {
        for keeps in [Keeps::Nothing, Keeps::Half, Keeps::Everything] {
            let story = format!("crash after {after} changes, {keeps:?}");
            let disk = disk();
            disk.fail(after, usize::MAX);
            let (_, durable) = run(&disk);
            let disk = disk.after_power_cut(keeps);
            let (journal, thread) = open_with(&disk, short_segments());
            let found = events(&journal);
            assert!(found.len() >= durable, "{story}: {} of {durable}", found.len());
            assert_eq!(found, all()[..found.len()], "{story}");
            assert_eq!(journal.figures().damaged_total, 0, "{story}");
            let mut left_open = open_alerts::OpenAlerts::default();
            for entry in events_from(&journal, 0) {
                left_open.apply(&Arc::new(entry));
            }
            let expected: Vec<u64> = left_open.entries().iter().map(|entry| entry.number).collect();
            assert_eq!(open_numbers(&journal), expected, "{story}");
            // It goes on from there.
            let newest = *journal.newest().borrow();
            journal.append(vec![ends("D", 9500)]);
            thread.stop();
            let (journal, _thread) = open(&disk.after_power_cut(Keeps::Nothing));
            let last = events_from(&journal, 0).pop().unwrap();
            assert_eq!(last, Entry { number: newest + 1, event: ends("D", 9500) }, "{story}");
            assert_eq!(events(&journal).len(), found.len() + 1, "{story}");
        }
    }
}

/// A repair that a crash ends, at each of its calls, loses nothing more, and is made at last.
#[test]
fn a_crash_during_a_repair_costs_nothing() {
    let whole = disk();
    run(&whole);
    let path = segment_path(1);
    let mut bytes = whole.bytes_of(&path);
    let at = bytes.windows(4).position(|window| window == b"A fi").unwrap();
    bytes[at] ^= 1;
    for has_links in [true, false] {
        for after in 0..12 {
            let disk = whole.after_power_cut(Keeps::Nothing);
            let disk = if has_links { disk } else { disk.without_links() };
            disk.put(&path, &bytes);
            let changes = disk.changes();
            disk.fail(after, usize::MAX);
            let (journal, thread) = open(&disk);
            assert_eq!(events(&journal), all()[1..], "{after}");
            thread.stop();
            assert!(disk.changes() > changes);
            for keeps in [Keeps::Nothing, Keeps::Half, Keeps::Everything] {
                let disk = disk.after_power_cut(keeps);
                let (journal, thread) = open(&disk);
                assert_eq!(events(&journal), all()[1..], "{after}, {keeps:?}");
                assert_eq!(open_numbers(&journal), OPEN_AT_END, "{after}, {keeps:?}");
                thread.stop();
                let (journal, _thread) = open(&disk);
                assert_eq!(journal.figures().damaged_total, 0, "{after}, {keeps:?}");
                assert!(disk.files().iter().any(|path| {
                    path.starts_with(Path::new(DIR).join(quarantine::QUARANTINE_DIR))
                        && disk.bytes_of(path) == bytes
                }));
            }
        }
    }
}

/// The alert that says so must get out, and the journal must be whole afterwards.
#[test]
fn a_full_disk_delays_writing_only() {
    let disk = disk();
    let (journal, thread) = open(&disk);
    journal.append(vec![fires("A", 1000)]);
    journal.flush();
    for room in [0, 100, 300] {
        let used: usize = disk.files().iter().map(|path| disk.bytes_of(path).len()).sum();
        disk.limit(used + room);
        let before = journal.figures().failed_writes_total;
        journal.append((0..10).map(|index| fires(&format!("{room} {index}"), 2000)).collect());
        journal.flush();
        let figures = journal.figures();
        assert!(figures.unwritten == 10 && figures.failed_writes_total > before, "{figures:?}");
        let error = figures.last_error.unwrap();
        assert!(error.contains("free space on the device"), "{error}");
        disk.heal();
        journal.flush();
        let figures = journal.figures();
        assert_eq!((figures.unwritten, figures.last_error), (0, None));
    }
    assert_eq!(events(&journal).len(), 31);
    // After each error another one is begun: the place of the old one may be bad.
    assert_eq!(journal.figures().segments, 4);
    thread.stop();
    let (journal, _thread) = open(&disk.after_power_cut(Keeps::Nothing));
    assert_eq!((events(&journal).len(), journal.figures().damaged_total), (31, 0));
    assert_eq!(open_numbers(&journal).len(), 31);
}
