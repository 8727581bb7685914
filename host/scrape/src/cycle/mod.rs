//! The scrapes of one target, one after the other, until the target ends.
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

/// State that a target's next cycle continues with: series and metadata.
pub type Memory = (Cache, Arc<Mutex<Families>>);

/// Orders to a running cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Orders {
    pub phase: Phase,
    /// Error with which all scrapes fail, without being made.
    pub forced: Option<ScrapeError>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Running,
    /// Another cycle goes on with its cache.
    Replaced,
    Ended,
}

/// The scrape loop of one target.
pub struct Cycle<S> {
    pub target: Arc<Target>,
    pub appender: Appender,
    /// Source of the samples, or the error that each scrape fails with.
    pub source: Result<Box<dyn Source>, ScrapeError>,
    pub store: Arc<S>,
    pub clock: Arc<dyn Clock>,
    /// Separates this server's schedule from those of others.
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
    /// With the timer of the scrapes, unless there was none yet.
    Ended(Option<Interval>),
    Shutdown,
}

impl<S: Store> Cycle<S> {
    /// Scrapes until ordered to stop. `stopped` gets the cache if another cycle continues with it,
    /// and is answered before markers are written. Once `shutdown` is true or gone, a scrape under
    /// way is abandoned and nothing more is written.
    pub async fn run(
        mut self,
        mut orders: watch::Receiver<Orders>,
        mut shutdown: watch::Receiver<bool>,
        stopped: oneshot::Sender<Option<Memory>>,
    ) {
        let stop = self.scrape_on(&mut orders, &mut shutdown).await;
        // The receiver may be dropped: then the caller does not wait.
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
        // In this order, here and below: a stop that comes with a shutdown must not lead to
        // markers.
        tokio::select! {
            biased;
            () = is_shut_down(shutdown) => return Stop::Shutdown,
            phase = is_stopped(orders) => return stop_of(phase, None),
            () = sleep_until(first) => {}
        }
        let mut ticks = interval_at(first + interval, interval);
        // As upstream, missed scrapes are not made up for.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut schedule = Schedule::new(self.clock.now(), interval);
        let mut last: Option<Instant> = None;
        loop {
            // Samples have the time at which the scrape began, however long it takes.
            let at = schedule.align(self.clock.now());
            let start = Instant::now();
            if let Some(last) = last.replace(start) {
                self.metrics.observe_interval(interval, start.duration_since(last));
            }
            // Cloned, because a borrow would keep new orders out during the scrape.
            let forced = orders.borrow().forced.clone();
            // Orders wait for the end of the scrape: a reload does not cut it off.
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

    /// Does one scrape, whose samples get the time `at`; returns its error.
    pub async fn scrape(
        &mut self,
        at: Duration,
        forced: Option<ScrapeError>,
    ) -> Result<(), ScrapeError> {
        // Before the clock starts: this is no part of the scrape's duration.
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
        // Before the commit, which adds to this state what the store refuses.
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
        // Before the commit, which takes the batch.
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
                // One line for all targets: what keeps scrapes out of the store, such as a full
                // disk, may be what the log is written to.
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

    /// Marks all series of a target that is gone. The target may come back under another cycle, so
    /// this waits for two intervals and a little more. The markers have the time of the first
    /// scrape that was not made, and are refused where there are newer samples.
    async fn mark_end(&mut self, mut ticks: Interval) {
        // The tick of the first scrape that is not made.
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
