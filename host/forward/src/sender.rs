//! One request, sent until it is answered for good: delivered, or refused.
//!
//! What the receiver or the network may do better another time ([`Meaning::Again`]) is sent again,
//! at growing distances or when `Retry-After` says. Everything else that is no success would be
//! refused each time: it is given up, and counted.

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

/// How often repeated failures are logged.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A request that is sent.
pub struct Outgoing {
    /// The message, compressed.
    pub body: Bytes,
    /// Which message.
    pub version: RemoteWriteVersion,
    /// How much is in it.
    pub counts: Counts,
    /// From here on some of it is too old to be sent; none without a limit of age.
    pub stale_at: Option<Instant>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it; the request that was answered took so long.
    Delivered(Duration),
    /// The receiver will not have it.
    Refused,
    /// The receiver does not know this version's messages.
    UnknownVersion,
    /// Some of it is too old by now: it is to be rebuilt.
    Stale,
    /// It was recalled after an attempt that failed.
    Recalled,
}

/// Who sends.
pub struct Sender {
    /// The connection.
    pub client: Client,
    /// How often, and for how long.
    pub queue: QueueConfig,
    /// What is counted.
    pub figures: Arc<Figures>,
    /// What log lines call the destination.
    pub name: String,
    /// Whether it has said what it wrote of 2.0: then it is a receiver of 2.0.
    pub has_counted: AtomicBool,
}

impl Outgoing {
    /// What the content type says.
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
    /// Sends until it is answered for good, or until an attempt fails and it is recalled.
    pub async fn send(&self, request: &Outgoing, mut recalled: watch::Receiver<bool>) -> Outcome {
        let mut backoff = self.queue.min_backoff.min(self.queue.max_backoff);
        let mut warned: Option<Instant> = None;
        for attempt in 0.. {
            let is_stale = |at: Instant| Instant::now() >= at;
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
                        biased;
                        _ = recalled.wait_for(|is_recalled| *is_recalled) => {
                            return Outcome::Recalled;
                        }
                        () = tokio::time::sleep(pause) => {}
                    }
                    backoff = (backoff.max(pause) * 2).min(self.queue.max_backoff);
                }
            }
        }
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
            // Against the specification, which has 4xx for that: it would not be written another
            // time.
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
