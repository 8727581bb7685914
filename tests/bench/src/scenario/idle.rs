//! Memory of an empty server without requests.

use super::super::outcome::Outcome;
use super::super::trial::Trial;
use super::super::{BenchError, Context};
use super::megabytes;
use std::time::Duration;

const IDLE: Duration = Duration::from_secs(10);
const IDLE_QUICK: Duration = Duration::from_millis(100);

/// Measures every server of the context.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    for &contender in &context.servers {
        let trial = Trial::start(context, contender)?;
        std::thread::sleep(if context.quick { IDLE_QUICK } else { IDLE });
        let usage = trial.settle()?;
        outcome.add("idle-memory", contender, megabytes(usage.memory_bytes));
        trial.server.terminate()?;
    }
    Ok(outcome)
}
