//! Duration of a restart, after a clean stop and after kill -9.

use super::super::load::Load;
use super::super::outcome::Outcome;
use super::super::trial::Trial;
use super::super::{BenchError, Context};
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Dataset;

/// Number of clean restarts; the shortest counts.
const CLEAN_RESTARTS: usize = 3;

/// Measures 10k series × 360.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    for &contender in &context.servers {
        let version = if contender.takes(Version::V2) { Version::V2 } else { Version::V1 };
        let data = Dataset::generate(context.shape(10_000, 360, 15_000));
        let load = Load::encode(&data, version, 2_000, 2);
        let mut trial = Trial::start(context, contender)?;
        trial.write(&load)?;
        let mut clean = Outcome::default();
        for _ in 0..context.sized(CLEAN_RESTARTS, 1) {
            let (restarted, start) = trial.restart(Server::terminate)?;
            trial = restarted;
            let mut once = Outcome::default();
            once.add("restart-clean", contender, start.cost.wall.as_secs_f64());
            once.add("restart-clean-cpu", contender, trial.settle()?.cpu.as_secs_f64());
            clean.keep_least(once);
        }
        outcome.extend(clean);
        trial.check(&load)?;
        if contender.is_like_prometheus() {
            let (restarted, start) = trial.restart(Server::kill)?;
            trial = restarted;
            outcome.add("restart-kill", contender, start.cost.wall.as_secs_f64());
            outcome.add("restart-kill-cpu", contender, trial.settle()?.cpu.as_secs_f64());
            trial.check(&load)?;
        }
        trial.server.terminate()?;
    }
    Ok(outcome)
}
