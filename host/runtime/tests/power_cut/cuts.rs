//! A power cut at every change that a run makes to the disk, and a second one after it.

use crate::model::{Model, Promise};
use crate::run::Run;
use crate::sim_disk::{CutPoint, SimDisk};
use crate::{BATCH, INTERVAL, TestResult, runtime, seeds};
use tidepool_disk::SyncPolicy;
use tidepool_runtime::Runtime;
use tidepool_tests::series::Random;

/// Steps of a run in which every change is a cut point.
const STEPS: usize = 100;

/// Steps of the run after a cut.
const STEPS_AFTER: usize = 4;

fn cut_everywhere(policy: SyncPolicy, seed: u64) -> TestResult {
    let runtime = runtime()?;
    let disk = SimDisk::new(seed);
    disk.record();
    let mut run = Run::start(&runtime, disk, policy, Model::default(), seed)?;
    run.steps(STEPS)?;
    run.check(Promise::Acknowledged)?;
    let (cut_points, model) = (run.disk.take_cut_points(), run.model.clone());
    drop(run);
    let count = cut_points.len();
    for (at, cut_point) in cut_points.into_iter().enumerate() {
        let seed = seed << 32 | at as u64;
        let about =
            format!("seed {seed:#x}, {policy:?}: cut {at} of {count}, during {}", cut_point.call);
        let past = model.first(cut_point.mark);
        after_a_cut(&runtime, policy, cut_point, past, seed)
            .map_err(|e| format!("{about}: {e}"))?;
    }
    Ok(())
}

fn after_a_cut(
    runtime: &Runtime,
    policy: SyncPolicy,
    cut_point: CutPoint,
    model: Model,
    seed: u64,
) -> TestResult {
    let mut random = Random::new(seed, 0xaf);
    let mut disk = cut_point.disk.after_power_cut(random.next_u64());
    let model = model.after_power_cut();
    // Every other time the power goes again while the store starts.
    if random.one_in(2) {
        disk.record();
        drop(Run::start(runtime, disk.clone(), policy, model.clone(), seed)?);
        let cut_points = disk.take_cut_points();
        let cut_point = &cut_points[random.below(cut_points.len() as u64) as usize];
        disk = cut_point.disk.after_power_cut(random.next_u64());
    }
    let mut run = Run::start(runtime, disk, policy, model, seed)?;
    run.check(Promise::Synced).map_err(|e| format!("after the cut: {e}"))?;
    run.send_unanswered()?;
    run.steps(STEPS_AFTER)?;
    run.check(Promise::Acknowledged).map_err(|e| format!("in the life after: {e}"))?;

    let disk = run.disk.after_power_cut(random.next_u64());
    let model = run.model.clone().after_power_cut();
    drop(run);
    let mut run = Run::start(runtime, disk, policy, model, seed + 1)?;
    run.check(Promise::Synced).map_err(|e| format!("after another cut: {e}"))?;
    run.steps(STEPS_AFTER)?;
    run.restart()?;
    run.check(Promise::Acknowledged).map_err(|e| format!("after a clean restart: {e}"))?;
    Ok(())
}

#[test]
fn a_cut_costs_nothing_acknowledged_with_sync_always() -> TestResult {
    seeds(1).try_for_each(|seed| cut_everywhere(SyncPolicy::Always, seed))
}

#[test]
fn a_cut_costs_nothing_synced_with_sync_interval() -> TestResult {
    seeds(1).try_for_each(|seed| cut_everywhere(INTERVAL, seed))
}

#[test]
fn a_cut_costs_nothing_synced_with_sync_batch() -> TestResult {
    seeds(1).try_for_each(|seed| cut_everywhere(BATCH, seed))
}
