//! The disk fails at a call, or runs full, and the process continues: refusals are errors, and
//! acknowledged data is there, at once and in later runs.

use crate::model::Promise;
use crate::run::Run;
use crate::sim_disk::{Calls, Fault, SimDisk};
use crate::{INTERVAL, TestResult, runtime, seeds};
use std::io::ErrorKind;
use tidepool_disk::SyncPolicy;
use tidepool_runtime::Runtime;
use tidepool_tests::series::Random;

/// Steps of a run in which every call fails once.
const STEPS: usize = 30;

/// Steps after the disk works again.
const STEPS_AFTER: usize = 4;

/// Maximum number of errors in a message.
const ERRORS_TOLD_MAX: usize = 8;

/// Makes a run for each of its calls, with faults at that call, for one call or a few.
fn fail_everywhere(calls: Calls, kind: ErrorKind, policy: SyncPolicy, seed: u64) -> TestResult {
    let runtime = runtime()?;
    let mut run = Run::start(&runtime, SimDisk::new(seed), policy, Default::default(), seed)?;
    run.steps(STEPS)?;
    let count = run.disk.calls(calls);
    drop(run);
    // Reads are many, and few of them differ.
    let stride = if calls == Calls::Reads { 7 } else { 1 };
    for after in (0..count).step_by(stride) {
        let times = Random::new(seed, after as u64).pick(&[1, 1, 2, 3, 10]);
        let fault = Fault { calls, after, times, kind };
        fail_once(&runtime, fault, policy, seed)
            .map_err(|e| format!("seed {seed:#x}, {policy:?}, {fault:?} of {count}: {e}"))?;
    }
    Ok(())
}

fn fail_once(runtime: &Runtime, fault: Fault, policy: SyncPolicy, seed: u64) -> TestResult {
    let disk = SimDisk::new(seed);
    disk.set_fault(Some(fault));
    let mut run = Run::start_in_spite_of_errors(runtime, disk, policy, seed)?;
    run.steps(STEPS)?;
    run.disk.set_fault(None);
    run.expects_errors = false;
    holds_through_all(runtime, run, policy, seed)
}

/// Checks that acknowledged data is there: now, after a cut, and after a restart.
fn holds_through_all(
    runtime: &Runtime,
    mut run: Run<'_>,
    policy: SyncPolicy,
    seed: u64,
) -> TestResult {
    let told = |what: &str, run: &Run<'_>, e: Box<dyn std::error::Error>| {
        let last = run.errors.len().saturating_sub(ERRORS_TOLD_MAX);
        format!("{what}: {e}; the last errors were {:#?}", &run.errors[last..])
    };
    run.check(Promise::Acknowledged).map_err(|e| told("in the same life", &run, e))?;
    let cut = run.disk.after_power_cut(seed);
    let past = run.model.clone().after_power_cut();
    let mut after = Run::start(runtime, cut, policy, past, seed)?;
    after.check(Promise::Synced).map_err(|e| told("after a cut", &run, e))?;
    drop(after);
    run.expects_errors = true;
    // An earlier failed sync may be reported once more.
    run.sync()?;
    run.expects_errors = false;
    run.steps(STEPS_AFTER)?;
    run.sync()?;
    let cut = run.disk.after_power_cut(seed + 1);
    let past = run.model.clone().after_power_cut();
    let mut after = Run::start(runtime, cut, policy, past, seed)?;
    after.check(Promise::Synced).map_err(|e| told("after a sync and a cut", &run, e))?;
    drop(after);
    run.restart()?;
    run.check(Promise::Acknowledged).map_err(|e| told("after a restart", &run, e))?;
    Ok(())
}

#[test]
fn a_failing_write_or_sync_loses_nothing_acknowledged() -> TestResult {
    for seed in seeds(1) {
        fail_everywhere(Calls::Changes, ErrorKind::Other, SyncPolicy::Always, seed)?;
        fail_everywhere(Calls::Changes, ErrorKind::Other, INTERVAL, seed + 1000)?;
    }
    Ok(())
}

#[test]
fn a_disk_that_is_full_for_a_moment_loses_nothing_acknowledged() -> TestResult {
    seeds(1).try_for_each(|seed| {
        fail_everywhere(Calls::Changes, ErrorKind::StorageFull, SyncPolicy::Always, seed)
    })
}

#[test]
fn a_failing_read_loses_nothing_acknowledged() -> TestResult {
    seeds(1).try_for_each(|seed| {
        fail_everywhere(Calls::Reads, ErrorKind::Other, SyncPolicy::Always, seed)
    })
}

/// The disk runs full at some size, then space is freed.
#[test]
fn a_full_disk_loses_nothing_acknowledged() -> TestResult {
    let runtime = runtime()?;
    for seed in seeds(4) {
        for policy in [SyncPolicy::Always, INTERVAL] {
            for capacity_bytes in (1..12).map(|part| part * 10_000) {
                let disk = SimDisk::new(seed);
                let mut run = Run::start(&runtime, disk, policy, Default::default(), seed)?;
                run.disk.set_capacity(Some(run.disk.used_bytes() + capacity_bytes));
                run.expects_errors = true;
                run.steps(4 * STEPS)?;
                run.disk.set_capacity(None);
                run.expects_errors = false;
                holds_through_all(&runtime, run, policy, seed).map_err(|e| {
                    format!("seed {seed:#x}, {policy:?}, {capacity_bytes} bytes: {e}")
                })?;
            }
        }
    }
    Ok(())
}
