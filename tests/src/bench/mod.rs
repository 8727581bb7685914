//! The whole-process benchmark: real servers, real sockets, what the operating system counts.
//!
//! [`run`] measures one server with one version of remote write: it sends a pre-encoded load
//! ([`load`]), waits until the server is idle, reads everything back by both kinds of answer and
//! checks that it is all there. [`report`] makes a table of the measurements. [`beside`] measures
//! how long writes take beside heavy reads.
//!
//! CPU seconds are the server's own (user and system); memory is the peak of its resident set;
//! written bytes are those that the kernel counts for it. The same binary on the same input drifts
//! by tens of percent within the hour on shared machines: compare servers within one run only.

pub mod beside;
pub mod load;
pub mod report;

use crate::peers::Release;
use crate::process::{ProcessError, Server, Usage, UsageError};
use crate::remote_read::{ReadError, Reader, everything};
use crate::remote_write::Version;
use crate::{data_dir, prometheus, tidepool};
use load::{Load, SendError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A server is idle when it uses less than this in [`IDLE_WINDOW`].
const IDLE_CPU_MAX: Duration = Duration::from_millis(20);
const IDLE_WINDOW: Duration = Duration::from_millis(500);
/// A server that never gets idle is measured after this time.
const SETTLE_MAX: Duration = Duration::from_secs(30);

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// The binary under test.
    Tidepool,
    /// A Prometheus with its remote-write receiver.
    Prometheus(Release),
}

/// What one way to read everything back costs.
#[derive(Clone, Copy, Debug)]
pub struct ReadCost {
    /// CPU of the server.
    pub cpu: Duration,
    /// From request to the last byte.
    pub wall: Duration,
    /// Peak of resident memory over what was resident before.
    pub extra_memory_bytes: u64,
    /// Bytes of the answer's body.
    pub answer_bytes: u64,
}

/// What one server needs for one load.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// Who.
    pub contender: Contender,
    /// By which version of remote write.
    pub version: Version,
    /// How many samples.
    pub samples: u64,
    /// CPU of the server for the writes, until it was idle.
    pub cpu: Duration,
    /// From the first request to the last answer.
    pub wall: Duration,
    /// Peak of resident memory up to then.
    pub peak_memory_bytes: u64,
    /// Bytes that went to storage up to then.
    pub written_bytes: u64,
    /// Bytes in the data directory after that.
    pub kept_bytes: u64,
    /// Requests that had to be repeated.
    pub retries: u64,
    /// A streamed read of everything.
    pub streamed: ReadCost,
    /// A SAMPLES read of everything.
    pub sampled: ReadCost,
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Prometheus did not start.
    #[error(transparent)]
    Prometheus(#[from] prometheus::StartError),
    /// Tidepool did not start.
    #[error(transparent)]
    Tidepool(#[from] ProcessError),
    /// The load did not get through.
    #[error("a write failed")]
    Send(#[from] SendError),
    /// A read failed.
    #[error("a read failed")]
    Read(#[from] ReadError),
    /// The server's usage is not known.
    #[error("the server cannot be measured")]
    Usage(#[from] UsageError),
    /// No directory for the data.
    #[error("no temporary directory")]
    Directory(#[from] io::Error),
    /// Fewer or more samples came back than were sent.
    #[error("{sent} samples were sent, {found} came back")]
    Incomplete {
        /// Acknowledged.
        sent: u64,
        /// In the answer.
        found: u64,
    },
}

impl Contender {
    /// Starts it in a directory; gives its data directory, too.
    fn start(self, directory: &Path, flags: &[String]) -> Result<(Server, PathBuf), BenchError> {
        match self {
            Contender::Tidepool => {
                let config = tidepool::Config::new(directory);
                let config = flags.iter().fold(config, |config, flag| config.flag(flag));
                Ok((config.start()?, config.data_dir().to_path_buf()))
            }
            Contender::Prometheus(release) => {
                let config = prometheus::Config::new(release, directory)?.receiver();
                Ok((config.start()?, config.data_dir()))
            }
        }
    }

    /// Whether it takes this version of remote write.
    pub fn takes(self, version: Version) -> bool {
        self != Contender::Prometheus(Release::V2) || version == Version::V1
    }
}

impl std::fmt::Display for Contender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Contender::Tidepool => "tidepool",
            Contender::Prometheus(Release::V2) => "Prometheus 2.x",
            Contender::Prometheus(Release::V3) => "Prometheus 3.x",
        })
    }
}

/// Measures one server with one load; the flags are for tidepool only.
pub fn run(
    contender: Contender,
    load: &Load,
    directory: &Path,
    flags: &[String],
) -> Result<Measurement, BenchError> {
    let directory = tempfile::tempdir_in(directory)?;
    let (server, data_dir) = contender.start(directory.path(), flags)?;
    let before = server.usage()?;
    let start = Instant::now();
    let retries = load.send(&server.url())?;
    let wall = start.elapsed();
    let after = settle(&server)?;
    let kept_bytes = data_dir::total_bytes(&data_dir);

    let reader = Reader::new(&server.url());
    let (start_ms, end_ms) = load.time_range_ms;
    let query = [everything(start_ms, end_ms)];
    let streamed = read_cost(&server, || reader.drain_streamed(&query))?;
    let sampled = read_cost(&server, || reader.drain_samples(&query))?;

    // Speed without the right answer is worth nothing. (Chunks that 2.x still appends to may end in
    // a byte of padding, which our decoder refuses.)
    if contender != Contender::Prometheus(Release::V2) {
        let found = reader.visit_parts(&query, |_| Ok(()))?.samples;
        if found != load.samples {
            return Err(BenchError::Incomplete { sent: load.samples, found });
        }
    }
    server.terminate()?;
    Ok(Measurement {
        contender,
        version: load.version,
        samples: load.samples,
        cpu: after.cpu - before.cpu,
        wall,
        peak_memory_bytes: after.peak_memory_bytes,
        written_bytes: after.written_bytes - before.written_bytes,
        kept_bytes,
        retries,
        streamed,
        sampled,
    })
}

/// Waits until the server is idle and reads its usage.
fn settle(server: &Server) -> Result<Usage, UsageError> {
    let start = Instant::now();
    let mut before = server.usage()?;
    loop {
        std::thread::sleep(IDLE_WINDOW);
        let now = server.usage()?;
        if now.cpu - before.cpu < IDLE_CPU_MAX || start.elapsed() > SETTLE_MAX {
            return Ok(now);
        }
        before = now;
    }
}

fn read_cost(
    server: &Server,
    read: impl FnOnce() -> Result<u64, ReadError>,
) -> Result<ReadCost, BenchError> {
    server.reset_peak_memory()?;
    let before = server.usage()?;
    let start = Instant::now();
    let answer_bytes = read()?;
    let wall = start.elapsed();
    let after = settle(server)?;
    Ok(ReadCost {
        cpu: after.cpu - before.cpu,
        wall,
        extra_memory_bytes: after.peak_memory_bytes.saturating_sub(before.memory_bytes),
        answer_bytes,
    })
}
