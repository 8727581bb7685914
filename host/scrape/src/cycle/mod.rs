//! Repeats the scrapes of one target until the target ends.
//!
//! ```text
//! offset ── scrape ── tick ── scrape ── tick ── … ── ended ── tick ── tick ── 10 % ── markers
//!                                                └── replaced: the cache goes to the next cycle
//!                                                └── shutdown: nothing more is written
//! ```
//!
//! Source: `scrapeLoop` in `scrape/scrape.go` of prometheus/prometheus.

mod schedule;

pub use schedule::{Schedule, offset};

use crate::append::Appender;
use crate::cache::{Cache, Families};
use crate::clock::{Clock, milliseconds};
use crate::error::ScrapeError;
use crate::failure_log::FailureLog;
use crate::metrics::Metrics;
use crate::report::Report;
use crate::source::Source;
use crate::store::{Appended, Reason, Refused, Store};
use crate::target::Target;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{
    Instant, Interval, MissedTickBehavior, interval_at, sleep, sleep_until, timeout,
};

/// Cache and metadata that a target's next cycle continues with.
pub type Memory = (Cache, Arc<Mutex<Families>>);

/// Orders to a running cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Orders {
    pub phase: Phase,
    /// Error that all scrapes report instead of requesting the target.
    pub forced: Option<ScrapeError>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Running,
    /// Ends the cycle; its successor continues with its cache.
    Replaced,
    Ended,
}

/// The scrape loop of one target.
pub struct Cycle<S> {
    pub target: Arc<Target>,
    pub appender: Appender,
    /// Source of the samples, or the error that each scrape reports.
    pub source: Result<Box<dyn Source>, ScrapeError>,
    pub store: Arc<S>,
    pub clock: Arc<dyn Clock>,
    /// Seed that separates this server's schedule from other servers' schedules.
    pub offset_seed: u64,
    /// Setting `sample_limit`, which the report shows.
    pub sample_limit: u64,
    pub metrics: Arc<Metrics>,
    pub job: String,
    /// File for failed scrapes, if the job has one.
    pub failures: Option<Failures>,
}

/// File that failed scrapes of a target are logged to.
pub struct Failures {
    pub log: FailureLog,
    pub path: PathBuf,
}

enum Stop {
    Replaced,
    /// Has the timer of the scrapes; `None` if there was no scrape yet.
    Ended(Option<Interval>),
    Shutdown,
}

impl<S: Store> Cycle<S> {
    /// Scrapes until ordered to stop. `stopped` receives the cache if another cycle continues with
    /// it, and is sent before markers are written. When `shutdown` is true or its sender dropped, a
    /// scrape under way is abandoned, and nothing more is written.
    pub async fn run(
        mut self,
        mut orders: watch::Receiver<Orders>,
        mut shutdown: watch::Receiver<bool>,
        stopped: oneshot::Sender<Option<Memory>>,
    ) {
        let stop = self.scrape_on(&mut orders, &mut shutdown).await;
        // Sending fails if the receiver was dropped; then no one waits for the cache.
        match stop {
            Stop::Replaced => drop(stopped.send(Some(self.appender.into_cache()))),
            Stop::Shutdown | Stop::Ended(None) => drop(stopped.send(None)),
            Stop::Ended(Some(ticks)) => {
                let _ = stopped.send(None);
                tokio::select! {
                    () = is_shut_down(&mut shutdown) => {}
                    () = self.mark_end(ticks) => {}
                }
            }
        }
    }

    async fn scrape_on(
        &mut self,
        orders: &mut watch::Receiver<Orders>,
        shutdown: &mut watch::Receiver<bool>,
    ) -> Stop {
        let interval = self.target.interval();
        let wait = match &self.source {
            Ok(source) if source.begins_at_once() => Duration::ZERO,
            _ => offset(self.clock.now(), interval, self.target.hash(), self.offset_seed),
        };
        let first = Instant::now() + wait;
        // `biased` checks the shutdown first, here and below: a stop that comes with a shutdown
        // must not write markers.
        tokio::select! {
            biased;
            () = is_shut_down(shutdown) => return Stop::Shutdown,
            phase = is_stopped(orders) => return stop_of(phase, None),
            () = sleep_until(first) => {}
        }
        let mut ticks = interval_at(first + interval, interval);
        // As upstream, missed scrapes are skipped.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut schedule = Schedule::new(self.clock.now(), interval);
        let mut last: Option<Instant> = None;
        loop {
            // Samples get the time at which the scrape starts, however long the scrape takes.
            let at = schedule.align(self.clock.now());
            let start = Instant::now();
            if let Some(last) = last.replace(start) {
                self.metrics.observe_interval(interval, start.duration_since(last));
            }
            // Cloned, because a borrow would block the sender of orders during the scrape.
            let forced = orders.borrow().forced.clone();
            // Orders take effect after the scrape: a reload does not abort a scrape.
            tokio::select! {
                biased;
                () = is_shut_down(shutdown) => return Stop::Shutdown,
                _ = self.scrape(at, forced) => {}
            }
            tokio::select! {
                biased;
                () = is_shut_down(shutdown) => return Stop::Shutdown,
                phase = is_stopped(orders) => return stop_of(phase, Some(ticks)),
                _ = ticks.tick() => {}
            }
        }
    }

    /// Makes one scrape, whose samples get the time `at`; returns the scrape's error.
    pub async fn scrape(
        &mut self,
        at: Duration,
        forced: Option<ScrapeError>,
    ) -> Result<(), ScrapeError> {
        // Before the timer starts, because shrinking is no part of the scrape's duration.
        self.appender.shrink_elsewhere().await;
        let start = Instant::now();
        self.appender.begin(milliseconds(at), self.clock.now_ms());
        let given = match (forced, &mut self.source) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(error.clone()),
            (None, Ok(source)) => {
                let length = self.target.timeout();
                let scraping = source.scrape(&mut self.appender);
                timeout(length, scraping).await.unwrap_or(Err(ScrapeError::Timeout(length)))
            }
        };
        let (totals, result) = self.appender.finish_elsewhere(given).await;
        let duration = start.elapsed();
        let report = Report {
            is_up: result.is_ok(),
            duration,
            totals,
            timeout: self.target.timeout(),
            sample_limit: self.sample_limit,
            is_body_too_large: matches!(result, Err(ScrapeError::BodySize { .. })),
        };
        self.appender.report(&report);
        // Before the commit, which may add refusals of the store to the state.
        self.target.report(at, duration, &result);
        if let Err(error) = &result {
            tracing::debug!(target = self.target.shown_url(), %error, "scrape failed");
            if let Some(Failures { log, path }) = &self.failures {
                log.write(path, &self.job, &self.target.shown_url(), error);
            }
        }
        self.commit().await;
        result
    }

    async fn commit(&mut self) {
        // Counted before the commit, which empties the batch.
        let rows = self.appender.rows();
        match self.appender.commit(&*self.store, self.clock.now_ms()).await {
            Ok(appended) => {
                let missed = self.metrics.store_outage.end();
                if missed > 0 {
                    tracing::info!(missed, "scrapes are stored again");
                }
                let Appended { refused, first_refusal: first, exemplars_out_of_order, .. } =
                    appended;
                if refused.total() > 0 || exemplars_out_of_order > 0 {
                    tracing::warn!(
                        target = self.target.shown_url(),
                        out_of_order = refused.of(Reason::OutOfOrder),
                        duplicates = refused.of(Reason::Duplicate),
                        out_of_bounds = refused.of(Reason::OutOfBounds),
                        refused = refused.total(),
                        exemplars_out_of_order,
                        first = first.as_deref().unwrap_or_default(),
                        "the store refused samples of a scrape"
                    );
                }
                if refused.total() > 0 {
                    self.metrics.count_refused(&self.job, refused);
                    self.target.report_refused(ScrapeError::Refused { refused, first });
                }
            }
            Err(error) => {
                let target = self.target.shown_url();
                // Logged once for all targets: a full disk, for example, may also be the disk that
                // holds the log.
                match self.metrics.store_outage.begin() {
                    true => tracing::error!(
                        target, %error,
                        "a scrape could not be stored; others are not named until scrapes are \
                         stored again"
                    ),
                    false => tracing::debug!(target, %error, "a scrape could not be stored"),
                }
                let refused = Refused::new(error.reason(), rows);
                self.metrics.count_refused(&self.job, refused);
                self.target.report_refused(ScrapeError::Unstored(error));
            }
        }
    }

    /// Writes markers for all series of a target that is gone. Waits for two intervals and a tenth,
    /// in case another cycle scrapes the same series. The markers have the time of the first
    /// missing scrape; the store refuses a marker if the series has newer samples.
    async fn mark_end(&mut self, mut ticks: Interval) {
        // The first scrape that is not made would have started at this tick.
        ticks.tick().await;
        let at_ms = self.clock.now_ms();
        ticks.tick().await;
        sleep(self.target.interval() / 10).await;
        self.appender.end(at_ms);
        self.commit().await;
    }
}

fn stop_of(phase: Phase, ticks: Option<Interval>) -> Stop {
    match phase {
        Phase::Replaced => Stop::Replaced,
        Phase::Running | Phase::Ended => Stop::Ended(ticks),
    }
}

/// Waits until a cycle is ordered to stop. A dropped sender means that the target has ended.
async fn is_stopped(orders: &mut watch::Receiver<Orders>) -> Phase {
    match orders.wait_for(|orders| orders.phase != Phase::Running).await {
        Ok(orders) => orders.phase,
        Err(_) => Phase::Ended,
    }
}

async fn is_shut_down(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender was dropped.
    let _ = shutdown.wait_for(|is_shut_down| *is_shut_down).await;
}
