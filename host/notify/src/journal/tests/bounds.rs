use super::*;
use tidepool_disk::fs::Disk;
use tidepool_disk::write_accounts::{CountingDisk, WrittenFor};

const DAY_MS: i64 = 24 * 3_600_000;

/// An event with an annotation of this length.
fn long(mut event: Event, bytes: usize) -> Event {
    event.annotations = Arc::new([("description".to_owned(), "x".repeat(bytes))].into());
    event
}

#[test]
fn size_drops_the_oldest_segments_but_no_open_alert() {
    let disk = disk();
    let bounds = JournalBounds { bytes_max: 256 * 1024, ..JournalBounds::default() };
    let (journal, thread) = open_with(&disk, bounds);
    let mut oldest = journal.watch_oldest();
    journal.append(vec![fires("stays", 0), fires("ends", 0)]);
    for time_ms in 1..=2000 {
        journal.append(vec![long(fires("A", time_ms), 500)]);
        if time_ms % 20 == 0 {
            journal.flush();
            assert!(journal.figures().bytes <= bounds.bytes_max);
        }
        if time_ms == 500 {
            journal.append(vec![ends("ends", time_ms)]);
        }
    }
    let found = events_from(&journal, 0);
    let figures = journal.figures();
    assert_eq!(found.len() as u64 + figures.dropped_total, 2003);
    // More than half of the limit is used, in segments of 64 KiB.
    assert!(figures.bytes > bounds.bytes_max / 2, "{figures:?}");
    assert_eq!((found[0].number, found.len() as u64), (journal.oldest(), 2004 - found[0].number));
    assert_eq!(*oldest.borrow_and_update(), journal.oldest());
    assert_eq!(open_numbers(&journal)[0], 1);
    assert_eq!(journal.open_alerts()[0].event, fires("stays", 0));
    assert_eq!(opens_from(&journal, 0)[0], 1);
    thread.stop();
    let on_disk: usize = disk.files().iter().map(|path| disk.bytes_of(path).len()).sum();
    assert_eq!(on_disk as u64, journal.figures().bytes);

    let (journal, _thread) = open_with(&disk.after_power_cut(Keeps::Nothing), bounds);
    assert_eq!(events_from(&journal, 0), found);
    assert_eq!(open_numbers(&journal), [1, 2003]);
    assert_eq!(journal.open_alerts()[0].event, fires("stays", 0));
}

#[test]
fn many_open_alerts_at_most_double_what_is_written() {
    let counting = CountingDisk::new(Arc::new(disk()));
    let bounds = JournalBounds { bytes_max: 0, ..JournalBounds::default() };
    let disk = counting.with_account(WrittenFor::Other);
    let (journal, _thread) = Journal::open(disk, DIR.into(), bounds, 1, doubted());
    // Snapshots of some 300 KB, and segments of 64 KiB by the limit.
    journal.append((0..1000).map(|index| long(fires(&index.to_string(), 0), 200)).collect());
    journal.flush();
    let before = counting.wear().bytes_total();
    let mut bytes = 0;
    for time_ms in 0..1000 {
        let event = long(fires("A", time_ms), 1000);
        bytes += 1000 + 100;
        journal.append(vec![event]);
        journal.flush();
    }
    let written = counting.wear().bytes_total() - before;
    assert!(written < 2 * bytes + 500_000, "{written} bytes");
    assert!(journal.figures().segments <= 2);
    assert_eq!(open_numbers(&journal).len(), 1001);
}

/// Labels and annotations as those of the rules that ship, with a batch an event.
#[test]
fn a_thousand_transitions_take_half_a_megabyte() {
    let counting = CountingDisk::new(Arc::new(disk()));
    let disk: Arc<dyn Disk> = counting.with_account(WrittenFor::Other);
    let (journal, thread) = Journal::open(disk, DIR.into(), JournalBounds::default(), 1, doubted());
    for index in 0..1000 {
        let change = if index % 2 == 0 { Change::Firing } else { Change::Resolved };
        let mut event = event("NodeDiskFullSoon", change, 1_792_000_000_000 + 3600 * index);
        event.origin = Origin { file: "builtin:node".into(), group: "node_disk".into() };
        event.labels = event.labels.with([
            ("device", "/dev/mmcblk0p2"),
            ("fstype", "ext4"),
            ("instance", "edge-0042"),
            ("job", "node"),
            ("mountpoint", "/var/lib/data"),
        ]);
        let annotations = [
            ("summary", "The disk at /var/lib/data will be full within four days."),
            (
                "description",
                "19.87% of /var/lib/data (/dev/mmcblk0p2) on edge-0042 is free. At the rate of the \
                 last six hours it will be full within four days.",
            ),
            ("runbook", "docs/alerts.md#nodediskfullsoon"),
        ];
        event.annotations =
            Arc::new(annotations.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        journal.append(vec![event]);
        journal.flush();
    }
    thread.stop();
    let bytes = counting.wear().bytes_total();
    assert!((300_000..500_000).contains(&bytes), "{bytes} bytes");
}

#[test]
fn age_drops_segments_by_a_trusted_clock_only() {
    let disk = disk();
    let now_ms = Arc::new(AtomicI64::new(i64::MIN));
    let bounds = JournalBounds::default();
    let open = || Journal::open(Arc::new(disk.clone()), DIR.into(), bounds, 1, clock(&now_ms));
    let (journal, thread) = open();
    let mut day = 1000;
    let mut next_day = |journal: &Journal| {
        day += 1;
        journal.append(vec![fires("A", day * DAY_MS)]);
        journal.flush();
        day
    };
    while next_day(&journal) < 1040 {}
    assert_eq!(journal.oldest(), 1, "the clock is doubted");
    // The events are of the future: it was a step of the clock, or it is one now.
    now_ms.store(10 * DAY_MS, Relaxed);
    next_day(&journal);
    assert_eq!(journal.oldest(), 1);
    now_ms.store(1042 * DAY_MS, Relaxed);
    let day = next_day(&journal);
    let oldest_ms = events(&journal)[0].time_ms;
    // A segment spans less than an eighth of the age.
    let span = (day - 14) * DAY_MS - 2 * DAY_MS..=(day - 14) * DAY_MS;
    assert!(span.contains(&oldest_ms), "{} days", oldest_ms / DAY_MS);
    let oldest = journal.oldest();
    assert!(journal.figures().dropped_total == oldest - 1 && oldest > 20);
    // A year without events, or a step of the clock by it, drops nothing.
    now_ms.store((day + 365) * DAY_MS, Relaxed);
    journal.append(vec![ends("A", day * DAY_MS)]);
    journal.flush();
    assert_eq!(journal.oldest(), oldest);
    thread.stop();
    let (journal, _thread) = open();
    journal.flush();
    assert_eq!(journal.oldest(), oldest);
    // The first event afterwards does.
    journal.append(vec![fires("A", (day + 365) * DAY_MS)]);
    journal.flush();
    assert_eq!(events(&journal), [fires("A", (day + 365) * DAY_MS)]);
}

#[test]
fn smaller_limits_have_effect_at_once_and_after_a_restart() {
    let disk = disk();
    let all: Vec<Event> = (0..1000).map(|time_ms| long(fires("A", time_ms), 1000)).collect();
    let small = JournalBounds { bytes_max: 200_000, ..JournalBounds::default() };
    let (journal, thread) = open(&disk);
    journal.append(all);
    journal.flush();
    assert_eq!(journal.oldest(), 1);
    thread.stop();
    for is_restart in [true, false] {
        let disk = disk.after_power_cut(Keeps::Nothing);
        let (journal, _thread) = if is_restart { open_with(&disk, small) } else { open(&disk) };
        journal.set_bounds(small);
        journal.flush();
        // The segments are those of the larger limit, and the newest one stays.
        assert!(journal.oldest() > 400 && journal.figures().segments == 1);
        assert_eq!(events(&journal).len() as u64, 1001 - journal.oldest());
    }
}

#[test]
fn memory_is_bounded_while_the_disk_takes_nothing() {
    let disk = disk();
    let (journal, thread) = open(&disk);
    disk.fail(0, usize::MAX);
    let count = UNWRITTEN_EVENTS_MAX as u64 + 500;
    journal.append(vec![fires("first", 0)]);
    for time_ms in 1..count as i64 {
        journal.append(vec![fires("A", time_ms)]);
    }
    journal.flush();
    let figures = journal.figures();
    assert_eq!((figures.unwritten, figures.lost_total), (UNWRITTEN_EVENTS_MAX as u64, 500));
    assert_eq!((journal.oldest(), *journal.newest().borrow()), (501, count));
    assert_eq!(events_from(&journal, 0)[0].number, 501);
    // Lost to readers, but not as an open alert.
    assert_eq!(open_numbers(&journal), [1, count]);
    disk.heal();
    journal.flush();
    thread.stop();
    let (journal, _thread) = open(&disk.after_power_cut(Keeps::Nothing));
    assert_eq!(events_from(&journal, 0).len(), UNWRITTEN_EVENTS_MAX);
    assert_eq!((open_numbers(&journal), opens_from(&journal, 0)), (vec![1, count], vec![1, 500]));

    let (journal, thread) = open(&self::disk());
    thread.stop();
    for time_ms in 0..200 {
        journal.append(vec![long(fires("A", time_ms), 200_000)]);
    }
    assert!((70..90).contains(&journal.figures().unwritten), "{:?}", journal.figures());
}
