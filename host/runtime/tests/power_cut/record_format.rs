//! The default record format of a directory does not depend on the moment of a power cut.

use crate::sim_disk::SimDisk;
use crate::{INTERVAL, TestResult, seeds};
use std::sync::Arc;
use tidepool_disk::wal::{LogKind, Logs};
use tidepool_disk::{DataDir, RecordFormat, WalOptions};

const DATA_DIR: &str = "/data";

/// First bytes of records, with the numbers of upstream and of the engine's `wal`.
const SERIES: &[u8] = &[1, 0];
const SAMPLES: &[u8] = &[2, 0];
const COLUMNS: &[u8] = &[201, 0];

/// One run of a store: chooses the format, replays, writes.
fn life(disk: &SimDisk, records: &[&[u8]]) -> TestResult<RecordFormat> {
    let data = DataDir::open_on(Arc::new(disk.clone()), DATA_DIR)?;
    let (format, _) = data.settle_record_format(None)?;
    let mut logs = Logs::open(&data, WalOptions { sync: INTERVAL, ..WalOptions::default() })?;
    while logs.replay_batch(1 << 20)?.is_some() {}
    if !records.is_empty() {
        logs.get(LogKind::InOrder)?.append(records)?;
        logs.sync()?;
    }
    Ok(format)
}

/// Truncates the log completely, as a cut of all its samples does.
fn truncate(disk: &SimDisk) -> TestResult {
    let data = DataDir::open_on(Arc::new(disk.clone()), DATA_DIR)?;
    let mut logs = Logs::open(&data, WalOptions { sync: INTERVAL, ..WalOptions::default() })?;
    while logs.replay_batch(1 << 20)?.is_some() {}
    let wal = logs.get(LogKind::InOrder)?;
    wal.append(&[SERIES])?;
    let last = wal.cut_segment()?;
    wal.append(&[SERIES])?;
    let mut checkpoint = wal.checkpoint(last)?;
    checkpoint.append(&[SERIES])?;
    checkpoint.commit()?;
    Ok(())
}

/// Checks that runs after a cut at every change of `work` choose this format.
fn assert_chosen_after_cuts(
    disk: &SimDisk,
    expected: RecordFormat,
    work: impl FnOnce(&SimDisk) -> TestResult,
) -> TestResult {
    disk.record();
    work(disk)?;
    let cut_points = disk.take_cut_points();
    assert!(cut_points.len() > 3, "{} changes", cut_points.len());
    for (at, cut_point) in cut_points.iter().enumerate() {
        for seed in seeds(20) {
            let about = format!("cut {at}, during {}, seed {seed}", cut_point.call);
            let after = cut_point.disk.after_power_cut(seed);
            assert_eq!(life(&after, &[])?, expected, "{about}");
            let once_more = after.after_power_cut(seed);
            assert_eq!(life(&once_more, &[])?, expected, "{about}, and once more");
        }
    }
    Ok(())
}

#[test]
fn a_new_directory_gets_columns_and_keeps_them() -> TestResult {
    let disk = SimDisk::new(1);
    assert_chosen_after_cuts(&disk, RecordFormat::Columns, |disk| {
        assert_eq!(life(disk, &[SERIES])?, RecordFormat::Columns);
        assert_eq!(life(disk, &[SERIES, COLUMNS])?, RecordFormat::Columns);
        truncate(disk)?;
        assert_eq!(life(disk, &[])?, RecordFormat::Columns);
        Ok(())
    })
}

/// Once the log had Prometheus' records, the format stays, even when blocks hold all samples.
#[test]
fn a_directory_that_was_prometheus_gets_its_records() -> TestResult {
    let disk = SimDisk::new(2);
    assert_eq!(life(&disk, &[SERIES, COLUMNS, SAMPLES])?, RecordFormat::Columns);
    assert_eq!(life(&disk, &[SERIES, SAMPLES])?, RecordFormat::Columns);
    assert_chosen_after_cuts(&disk, RecordFormat::Prometheus, |disk| {
        assert_eq!(life(disk, &[SERIES])?, RecordFormat::Prometheus);
        truncate(disk)?;
        assert_eq!(life(disk, &[])?, RecordFormat::Prometheus);
        Ok(())
    })
}
