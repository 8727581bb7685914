//! Bits flip in files that were written long ago: the store starts, serves the undamaged data,
//! returns no data that was never written, and continues.

use crate::model::{Model, Promise, StoredSamples};
use crate::node::DATA_DIR;
use crate::run::Run;
use crate::sim_disk::SimDisk;
use crate::{INTERVAL, TestResult, runtime, seeds};
use std::path::Path;
use tidepool_disk::fs::remove_tree;
use tidepool_runtime::Runtime;
use tidepool_tests::series::Random;

/// Steps of a run whose files are damaged.
const STEPS: usize = 150;

/// Times that the files of one run are damaged, each time from the same state.
const DAMAGES: u64 = 25;

/// Maximum number of bits that flip at a time.
const BITS_MAX: u64 = 4;

const STEPS_AFTER: usize = 8;

/// Length of a block's name.
const ULID_LEN: usize = 26;

#[derive(Clone, Copy, PartialEq, Eq)]
enum DataArea {
    Logs,
    Blocks,
}

/// First component of a path below the data directory.
fn top(path: &Path) -> Option<&str> {
    path.strip_prefix(DATA_DIR).ok()?.iter().next()?.to_str()
}

impl DataArea {
    fn holds(self, path: &Path) -> bool {
        let is_log = |name| matches!(name, "wal" | "wbl");
        match self {
            DataArea::Logs => top(path).is_some_and(is_log),
            DataArea::Blocks => top(path).is_some_and(|name| name.len() == ULID_LEN),
        }
    }
}

/// Data that a store serves without its logs and without some blocks: with these damaged, it must
/// serve at least as much.
fn left_without(
    runtime: &Runtime,
    disk: &SimDisk,
    damaged: &[String],
) -> TestResult<StoredSamples> {
    let disk = disk.fork();
    for gone in damaged.iter().map(String::as_str).chain(["wal", "wbl"]) {
        remove_tree(&disk, &Path::new(DATA_DIR).join(gone))?;
    }
    Run::start(runtime, disk, INTERVAL, Model::default(), 0)?.read_by_series()?.whole()
}

fn damage(place: DataArea, seed: u64) -> TestResult {
    let runtime = runtime()?;
    let disk = SimDisk::new(seed);
    let mut run = Run::start(&runtime, disk, INTERVAL, Model::default(), seed)?;
    run.steps(STEPS)?;
    run.restart()?;
    run.check(Promise::Acknowledged)?;
    let (disk, model) = (run.disk.clone(), run.model.clone());
    drop(run);
    for number in 0..DAMAGES {
        let disk = disk.fork();
        let mut random = Random::new(seed, number);
        let bits = 1 + random.below(BITS_MAX);
        let meant = |path: &Path| place.holds(path);
        let flips = (0..bits).filter_map(|_| disk.flip_bit(random.next_u64(), meant));
        let (paths, about): (Vec<_>, Vec<_>) = flips.unzip();
        if paths.is_empty() {
            return Err("there is nothing to damage".into());
        }
        let damaged: Vec<String> =
            paths.iter().filter_map(|path| top(path).map(str::to_owned)).collect();
        let left = left_without(&runtime, &disk, &damaged)?;
        let damaged = if place == DataArea::Blocks { damaged } else { Vec::new() };
        go_on(&runtime, disk, &model, &left, &damaged, seed)
            .map_err(|e| format!("seed {seed:#x}, {about:?}: {e}"))?;
    }
    Ok(())
}

fn go_on(
    runtime: &Runtime,
    disk: SimDisk,
    model: &Model,
    left: &StoredSamples,
    damaged: &[String],
    seed: u64,
) -> TestResult {
    let mut run = Run::start(runtime, disk, INTERVAL, model.clone().after_damage(), seed)?;
    let read = run.read_by_series()?;
    run.model.check_nothing_invented(&read.found)?;
    for (series, why) in &read.errors {
        // Its samples in other blocks are to be had by their times.
        let is_concerned = damaged.iter().any(|name| why.contains(name));
        if !is_concerned {
            return Err(format!("{series} cannot be read: {why}").into());
        }
    }
    for (series, samples) in left.iter().filter(|(series, _)| !read.errors.contains_key(*series)) {
        let found = read.found.get(series);
        let is_gone = |time: &&i64| !found.is_some_and(|found| found.contains_key(time));
        if let Some(time) = samples.keys().find(is_gone) {
            return Err(format!("{series} at {time} is not damaged, and missing").into());
        }
    }
    // What comes now is as safe as ever; deletions say that they cannot do all.
    run.expects_errors = true;
    run.steps(STEPS_AFTER)?;
    run.restart()?;
    let after = run.read_by_series()?;
    run.model.check_what_is_promised(&after.found, |series| after.errors.contains_key(series))?;
    Ok(())
}

#[test]
fn damaged_logs_cost_only_themselves() -> TestResult {
    seeds(2).try_for_each(|seed| damage(DataArea::Logs, seed))
}

#[test]
fn damaged_blocks_cost_only_themselves() -> TestResult {
    seeds(2).try_for_each(|seed| damage(DataArea::Blocks, seed))
}
