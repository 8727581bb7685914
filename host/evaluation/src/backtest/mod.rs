//! What rules would have done over a stored range of time, in a server and without one.
//!
//! ```text
//! text ─▶ rule file, checked ─▶ tidepool_rules::backtest ─▶ report
//!                                      │
//!                    past: the store, and computed series in memory
//! ```
//!
//! Invariant: a backtest has the time and the memory of a query, runs in the place of one, and
//! stores nothing.

mod copies;
mod past;
mod report;

pub use past::{Limits, Stored, StoredPast};
pub use report::{AlertReport, BacktestReport, GroupReport, KindReport, RuleReport, SeriesReport};

use crate::checks::EngineChecks;
use crate::config::BacktestSettings;
use crate::rules::Rules;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidepool_rules::backtest::{Terms, backtest, evaluations};
use tidepool_rules::file::{Options, RuleFile, parse};
use tidepool_runtime::{Instance, Runtime};
use tidepool_store::StoreError;
use tidepool_store::reading::{HeldInstance, Reading};

/// Maximum number of alerts that are listed.
const LISTED_MAX: usize = 10_000;

/// Name of a rule file that a request has, in messages.
const NAME: &str = "rules";

/// The rules of a request, and the range over which they are evaluated.
#[derive(Clone, Debug)]
pub struct BacktestRequest {
    /// Text of a rule file.
    pub rules: String,
    pub start_ms: i64,
    pub end_ms: i64,
    /// Shorter than the timeout of queries, if it is to hold.
    pub timeout: Option<Duration>,
}

/// Maximum number of evaluations of a backtest: of 100 rules each minute for two months.
const EVALUATIONS_MAX: u64 = 10_000_000;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum BacktestError {
    /// Mistakes of the rules: a line for each, with line, column and key.
    #[error("{0}")]
    Rules(String),
    #[error(
        "the rules would be evaluated {0} times, more than {EVALUATIONS_MAX}; give a shorter range, \
         fewer rules or longer intervals"
    )]
    TooMany(u64),
    /// The backtest had to end, such as at its deadline.
    #[error("{0}")]
    Ended(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The store of a server, for the backtests of one thread.
struct HeldStore<'a>(RefCell<HeldInstance<'a>>);

impl Stored for HeldStore<'_> {
    fn run<T>(
        &self,
        limits: &Limits,
        work: impl FnOnce(&mut Instance) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let is_cancelled = Arc::clone(&limits.is_cancelled);
        self.0.borrow_mut().run(limits.deadline, move || is_cancelled(), work)
    }
}

impl BacktestSettings {
    /// Reads and checks the text of a rule file of this name.
    pub fn read(&self, name: &Path, text: &[u8]) -> Result<RuleFile, BacktestError> {
        let checks = EngineChecks::new(self.features)
            .map_err(|error| BacktestError::Ended(error.to_string()))?;
        let options = Options { rules_max: self.rules_max, ..Options::default() };
        parse(name, text, &options, &checks)
            .map_err(|error| BacktestError::Rules(error.to_string()))
    }

    /// Evaluates rules over what is stored.
    pub fn run<S: Stored>(
        &self,
        files: &[RuleFile],
        (start_ms, end_ms): (i64, i64),
        stored: S,
        limits: Limits,
    ) -> Result<BacktestReport, BacktestError> {
        let runtime = Runtime::shared();
        let runtime = runtime.map_err(|error| BacktestError::Ended(format!("{error:#}")))?;
        let terms = Terms {
            start_ms,
            end_ms,
            defaults: self.defaults.clone(),
            alerts_max: self.alerts_max,
            listed_max: LISTED_MAX,
        };
        let evaluations = evaluations(files, &terms);
        if evaluations > EVALUATIONS_MAX {
            return Err(BacktestError::TooMany(evaluations));
        }
        let mut past = StoredPast::new(stored, runtime, limits);
        let outcome = backtest(files, &terms, &mut past).map_err(BacktestError::Ended)?;
        Ok(BacktestReport::new(start_ms, end_ms, outcome))
    }
}

impl Rules {
    /// Evaluates the rules of a request over the store, in the place of a query.
    pub async fn backtest(
        &self,
        request: BacktestRequest,
    ) -> Result<BacktestReport, BacktestError> {
        let (settings, queries) = self.for_backtests();
        let timeout = queries.timeout();
        let timeout = request.timeout.map_or(timeout, |asked| asked.min(timeout));
        let deadline = Instant::now().checked_add(timeout);
        let options = queries.options();
        let work = move |reading: &Reading, sent: &tokio::sync::mpsc::Sender<_>| {
            let receiver = sent.clone();
            let limits = Limits {
                options,
                memory_bytes_max: reading.limits().memory_bytes_max,
                timeout: Some(timeout),
                deadline,
                is_cancelled: Arc::new(move || receiver.is_closed()),
            };
            let stored = HeldStore(HeldInstance::new(reading).into());
            let report = settings.read(Path::new(NAME), request.rules.as_bytes());
            let range = (request.start_ms, request.end_ms);
            let report = report.and_then(|file| settings.run(&[file], range, stored, limits));
            // Fails if nobody waits any more.
            let _ = sent.try_send(report);
        };
        let mut sent = queries.in_place_of_query(deadline, work).await?;
        let crashed = || StoreError::Crashed("the backtest ended without an outcome".to_owned());
        sent.recv().await.unwrap_or_else(|| Err(crashed().into()))
    }
}
