//! Eight hours of 10k series: bytes written to disk for them, and cost of reads.

use super::super::contender::Contender;
use super::super::load::Load;
use super::super::outcome::Outcome;
use super::super::trial::{Answer, ReadCost, Trial, WriteCost};
use super::super::{BenchError, Context};
use super::megabytes;
use tidepool_tests::process::{READY_TIMEOUT, Server};
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Dataset;
use tidepool_tests::tidepool::PROMETHEUS_RECORDS;

const HOUR_MS: i64 = 3_600_000;
const HOURS: i64 = 8;
const INTERVAL_MS: i64 = 15_000;
/// Number of repetitions of each read; the mean counts.
const READS: u32 = 3;
/// Rows for a log that Prometheus reads as well.
const PROMETHEUS_ROWS: &str = "8h-prometheus-records";

/// Measures writes by 2.0, or by 1.0 for servers that accept nothing else.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    for version in [Version::V2, Version::V1] {
        let mut takers = context.servers.iter().copied().filter(|contender| match version {
            Version::V2 => contender.takes(Version::V2),
            Version::V1 => !contender.takes(Version::V2),
        });
        let Some(first) = takers.next() else { continue };
        let shape = context.shape(10_000, (HOURS * HOUR_MS / INTERVAL_MS) as usize, INTERVAL_MS);
        let load = Load::encode(&Dataset::generate(shape), version, 2_000, 2);
        for contender in [first].into_iter().chain(takers) {
            let trial = Trial::start(context, contender)?;
            let write = trial.write(&load)?;
            outcome.add("8h-memory", contender, megabytes(write.peak_memory_bytes));
            add_write("8h", contender, &write, &mut outcome);
            // The other servers' logs have only one kind of records.
            if contender == Contender::Tidepool {
                prometheus_records(context, &load, &mut outcome)?;
            } else {
                add_write(PROMETHEUS_ROWS, contender, &write, &mut outcome);
            }
            if contender.is_like_prometheus() {
                reads(&trial, load.time_range_ms, &mut outcome)?;
            }
            trial.check(&load)?;
            trial.server.terminate()?;
        }
    }
    Ok(outcome)
}

/// Adds the cost of writing everything to the rows of this name.
fn add_write(rows: &str, contender: Contender, write: &WriteCost, outcome: &mut Outcome) {
    let WriteCost { cost, samples, .. } = write;
    let (cpu, wall) = (cost.cpu_s_per_million(*samples), cost.wall_s_per_million(*samples));
    outcome.add_timed(&format!("{rows}-cpu"), contender, cpu, wall);
    let written = write.per_sample(write.written_bytes);
    outcome.add(&format!("{rows}-written"), contender, written);
}

/// Measures the log in a directory of Prometheus'; a new directory gets column records.
fn prometheus_records(
    context: &Context,
    load: &Load,
    outcome: &mut Outcome,
) -> Result<(), BenchError> {
    let flags = [PROMETHEUS_RECORDS.to_owned()];
    let contender = Contender::Tidepool;
    let (trial, _) = Trial::start_on(context, contender, &flags, |_| Ok(()), READY_TIMEOUT)?;
    let write = trial.write(load)?;
    add_write(PROMETHEUS_ROWS, contender, &write, outcome);
    let (trial, _) = trial.restart(Server::kill)?;
    trial.check(load)?;
    trial.server.terminate()?;
    Ok(())
}

fn reads(
    trial: &Trial,
    (start_ms, end_ms): (i64, i64),
    outcome: &mut Outcome,
) -> Result<(), BenchError> {
    // The read with the largest memory comes last: memory that a process once had may stay resident
    // and hide the need of the next read.
    for (answer, kind) in Answer::ALL.into_iter().zip(["streamed", "samples"]) {
        for (range, start_ms) in [("2h", start_ms.max(end_ms - 2 * HOUR_MS)), ("8h", start_ms)] {
            let ReadCost { cost, extra_memory_bytes, .. } =
                trial.read(answer, &everything(start_ms, end_ms), READS)?;
            let row = format!("{kind}-{range}");
            let (cpu, wall) = (cost.cpu.as_secs_f64(), cost.wall.as_secs_f64());
            outcome.add_timed(&format!("{row}-cpu"), trial.contender, cpu, wall);
            let memory = megabytes(extra_memory_bytes);
            outcome.add(&format!("{row}-memory"), trial.contender, memory);
        }
    }
    Ok(())
}
