//! One load of any shape: written, read back by both kinds of answer, and counted.

use super::contender::Contender;
use super::load::Load;
use super::trial::{Answer, ReadCost, Trial, WriteCost};
use super::{BenchError, Context};
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::Version;

/// What one server needs for one load.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// Who.
    pub contender: Contender,
    /// By which version of remote write.
    pub version: Version,
    /// To write it.
    pub write: WriteCost,
    /// To read everything as a stream and as SAMPLES; nothing, if it answers no remote read.
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
