//! Starts on a log that upstream's packages wrote, as after kill -9.

use super::super::outcome::Outcome;
use super::super::trial::{StartCost, Trial};
use super::super::{BenchError, Context, command_cost};
use super::megabytes;
use std::time::Duration;
use tidepool_tests::made;
use tidepool_tests::series::Shape;
use tidepool_tests::wait;

const SERIES: usize = 10_000;
const SCRAPES: usize = 10_000;
const INTERVAL_MS: i64 = 15_000;
const BILLION_SCRAPES: usize = 100_000;
/// Less than two weeks in total, so that no sample is old enough to be dropped.
const BILLION_INTERVAL_MS: i64 = 10_000;
const READY_TIMEOUT: Duration = Duration::from_secs(1_800);
/// Timeout for a cut; Prometheus looks for one once a minute.
const CUT_TIMEOUT: Duration = Duration::from_secs(600);
/// Span of the head: one and a half blocks, and samples that are not cut yet.
const HEAD_SPAN_MAX_S: f64 = 4.0 * 3_600.0;

/// Measures 10k series × 10k samples.
pub fn hundred_million(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let shape = context.shape(SERIES, SCRAPES, INTERVAL_MS);
    each(context, &shape, |trial, start| {
        let (contender, millions) = (trial.contender, samples(&shape) as f64 / 1e6);
        let StartCost { cost, peak_memory_bytes } = start;
        outcome.add("replay-cpu", contender, cost.cpu.as_secs_f64() / millions);
        outcome.add("replay-ready", contender, cost.wall.as_secs_f64());
        outcome.add("replay-memory", contender, megabytes(peak_memory_bytes));
        wait::until("the cuts", CUT_TIMEOUT, || {
            let metric = |name| trial.server.metric(name);
            let oldest_s = metric("prometheus_tsdb_head_min_time_seconds")?;
            let newest_s = metric("prometheus_tsdb_head_max_time_seconds")?;
            (newest_s - oldest_s <= HEAD_SPAN_MAX_S).then_some(())
        })?;
        let after = trial.settle()?;
        outcome.add("replay-cut-cpu", contender, after.cpu.as_secs_f64() / millions);
        outcome.add("replay-cut-memory", contender, megabytes(after.peak_memory_bytes));
        Ok(())
    })?;
    Ok(outcome)
}

/// Measures 10k series × 100k samples.
pub fn billion(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let shape = context.shape(SERIES, BILLION_SCRAPES, BILLION_INTERVAL_MS);
    each(context, &shape, |trial, StartCost { cost, peak_memory_bytes }| {
        outcome.add("billion-cpu", trial.contender, cost.cpu.as_secs_f64());
        outcome.add("billion-ready", trial.contender, cost.wall.as_secs_f64());
        outcome.add("billion-memory", trial.contender, megabytes(peak_memory_bytes));
        Ok(())
    })?;
    Ok(outcome)
}

fn samples(shape: &Shape) -> u64 {
    (shape.series * shape.scrapes) as u64
}

/// Writes the log once, and starts every server that reads this format.
fn each(
    context: &Context,
    shape: &Shape,
    mut measure: impl FnMut(&Trial, StartCost) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let log = tempfile::tempdir_in(&context.directory)?;
    made::write_log(log.path(), shape)?;
    let bytes = tidepool_tests::data_dir::total_bytes(log.path());
    eprintln!("  {} samples in {:.0} MB of log", samples(shape), megabytes(bytes));
    for &contender in context.servers.iter().filter(|contender| contender.is_like_prometheus()) {
        let copy = |data_dir: &std::path::Path| command_cost::link_log(log.path(), data_dir);
        let (trial, start) = Trial::start_on(context, contender, &[], copy, READY_TIMEOUT)?;
        measure(&trial, start)?;
        let end_ms = shape.start_ms + shape.scrapes as i64 * shape.interval_ms;
        contender.check(&trial.server, (shape.start_ms, end_ms), samples(shape))?;
        trial.server.kill()?;
    }
    Ok(())
}
