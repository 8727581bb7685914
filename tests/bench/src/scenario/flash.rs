//! Five days of 1000 series, one day after the other: bytes written to disk for a sample while
//! blocks are cut and merged all the time, and bytes kept.

use super::super::load::Load;
use super::super::outcome::Outcome;
use super::super::trial::Trial;
use super::super::{BenchError, Context};
use tidepool_tests::clock::now_ms;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Dataset, Shape};

const DAYS: i64 = 5;
const DAY_MS: i64 = 24 * 3_600_000;
const SERIES: usize = 1_000;
const INTERVAL_MS: i64 = 15_000;
/// Interval of a smoke test; blocks are cut nevertheless.
const INTERVAL_QUICK_MS: i64 = 1_800_000;

/// Measures writes by 2.0, in requests of 2000 samples.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let interval_ms = context.sized(INTERVAL_MS as usize, INTERVAL_QUICK_MS as usize) as i64;
    let scrapes = (DAY_MS / interval_ms) as usize;
    let start_ms = now_ms() - DAYS * DAY_MS;
    let shape = context.shape(SERIES, scrapes, interval_ms);
    let takers = context.servers.iter().filter(|contender| contender.takes(Version::V2));
    for &contender in takers {
        let trial = Trial::start(context, contender)?;
        let mut samples = 0;
        let mut kept_bytes = 0;
        for day in 0..DAYS {
            let start_ms = start_ms + day * DAY_MS;
            let data = Dataset::generate(Shape { scrapes, start_ms, ..shape });
            let write = trial.write(&Load::encode(&data, Version::V2, 2_000, 2))?;
            samples += write.samples;
            kept_bytes = write.kept_bytes;
            let written = write.per_sample(write.written_bytes);
            let (cpu, wall) = (
                write.cost.cpu_s_per_million(write.samples),
                write.cost.wall_s_per_million(write.samples),
            );
            if day == 0 {
                outcome.add("flash-first-written", contender, written);
            } else if day == DAYS - 1 {
                outcome.add("flash-last-written", contender, written);
                outcome.add_timed("flash-last-cpu", contender, cpu, wall);
            }
        }
        outcome.add("flash-kept", contender, kept_bytes as f64 / samples as f64);
        contender.check(&trial.server, (start_ms, start_ms + DAYS * DAY_MS), samples)?;
        trial.server.terminate()?;
    }
    Ok(outcome)
}
