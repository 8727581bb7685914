//! One request, sent until it is answered for good: delivered, or refused.
//!
//! What the receiver or the network may do better another time (5xx, 429 if so configured, no
//! answer at all) is sent again, at growing distances or when `Retry-After` says. So is what was
//! redirected: nobody has it, and a gate that asks for a login does not stand there for ever. Everything
//! else that is no success would be refused each time: it is given up, and counted.

use super::client::{Answer, Client};
use super::config::QueueConfig;
use super::figures::Figures;
use crate::wasm::RemoteWriteVersion;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Longest pause that a receiver may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// How often failures in a row are told.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A request that is sent.
pub struct Outgoing {
    /// The message, compressed.
    pub body: Bytes,
    /// Which message.
    pub version: RemoteWriteVersion,
    /// Floats in it.
    pub samples: u64,
    /// Histograms in it.
    pub histograms: u64,
    /// Exemplars in it.
    pub exemplars: u64,
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
    /// Some of it is too old by now: it is to be made anew.
    Stale,
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
}

/// What an answer means.
enum Meaning {
    Delivered,
    Refused(String),
    UnknownVersion,
    Again { why: String, after: Option<Duration> },
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
    /// Sends until it is answered for good.
    pub async fn send(&self, request: &Outgoing) -> Outcome {
        let mut backoff = self.queue.min_backoff;
        let mut told: Option<Instant> = None;
        for attempt in 0.. {
            let is_stale = |at: Instant| Instant::now() >= at;
            if attempt > 0 && request.stale_at.is_some_and(is_stale) {
                return Outcome::Stale;
            }
            let started = Instant::now();
            let body = request.body.clone();
            let (kind, version) = (request.content_type(), request.version_header());
            let meaning = match self.client.send(body, kind, version, attempt).await {
                Ok(answer) => self.meaning(request, answer),
                Err(error) => Meaning::Again { why: error.to_string(), after: None },
            };
            let took = started.elapsed();
            self.figures.durations.observe(took);
            match meaning {
                Meaning::Delivered => {
                    let Outgoing { samples, histograms, exemplars, .. } = request;
                    self.figures.sent.add(*samples, *histograms, *exemplars);
                    self.figures.bytes.fetch_add(request.body.len() as u64, Relaxed);
                    self.figures.requests.fetch_add(1, Relaxed);
                    if told.is_some() {
                        tracing::info!(remote_name = self.name, "requests are delivered again");
                    }
                    return Outcome::Delivered(took);
                }
                Meaning::Refused(why) => {
                    let Outgoing { samples, histograms, exemplars, .. } = request;
                    self.figures.failed.add(*samples, *histograms, *exemplars);
                    tracing::error!(
                        remote_name = self.name,
                        samples,
                        histograms,
                        reason = why,
                        "a request was refused, and is dropped"
                    );
                    return Outcome::Refused;
                }
                Meaning::UnknownVersion => return Outcome::UnknownVersion,
                Meaning::Again { why, after } => {
                    let Outgoing { samples, histograms, exemplars, .. } = request;
                    self.figures.retried.add(*samples, *histograms, *exemplars);
                    let pause = after.unwrap_or(backoff);
                    if told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
                        told = Some(Instant::now());
                        tracing::warn!(
                            remote_name = self.name,
                            reason = why,
                            attempt,
                            again_in_seconds = pause.as_secs_f64(),
                            "a request was not delivered; it is sent again, and the others wait"
                        );
                    }
                    tokio::time::sleep(pause).await;
                    if after.is_none() {
                        backoff = (backoff * 2).min(self.queue.max_backoff);
                    }
                }
            }
        }
        Outcome::Stale
    }

    fn meaning(&self, request: &Outgoing, answer: Answer) -> Meaning {
        let Answer { status, headers, text } = answer;
        let is_v2 = request.version == RemoteWriteVersion::V2;
        let said = || format!("{status}: {}", text.trim());
        if status.is_success() {
            return match is_v2 {
                true => self.written(request, &headers),
                false => Meaning::Delivered,
            };
        }
        if status == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_v2 {
            return Meaning::UnknownVersion;
        }
        let may_again = status.is_server_error()
            || status.is_redirection()
            || (status == StatusCode::TOO_MANY_REQUESTS && self.queue.retry_on_http_429);
        if may_again {
            return Meaning::Again { why: said(), after: retry_after(&headers) };
        }
        self.figures.refused(status.as_u16(), request.samples + request.histograms);
        Meaning::Refused(said())
    }

    /// What a 2.0 receiver says it has written. One that says nothing has taken the message for one
    /// of 1.0, in which it is empty.
    fn written(&self, request: &Outgoing, headers: &HeaderMap) -> Meaning {
        let count = |kind: &str| {
            let name = format!("x-prometheus-remote-write-{kind}-written");
            headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok()
        };
        let counts = [count("samples"), count("histograms"), count("exemplars")];
        if counts.iter().all(Option::is_none) {
            return Meaning::UnknownVersion;
        }
        let written = counts.iter().flatten().sum::<u64>();
        let Outgoing { samples, histograms, exemplars, .. } = request;
        if written == 0 && samples + histograms + exemplars > 0 {
            self.figures.refused(200, samples + histograms);
            return Meaning::Refused("a success that says that nothing was written".into());
        }
        Meaning::Delivered
    }
}

/// What `Retry-After` asks for: seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            static PARSER: DateTimeParser = DateTimeParser::new();
            let at = PARSER.parse_timestamp(text).ok()?;
            let ms = at.as_millisecond().saturating_sub(Timestamp::now().as_millisecond());
            Duration::from_millis(u64::try_from(ms).unwrap_or(0))
        }
    };
    Some(pause.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_read_in_both_forms() {
        let pause = |text: &str| {
            let value = hyper::header::HeaderValue::from_str(text);
            retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value.expect("a value"))]))
        };
        assert_eq!(pause("7"), Some(Duration::from_secs(7)));
        assert_eq!(pause("86400"), Some(RETRY_AFTER_MAX));
        assert_eq!(pause("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(pause("Fri, 31 Dec 2100 08:49:37 GMT"), Some(RETRY_AFTER_MAX));
        assert_eq!(pause("soon"), None);
    }
}
