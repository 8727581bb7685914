//! Whole-process benchmark: real servers, real sockets, and the operating system's counters.
//!
//! [`scenario`] has one module for each measurement; all of them return figures for rows of the
//! table in [`bars`], which [`outcome`] keeps, [`report`] prints and [`docs`] writes with charts
//! ([`plot`]). They use a [`load`] that is encoded before the clock starts, data directories made
//! by upstream's packages ([`tidepool_tests::made`]), scrape targets ([`fleet`]), and a [`trial`]:
//! one server ([`contender`]) on a fresh directory, with the cost of each request. [`command_cost`]
//! is the same for a command. [`custom`] measures one load of any shape, [`beside`] the latency of
//! writes beside heavy reads, [`queries`] the cost of queries in PromQL, [`narrow`] the cost of
//! requests for few series, [`dashboard`] the latencies of panels and writes beside one another.
//!
//! CPU seconds are the server's own (user and system); memory is the peak of its resident set;
//! written bytes are those that the kernel counts for the server. The same binary on the same input
//! drifts by tens of percent within the hour on shared machines: compare servers within one run
//! only. All written samples are counted in the end: speed without the right answer is worth
//! nothing.

pub mod bars;
pub mod beside;
pub mod command_cost;
pub mod contender;
pub mod custom;
pub mod cuts;
pub mod dashboard;
pub mod docs;
pub mod fleet;
pub mod load;
pub mod narrow;
pub mod outcome;
pub mod plot;
pub mod queries;
pub mod report;
pub mod scenario;
pub mod trial;

use contender::Contender;
use load::SendError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::HttpError;
use tidepool_tests::made::MadeError;
use tidepool_tests::process::{ProcessError, UsageError};
use tidepool_tests::remote_read::ReadError;
use tidepool_tests::series::{Shape, Texture};
use tidepool_tests::{peers, prometheus, victoria_metrics, vmagent};

/// Divisor of sizes in a smoke test.
const QUICK_SERIES_DIVISOR: usize = 100;
const QUICK_SCRAPES_MAX: usize = 20;

/// Settings that all scenarios share.
#[derive(Clone, Debug)]
pub struct Context {
    /// Servers that are measured, one after the other.
    pub servers: Vec<Contender>,
    /// Directory for the servers' data.
    pub directory: PathBuf,
    /// Flags for tidepool in all scenarios.
    pub tidepool_flags: Vec<String>,
    /// Whether sizes are those of a smoke test, whose figures mean nothing.
    pub quick: bool,
    /// Time for which a server must be idle.
    pub idle_window: Duration,
    pub seed: u64,
}

/// Reason for which a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error(transparent)]
    Prometheus(#[from] prometheus::StartError),
    #[error(transparent)]
    VictoriaMetrics(#[from] victoria_metrics::StartError),
    #[error(transparent)]
    Vmagent(#[from] vmagent::StartError),
    /// A server did not start or end.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A program is not built.
    #[error(transparent)]
    Missing(#[from] peers::MissingPeer),
    /// Upstream's packages made no data directory.
    #[error(transparent)]
    Made(#[from] MadeError),
    /// The load could not be sent.
    #[error("a write failed")]
    Send(#[from] SendError),
    #[error("a read failed")]
    Read(#[from] ReadError),
    #[error("a query failed")]
    Query(#[from] prometheus::QueryError),
    #[error("a request failed")]
    Http(#[from] HttpError),
    /// The server's usage is not known.
    #[error("the server cannot be measured")]
    Usage(#[from] UsageError),
    /// A file or directory cannot be used.
    #[error("the files of the benchmark cannot be used")]
    Files(#[from] io::Error),
    /// Something was not finished in time.
    #[error(transparent)]
    TimedOut(#[from] tidepool_tests::wait::TimedOut),
    /// A program that was run ended with an error.
    #[error("{program} failed: {log}")]
    Command {
        program: String,
        /// Standard output and standard error of the program.
        log: String,
    },
    /// Fewer or more samples were returned than were sent.
    #[error("{contender}: {sent} samples were sent, {found} came back")]
    Incomplete {
        contender: Contender,
        /// Number of samples that the server acknowledged.
        sent: u64,
        /// Number of samples in the answer.
        found: u64,
    },
    /// A file of figures cannot be parsed.
    #[error("{path} cannot be read as figures; remove it and measure again")]
    Figures {
        path: PathBuf,
        /// Reason why the file cannot be parsed.
        source: serde_json::Error,
    },
    /// Files differ from the commit that the figures would name.
    #[error("files differ from the commit: commit them, and measure again")]
    Uncommitted,
    /// There are no kept figures to write about.
    #[error("nothing was measured yet: run `bench table`")]
    NoFigures,
}

impl Context {
    /// Returns the shape of regular series whose last sample is now.
    pub fn shape(&self, series: usize, scrapes: usize, interval_ms: i64) -> Shape {
        let (series, scrapes) = match self.quick {
            true => ((series / QUICK_SERIES_DIVISOR).max(10), scrapes.min(QUICK_SCRAPES_MAX)),
            false => (series, scrapes),
        };
        let start_ms = now_ms() - scrapes as i64 * interval_ms;
        let texture = Texture::Regular;
        Shape { seed: self.seed, series, scrapes, start_ms, interval_ms, texture }
    }

    /// Returns the full size, or the smaller one for a smoke test.
    pub fn sized(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }
}
