//! The signs in a directory and the format that follows from them, with a crash at every call.

use super::FormatReason::*;
use super::RecordFormat::*;
use super::*;
use crate::testing::{Fault, FaultyDisk};
use crate::wal::{Compression, LogKind, Logs, WalOptions};
use std::fs;
use std::path::Path;
use std::sync::Arc;

type TestResult = std::result::Result<(), Box<dyn std::error::Error>>;

const SERIES: &[u8] = &[1, 7];
const SAMPLES: &[u8] = &[SAMPLES_RECORD, 7];
const COLUMNS: &[u8] = &[COLUMNS_RECORDS[1], 7];
const HISTOGRAMS: &[u8] = &[9, 7];
const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// Writes one segment for each list of records, as separate runs of a program would.
fn with_log(root: &Path, lives: &[&[&[u8]]]) -> TestResult {
    for life in lives {
        let data = DataDir::open(root)?;
        // So that records take the bytes that they have.
        let options = WalOptions { compression: Compression::None, ..WalOptions::default() };
        let mut logs = Logs::open(&data, options)?;
        while logs.replay_batch(1 << 20)?.is_some() {}
        logs.get(LogKind::InOrder)?.append(life)?;
        logs.sync()?;
    }
    Ok(())
}

fn settle(root: &Path, wanted: Option<RecordFormat>) -> Result<(RecordFormat, FormatReason)> {
    DataDir::open(root)?.settle_record_format(wanted)
}

fn is_marked(root: &Path) -> bool {
    root.join(MARK).exists()
}

/// For example a home directory that was given by mistake.
#[test]
fn a_new_directory_with_files_of_others_is_noticed() -> TestResult {
    let root = tempfile::tempdir()?;
    let data = DataDir::open(root.path())?;
    for name in ["lost+found", "starting", "plugin-cache", "queries.active", ".snapshot"] {
        fs::write(root.path().join(name), "")?;
    }
    assert_eq!(data.foreign_name()?, None);
    fs::create_dir(root.path().join("Documents"))?;
    assert_eq!(data.foreign_name()?.as_deref(), Some("Documents"));
    Ok(())
}

/// The names in a directory (directories end in a slash), and the expected outcome.
struct State {
    what: &'static str,
    names: &'static [&'static str],
    log: &'static [&'static [&'static [u8]]],
    expected: (RecordFormat, FormatReason),
    /// Whether the mark exists afterwards.
    marked: bool,
}

#[test]
fn the_directory_says_which_format_it_gets() -> TestResult {
    #[rustfmt::skip]
    let states = [
        State { what: "nothing", names: &[], log: &[], expected: (Columns, New), marked: true },
        State { what: "no data", names: &["lost+found/", "starting", "plugin-cache/", "queries.active", "note"], log: &[], expected: (Columns, New), marked: true },
        State { what: "the mark alone", names: &[MARK], log: &[], expected: (Columns, Marked), marked: true },
        State { what: "a mark, blocks", names: &[MARK, "01ARZ3NDEKTSV4RRFFQ69G5FAV/", "set-aside/"], log: &[&[SERIES]], expected: (Columns, Marked), marked: true },
        State { what: "own columns", names: &[MARK], log: &[&[SERIES, COLUMNS]], expected: (Columns, Log), marked: true },
        State { what: "a lost mark", names: &[], log: &[&[SERIES, COLUMNS]], expected: (Columns, Log), marked: true },
        State { what: "columns of an earlier version", names: &[], log: &[&[SERIES, &[COLUMNS_RECORDS[0], 7]]], expected: (Columns, Log), marked: true },
        State { what: "a lost mark, histograms", names: &[], log: &[&[SERIES, HISTOGRAMS]], expected: (Prometheus, NotMade), marked: false },
        State { what: "an old directory", names: &["head_snapshot"], log: &[&[SERIES, SAMPLES]], expected: (Prometheus, Log), marked: false },
        State { what: "an old directory with a checkpoint alone", names: &["wal/checkpoint.00000003/"], log: &[], expected: (Prometheus, NotMade), marked: false },
        State { what: "a segment without records", names: &["wal/00000000"], log: &[], expected: (Prometheus, NotMade), marked: false },
        State { what: "blocks", names: &["01ARZ3NDEKTSV4RRFFQ69G5FAV/"], log: &[], expected: (Prometheus, NotMade), marked: false },
        State { what: "an out-of-order log", names: &["wbl/"], log: &[], expected: (Prometheus, NotMade), marked: false },
        State { what: "a quarantined log", names: &["set-aside/"], log: &[], expected: (Prometheus, NotMade), marked: false },
        State { what: "Prometheus, just started", names: &["chunks_head/", "wal/00000000"], log: &[], expected: (Prometheus, PrometheusWorked), marked: false },
        State { what: "Prometheus after columns", names: &[MARK, "chunks_head/"], log: &[&[SERIES, COLUMNS]], expected: (Prometheus, PrometheusWorked), marked: false },
        State { what: "Prometheus after columns, without its caches", names: &[MARK], log: &[&[SERIES, COLUMNS], &[SAMPLES]], expected: (Prometheus, Log), marked: false },
        State { what: "start timestamps", names: &[MARK], log: &[&[SERIES, COLUMNS], &[&[SAMPLES_V2_RECORD, 7]]], expected: (Prometheus, Log), marked: false },
        State { what: "a snapshot of Prometheus' head", names: &[MARK, "chunk_snapshot.000007.0000065536/"], log: &[&[SERIES]], expected: (Prometheus, PrometheusWorked), marked: false },
        State { what: "columns after Prometheus", names: &[], log: &[&[SERIES, SAMPLES], &[SERIES, COLUMNS]], expected: (Columns, Log), marked: true },
        State { what: "a segment that a checkpoint has replaced", names: &["wal/checkpoint.00000001/"], log: &[&[SERIES, COLUMNS], &[SERIES]], expected: (Prometheus, NotMade), marked: false },
        State { what: "lives without floats", names: &[MARK], log: &[&[SERIES, SAMPLES], &[SERIES], &[HISTOGRAMS]], expected: (Prometheus, Log), marked: false },
    ];
    for State { what, names, log, expected, marked } in states {
        let root = tempfile::tempdir()?;
        with_log(root.path(), log)?;
        for name in names {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap_or(root.path()))?;
            match name.ends_with('/') {
                true => fs::create_dir_all(path)?,
                false => fs::write(path, "")?,
            }
        }
        assert_eq!(settle(root.path(), None)?, expected, "{what}");
        assert_eq!(is_marked(root.path()), marked, "{what}");
        // What it chose holds once the caches are gone, unless nothing came into the log meanwhile:
        // then it is columns that the log has still.
        let has_columns = log.last().is_some_and(|life| life.contains(&COLUMNS));
        let next = if has_columns { Columns } else { expected.0 };
        for cache in names.iter().filter(|name| name.starts_with("chunk")) {
            fs::remove_dir_all(root.path().join(cache))?;
        }
        assert_eq!(settle(root.path(), None)?.0, next, "{what}, the next start");
    }
    Ok(())
}

#[test]
fn a_flag_prevails_and_prometheus_ends_the_mark() -> TestResult {
    let root = tempfile::tempdir()?;
    assert_eq!(settle(root.path(), Some(Columns))?, (Columns, Flag));
    assert!(!is_marked(root.path()));
    assert_eq!(settle(root.path(), None)?, (Columns, New));
    assert_eq!(settle(root.path(), Some(Prometheus))?, (Prometheus, Flag));
    assert!(!is_marked(root.path()));
    with_log(root.path(), &[&[SERIES, SAMPLES]])?;
    assert_eq!(settle(root.path(), None)?, (Prometheus, Log));
    assert_eq!(settle(root.path(), Some(Columns))?, (Columns, Flag));
    Ok(())
}

/// Damage, and segments without a whole record, do not hide earlier records.
#[test]
fn damage_is_passed_over() -> TestResult {
    let root = tempfile::tempdir()?;
    with_log(root.path(), &[&[SERIES, COLUMNS], &[SERIES, SAMPLES]])?;
    let path = root.path().join("wal/00000001");
    let mut bytes = fs::read(&path)?;
    bytes[8] ^= 1;
    fs::write(&path, &bytes)?;
    fs::write(root.path().join("wal/00000002"), b"no record begins like this")?;
    assert_eq!(settle(root.path(), None)?, (Prometheus, Log));
    Ok(())
}

/// The number of bytes read from the log is limited, however long it is.
#[test]
fn the_look_is_bounded() -> TestResult {
    let root = tempfile::tempdir()?;
    with_log(root.path(), &[&[SERIES, COLUMNS], &[SERIES], &[&[1; 900_000]]])?;
    let data = DataDir::open(root.path())?;
    let is_float = |record: &[u8]| float_format(record).is_some();
    assert_eq!(newest_record(&data, 64 << 10, is_float)?, None);
    assert_eq!(newest_record(&data, 1 << 20, is_float)?.as_deref(), Some(COLUMNS));
    Ok(())
}

/// After a crash while the mark is made or removed, the next start chooses the same format, or
/// Prometheus' records.
#[test]
fn a_crash_at_any_call_is_on_the_safe_side() -> TestResult {
    for (log, is_marked_before, expected) in [
        (&[][..], false, Columns),
        (&[&[SERIES, COLUMNS][..]][..], false, Columns),
        (&[&[SERIES, SAMPLES][..]][..], true, Prometheus),
    ] {
        for after in 0.. {
            let root = tempfile::tempdir()?;
            with_log(root.path(), log)?;
            if is_marked_before {
                fs::write(root.path().join(MARK), MARK_TEXT)?;
            }
            let disk = FaultyDisk::default();
            let data = DataDir::open_on(Arc::new(disk.clone()), root.path())?;
            disk.take_log();
            disk.set(Fault::crash(after));
            let (chosen, reason) = data.settle_record_format(None)?;
            // Without a mark, a new directory must not get columns that nothing tells of.
            assert!(chosen == expected || reason == NotMarked, "after {after} calls");
            drop(data);
            let (next, _) = settle(root.path(), None)?;
            assert_eq!(next, expected, "after {after} calls");
            assert_eq!(is_marked(root.path()), expected == Columns, "after {after} calls");
            if after >= disk.take_log().len() {
                assert!(after >= 2, "{after} calls are too few");
                break;
            }
        }
    }
    Ok(())
}

/// No block, no program and no sweep removes the mark.
#[test]
fn the_mark_stays() -> TestResult {
    let root = tempfile::tempdir()?;
    settle(root.path(), None)?;
    let data = DataDir::open(root.path())?;
    data.remove_if_empty()?;
    assert!(crate::BlockDirs::open(&data).list()?.is_empty());
    assert!(is_marked(root.path()));
    let text = fs::read_to_string(root.path().join(MARK))?;
    assert!(text.contains("tidepool tsdb compact --head DIR"), "{text}");
    assert!(!is_data(MARK) && is_data(ULID));
    Ok(())
}
