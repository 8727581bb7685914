//! The whole-process benchmark: real servers, real sockets, what the operating system counts.
//!
//! [`scenario`] has what is measured, one module each; all of them return figures for rows of the
//! table in [`bars`], which [`outcome`] keeps, [`report`] prints and [`docs`] writes with charts
//! ([`plot`]). They are made of a [`load`] that is encoded before the clock starts, of data
//! directories that upstream's packages make ([`tidepool_tests::made`]), of targets to scrape
//! ([`fleet`]), and of a [`trial`]: one server ([`contender`]) on a fresh directory, and what each
//! thing that it is asked for costs. [`command_cost`] is the same for a command.
//! [`custom`] measures one load of any shape, [`beside`] how long writes take beside heavy reads,
//! [`queries`] what queries in PromQL cost, [`narrow`] what requests cost that concern few series,
//! [`dashboard`] how long panels and writes take beside one another.
//!
//! CPU seconds are the server's own (user and system); memory is the peak of its resident set;
//! written bytes are those that the kernel counts for it. The same binary on the same input drifts
//! by tens of percent within the hour on shared machines: compare servers within one run only.
//! Whatever was written is counted in the end: speed without the right answer is worth nothing.

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

/// How far sizes shrink for a smoke test.
const QUICK_SERIES_DIVISOR: usize = 100;
const QUICK_SCRAPES_MAX: usize = 20;

/// What all scenarios share.
#[derive(Clone, Debug)]
pub struct Context {
    /// Who is measured, one after the other.
    pub servers: Vec<Contender>,
    /// Where the servers' data goes.
    pub directory: PathBuf,
    /// For tidepool, in all scenarios.
    pub tidepool_flags: Vec<String>,
    /// Whether sizes are those of a smoke test, whose figures mean nothing.
    pub quick: bool,
    /// How long a server has to be idle.
    pub idle_window: Duration,
    /// Decides the data.
    pub seed: u64,
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Prometheus did not start.
    #[error(transparent)]
    Prometheus(#[from] prometheus::StartError),
    /// VictoriaMetrics did not start.
    #[error(transparent)]
    VictoriaMetrics(#[from] victoria_metrics::StartError),
    /// vmagent did not start.
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
    /// The load did not get through.
    #[error("a write failed")]
    Send(#[from] SendError),
    /// A read failed.
    #[error("a read failed")]
    Read(#[from] ReadError),
    /// A query failed.
    #[error("a query failed")]
    Query(#[from] prometheus::QueryError),
    /// A request failed.
    #[error("a request failed")]
    Http(#[from] HttpError),
    /// The server's usage is not known.
    #[error("the server cannot be measured")]
    Usage(#[from] UsageError),
    /// A file or directory cannot be used.
    #[error("the files of the benchmark cannot be used")]
    Files(#[from] io::Error),
    /// What was not finished in time.
    #[error(transparent)]
    TimedOut(#[from] tidepool_tests::wait::TimedOut),
    /// A program that was run ended with an error.
    #[error("{program} failed: {log}")]
    Command {
        /// Which.
        program: String,
        /// What it said.
        log: String,
    },
    /// Fewer or more samples came back than were sent.
    #[error("{contender}: {sent} samples were sent, {found} came back")]
    Incomplete {
        /// Who lost them.
        contender: Contender,
        /// Acknowledged.
        sent: u64,
        /// In the answer.
        found: u64,
    },
    /// A file of figures does not read as one.
    #[error("{path} cannot be read as figures; remove it and measure again")]
    Figures {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Files differ from the commit that the figures would be of.
    #[error("files differ from the commit: commit them, and measure again")]
    Uncommitted,
    /// There is nothing to write about.
    #[error("nothing was measured yet: run `bench table`")]
    NoFigures,
}

impl Context {
    /// The shape of regular series whose last sample is now.
    pub fn shape(&self, series: usize, scrapes: usize, interval_ms: i64) -> Shape {
        let (series, scrapes) = match self.quick {
            true => ((series / QUICK_SERIES_DIVISOR).max(10), scrapes.min(QUICK_SCRAPES_MAX)),
            false => (series, scrapes),
        };
        let start_ms = now_ms() - scrapes as i64 * interval_ms;
        let texture = Texture::Regular;
        Shape { seed: self.seed, series, scrapes, start_ms, interval_ms, texture }
    }

    /// A number, or a smaller one for a smoke test.
    pub fn sized(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }
}
