//! Remote write 2.0 by senders that cut requests anywhere.

use super::super::outcome::Outcome;
use super::super::trial::{Trial, WriteCost};
use super::super::{BenchError, Context, cuts};
use super::megabytes;
use crate::remote_write::Version;
use crate::series::Dataset;

const INTERVAL_MS: i64 = 15_000;
const SERIES: usize = 10_000;
const SCRAPES: usize = 120;
/// Most samples in a request, and connections.
const SENDERS: [(usize, usize); 6] =
    [(500, 1), (500, 4), (500, 50), (2_000, 1), (2_000, 4), (2_000, 50)];

/// 10k series × 120 for each kind of sender.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let version = Version::V2;
    let data = Dataset::generate(context.shape(SERIES, SCRAPES, INTERVAL_MS));
    for (rows_max, connections) in SENDERS {
        let load = cuts::encode(&data, version, rows_max, connections);
        for &contender in context.servers.iter().filter(|contender| contender.takes(version)) {
            let trial = Trial::start(context, contender)?;
            let WriteCost { samples, cost, peak_memory_bytes, .. } = trial.write(&load)?;
            let (cpu, wall) = (cost.cpu_s_per_million(samples), cost.wall_s_per_million(samples));
            let row = format!("cuts-{rows_max}-{connections}");
            outcome.add_timed(&format!("{row}-cpu"), contender, cpu, wall);
            outcome.add(&format!("{row}-memory"), contender, megabytes(peak_memory_bytes));
            trial.check(&load)?;
            trial.server.terminate()?;
        }
    }
    Ok(outcome)
}
