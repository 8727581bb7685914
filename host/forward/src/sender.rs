//! Sends one request until its outcome is final: delivered or refused.
//!
//! A temporary failure ([`Meaning::Again`]) is retried with growing pauses, or after the pause that
//! `Retry-After` asks for. After any other failure, the rows are dropped and counted.

use super::answer::{Asked, Counts, Meaning, meaning};
use super::client::Client;
use super::config::QueueConfig;
use super::figures::Figures;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_runtime::RemoteWriteVersion;
use tokio::sync::watch;

/// Interval of log lines about repeated failures.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A request that is ready to be sent.
pub struct Outgoing {
    /// The message, compressed with Snappy.
    pub body: Bytes,
    pub version: RemoteWriteVersion,
    pub counts: Counts,
    /// Time from which some rows are too old to be sent; `None` without an age limit.
    pub stale_at: Option<Instant>,
}

/// Outcome of sending a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has stored the rows. Has the duration of the successful attempt.
    Delivered(Duration),
    /// The receiver will never accept the rows.
    Refused,
    /// The receiver does not accept messages of this version.
    UnknownVersion,
    /// Some rows have become too old: the request must be rebuilt without them.
    Stale,
    /// The request was stopped after a failed attempt, because the dispatcher recalled it.
    Recalled,
}

/// Sends the requests of one destination.
pub struct Sender {
    pub client: Client,
    pub queue: QueueConfig,
    pub figures: Arc<Figures>,
    /// Name of the destination in log lines.
    pub name: String,
    /// Whether the receiver has ever returned counts of written rows, as only 2.0 receivers do.
    pub has_counted: AtomicBool,
}

impl Outgoing {
    pub fn content_type(&self) -> &'static str {
        match self.version {
            RemoteWriteVersion::V1 => "application/x-protobuf",
            RemoteWriteVersion::V2 => "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        }
    }

    fn version_header(&self) -> &'static str {
        match self.version {
            RemoteWriteVersion::V1 => "0.1.0",
            RemoteWriteVersion::V2 => "2.0.0",
        }
    }
}

impl Sender {
    /// Sends until the outcome is final, or until an attempt fails after a recall.
    pub async fn send(&self, request: &Outgoing, mut recalled: watch::Receiver<bool>) -> Outcome {
        let mut backoff = self.queue.min_backoff.min(self.queue.max_backoff);
        let mut warned: Option<Instant> = None;
        for attempt in 0.. {
            let is_stale = |at: Instant| Instant::now() >= at;
            // The first attempt follows directly after the request was built.
            if attempt > 0 && request.stale_at.is_some_and(is_stale) {
                return Outcome::Stale;
            }
            let started = Instant::now();
            let body = request.body.clone();
            let (kind, version) = (request.content_type(), request.version_header());
            let meaning = match self.client.send(body, kind, version, attempt).await {
                Ok(answer) => {
                    let asked = Asked {
                        version: request.version,
                        sent: request.counts,
                        retry_on_429: self.queue.retry_on_http_429,
                        has_counted: self.has_counted.load(Relaxed),
                    };
                    let meaning = meaning(asked, &answer);
                    if let Meaning::Refused { written, .. } = &meaning {
                        let Counts { samples, histograms, .. } = request.counts.without(written);
                        self.figures.refused(answer.status.as_u16(), samples + histograms);
                    }
                    meaning
                }
                Err(error) => Meaning::Again { why: error.to_string(), after: None },
            };
            let took = started.elapsed();
            self.figures.durations.observe(took);
            match &meaning {
                Meaning::Again { .. } => self.figures.request_failed(),
                _ => self.figures.request_answered(),
            }
            match meaning {
                Meaning::Delivered { written } => {
                    self.delivered(request, &written);
                    if warned.is_some() {
                        tracing::info!(remote_name = self.name, "delivery works again");
                    }
                    return Outcome::Delivered(took);
                }
                Meaning::Refused { why, written } => {
                    let lost = request.counts.without(&written);
                    self.figures.sent.add(&written);
                    self.figures.failed.add(&lost);
                    tracing::error!(
                        remote_name = self.name,
                        samples = lost.samples,
                        histograms = lost.histograms,
                        reason = why,
                        "the receiver refused a request; its samples are dropped"
                    );
                    return Outcome::Refused;
                }
                Meaning::UnknownVersion => return Outcome::UnknownVersion,
                Meaning::Again { why, after } => {
                    self.figures.retried.add(&request.counts);
                    let pause = after.unwrap_or(backoff);
                    if warned.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
                        warned = Some(Instant::now());
                        tracing::warn!(
                            remote_name = self.name,
                            reason = why,
                            attempt,
                            again_in_seconds = pause.as_secs_f64(),
                            "sending failed; it will be retried, and later samples wait"
                        );
                    }
                    tokio::select! {
                        // A recall during the attempt must be noticed before the next attempt.
                        biased;
                        _ = recalled.wait_for(|is_recalled| *is_recalled) => {
                            return Outcome::Recalled;
                        }
                        () = tokio::time::sleep(pause) => {}
                    }
                    // A longer pause that the receiver asked for also raises the next backoff.
                    backoff = (backoff.max(pause) * 2).min(self.queue.max_backoff);
                }
            }
        }
        // Only after all attempt numbers are used; the request is rebuilt.
        Outcome::Stale
    }

    fn delivered(&self, request: &Outgoing, written: &Counts) {
        if request.version == RemoteWriteVersion::V2 {
            self.has_counted.store(true, Relaxed);
        }
        self.figures.sent.add(written);
        self.figures.bytes.fetch_add(request.body.len() as u64, Relaxed);
        self.figures.requests.fetch_add(1, Relaxed);
        let lost = request.counts.without(written);
        if !lost.is_nothing() {
            // The specification demands 4xx for rows that were not written. A retry of these rows
            // would not be written either.
            self.figures.failed.add(&lost);
            let Counts { samples, histograms, exemplars } = lost;
            tracing::error!(
                remote_name = self.name,
                samples,
                histograms,
                exemplars,
                "the receiver wrote fewer samples than were sent; the rest are dropped"
            );
        }
    }
}
