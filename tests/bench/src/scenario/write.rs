//! Remote write by both versions of the protocol: a small fleet, a large one, many senders.

use super::super::load::Load;
use super::super::outcome::Outcome;
use super::super::trial::{Answer, Trial, WriteCost};
use super::super::{BenchError, Context};
use super::megabytes;
use tidepool_tests::proto::prometheus::Query;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::remote_read::{matcher, query};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Dataset, Shape};

const INTERVAL_MS: i64 = 15_000;
const ROWS_PER_REQUEST: usize = 2_000;
const CONNECTIONS: usize = 2;
const SENDERS: usize = 180;
const SENDERS_QUICK: usize = 6;
const SERIES_PER_SENDER: usize = 1_000;
const SENDER_SCRAPES: usize = 20;
const NARROW_READS: usize = 1_000;

/// Measures 10k series × 360.
pub fn ten_thousand(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    for version in Version::ALL {
        let data = Dataset::generate(context.shape(10_000, 360, INTERVAL_MS));
        let load = Load::encode(&data, version, ROWS_PER_REQUEST, CONNECTIONS);
        each(context, "10k", &load, &mut outcome, |_, _| Ok(()))?;
    }
    Ok(outcome)
}

/// Measures 100k series × 60, and reads of ten of these series.
pub fn hundred_thousand(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    for version in Version::ALL {
        let data = Dataset::generate(context.shape(100_000, 60, INTERVAL_MS));
        let load = Load::encode(&data, version, ROWS_PER_REQUEST, CONNECTIONS);
        each(context, "100k", &load, &mut outcome, |trial, outcome| {
            if version == Version::V2 { narrow(context, trial, &data, outcome) } else { Ok(()) }
        })?;
    }
    Ok(outcome)
}

/// Measures 180 connections with 1000 series each.
pub fn senders(context: &Context) -> Result<Outcome, BenchError> {
    let senders = context.sized(SENDERS, SENDERS_QUICK);
    let mut outcome = Outcome::default();
    for version in Version::ALL {
        let shape = context.shape(senders * SERIES_PER_SENDER, SENDER_SCRAPES, INTERVAL_MS);
        let data = Dataset::generate(shape);
        let load = Load::encode(&data, version, shape.series / senders, senders);
        each(context, "senders", &load, &mut outcome, |_, _| Ok(()))?;
    }
    Ok(outcome)
}

/// Sends a load to every server that accepts it: CPU and memory, then further measurements.
pub fn each(
    context: &Context,
    rows: &str,
    load: &Load,
    outcome: &mut Outcome,
    mut after: impl FnMut(&Trial, &mut Outcome) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let rows = format!("{rows}-{}", load.version);
    for &contender in context.servers.iter().filter(|contender| contender.takes(load.version)) {
        let trial = Trial::start(context, contender)?;
        let WriteCost { samples, cost, peak_memory_bytes, .. } = trial.write(load)?;
        let (cpu, wall) = (cost.cpu_s_per_million(samples), cost.wall_s_per_million(samples));
        outcome.add_timed(&format!("{rows}-cpu"), contender, cpu, wall);
        outcome.add(&format!("{rows}-memory"), contender, megabytes(peak_memory_bytes));
        trial.check(load)?;
        after(&trial, outcome)?;
        trial.server.terminate()?;
    }
    Ok(())
}

/// Measures reads of the ten buckets of one pod's answers.
fn narrow(
    context: &Context,
    trial: &Trial,
    data: &Dataset,
    outcome: &mut Outcome,
) -> Result<(), BenchError> {
    if !trial.contender.is_like_prometheus() {
        return Ok(());
    }
    let times = context.sized(NARROW_READS, 5) as u32;
    for (answer, row) in Answer::ALL.into_iter().zip(["streamed", "samples"]) {
        let cost = trial.read(answer, &one_pod(data), times)?.cost;
        let (cpu, wall) = (cost.cpu.as_secs_f64() * 1e3, cost.wall.as_secs_f64() * 1e3);
        outcome.add_timed(&format!("{row}-narrow-cpu"), trial.contender, cpu, wall);
    }
    Ok(())
}

/// Selects all samples of ten series that belong together, from the middle of the fleet.
pub fn one_pod(data: &Dataset) -> Query {
    let metric = "http_request_duration_seconds_bucket";
    let middle = data.series.iter().skip(data.series.len() / 2);
    let mut buckets = middle.chain(&data.series).map(|series| &series.labels);
    let bucket = buckets.find(|labels| labels.value("__name__") == metric);
    let pod = bucket.map_or("", |labels| labels.value("pod"));
    let Shape { start_ms, scrapes, interval_ms, .. } = data.shape;
    let matchers = vec![
        matcher(Type::Eq, "__name__", metric),
        matcher(Type::Eq, "pod", pod),
        matcher(Type::Eq, "code", "200"),
    ];
    query(start_ms, start_ms + scrapes as i64 * interval_ms, matchers)
}
