//! Measures one load of any shape: writes it, reads it by both kinds of answer, and counts it.

use super::contender::Contender;
use super::load::Load;
use super::trial::{Answer, ReadCost, Trial, WriteCost};
use super::{BenchError, Context};
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::Version;

/// Cost of one load in one server.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    pub contender: Contender,
    pub version: Version,
    pub write: WriteCost,
    /// Cost of reading everything as a stream and as SAMPLES; `None` if the server has no remote
    /// read.
    pub reads: Option<[ReadCost; 2]>,
}

/// Measures one server with one load.
pub fn run(
    context: &Context,
    contender: Contender,
    load: &Load,
) -> Result<Measurement, BenchError> {
    let trial = Trial::start(context, contender)?;
    let write = trial.write(load)?;
    let (start_ms, end_ms) = load.time_range_ms;
    let read = |answer| trial.read(answer, &everything(start_ms, end_ms), 1);
    let reads = match contender.is_like_prometheus() {
        true => Some([read(Answer::Streamed)?, read(Answer::Sampled)?]),
        false => None,
    };
    trial.check(load)?;
    trial.server.terminate()?;
    Ok(Measurement { contender, version: load.version, write, reads })
}
