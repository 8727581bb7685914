//! The dispatcher of a delivery run: makes requests of queued rows, and applies their answers.

use super::ForwardError;
use super::answer::Counts;
use super::sender::{Outcome, Outgoing, Sender};
use super::shared::Shared;
use super::version::Negotiated;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tidepool_runtime::{RemoteWriteVersion, Request};
use tidepool_store::StoreError;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Maximum wait for unanswered requests when the run is stopped.
const END_WAIT: Duration = Duration::from_secs(3);

/// Sends the rows in the engine's queues, the shards. Each has at most one request at a time.
pub(super) struct Dispatcher<'w> {
    sender: &'w Arc<Sender>,
    version: &'w mut Negotiated,
    shards: Vec<Shard>,
    /// Outcome of each request. Each must arrive, or its shard would wait for ever.
    answers: (mpsc::Sender<Answered>, Receiver<Answered>),
    /// Whether requests are recalled: no new request, and no retry of a failed attempt.
    is_recalling: watch::Sender<bool>,
    delivered: Option<Instant>,
    metadata_sent: Option<Instant>,
    metadata_task: Option<JoinHandle<()>>,
    compressor: snap::raw::Encoder,
}

#[derive(Default)]
struct Shard {
    on_its_way: Option<OnItsWay>,
    /// Time since which queued rows wait for a request.
    since: Option<Instant>,
    /// Whether the rows taken last must be taken again at once.
    is_again: bool,
}

/// A request that has no outcome yet.
struct OnItsWay {
    task: JoinHandle<()>,
    version: RemoteWriteVersion,
    rows: u64,
    /// Rows that were taken with this request but left out because they are too old.
    too_old: u64,
    newest_ms: i64,
}

/// Number of a shard, and the outcome of its request.
type Answered = (u32, Outcome);

impl<'w> Dispatcher<'w> {
    pub fn new(
        sender: &'w Arc<Sender>,
        version: &'w mut Negotiated,
        shards: usize,
    ) -> Dispatcher<'w> {
        Dispatcher {
            sender,
            version,
            shards: (0..shards).map(|_| Shard::default()).collect(),
            answers: mpsc::channel(),
            is_recalling: watch::Sender::new(false),
            delivered: None,
            metadata_sent: None,
            metadata_task: None,
            compressor: snap::raw::Encoder::new(),
        }
    }

    pub fn shard_count(&self) -> u32 {
        self.shards.len() as u32
    }

    /// Returns whether no request is waiting for an outcome.
    pub fn is_idle(&self) -> bool {
        self.shards.iter().all(|shard| shard.on_its_way.is_none())
    }

    /// Returns whether a request was delivered within the last `time`.
    pub fn has_delivered_within(&self, time: Duration) -> bool {
        self.delivered.is_some_and(|at| at.elapsed() < time)
    }

    /// Replaces the shards. No old shard may have an unanswered request.
    pub fn replace_shards(&mut self, shards: u32) {
        self.shards = (0..shards).map(|_| Shard::default()).collect();
    }

    /// Stops new requests and retries until [`Dispatcher::go_on`]; returns whether all requests
    /// have ended, which takes no longer than one request may. After that each row is either
    /// delivered or still in its queue.
    pub fn recall(&self) -> bool {
        self.is_recalling.send_replace(true);
        self.is_idle()
    }

    pub fn is_recalling(&self) -> bool {
        *self.is_recalling.borrow()
    }

    /// Ends a recall, so that queued rows are sent again.
    pub fn go_on(&self) {
        self.is_recalling.send_replace(false);
    }

    /// Waits up to `END_WAIT` for the outcomes of requests.
    pub fn await_answers(&mut self, shared: &mut Shared<'_>) -> Result<(), ForwardError> {
        let until = Instant::now() + END_WAIT;
        while !self.is_idle() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.take_answers(shared, left)? {
                break;
            }
        }
        Ok(())
    }

    /// Handles outcomes, waiting up to `wait` for the first; returns whether any was handled.
    pub fn take_answers(
        &mut self,
        shared: &mut Shared<'_>,
        wait: Duration,
    ) -> Result<bool, ForwardError> {
        let first = match wait.is_zero() {
            true => self.answers.1.try_recv().map_err(|_| RecvTimeoutError::Timeout),
            false => self.answers.1.recv_timeout(wait),
        };
        let Ok(first) = first else { return Ok(false) };
        let mut next = Some(first);
        let mut is_done = false;
        while let Some((shard_number, outcome)) = next {
            next = self.answers.1.try_recv().ok();
            let Some(shard) = self.shards.get_mut(shard_number as usize) else { continue };
            let Some(sent) = shard.on_its_way.take() else { continue };
            // The next rows of the shard start a new wait for a full request.
            shard.since = Some(Instant::now());
            match outcome {
                Outcome::Delivered(took) => {
                    shared.resharding.went_out(sent.rows, took);
                    self.delivered = Some(Instant::now());
                    shared.position.progress_mut().delivered(sent.newest_ms);
                    shared.position.show_progress();
                    shared.parts.figures.newest_sent_ms.fetch_max(sent.newest_ms, Relaxed);
                    if self.version.taken(sent.version) {
                        let remote_name = &shared.parts.config.name;
                        tracing::info!(remote_name, "the receiver accepts remote write 2.0");
                    }
                }
                Outcome::Refused => {}
                Outcome::UnknownVersion => {
                    if self.version.not_taken(Instant::now()) {
                        tracing::warn!(
                            remote_name = shared.parts.config.name,
                            "the receiver does not accept remote write 2.0; sending 1.0, and \
                             trying 2.0 again every five minutes"
                        );
                    }
                    // The rows are still in their queue, and are taken again as a message of 1.0.
                    shard.is_again = true;
                    continue;
                }
                Outcome::Stale | Outcome::Recalled => {
                    shard.is_again = true;
                    continue;
                }
            }
            count_too_old(shared, sent.too_old);
            shared.destination.done(shard_number)?;
            is_done = true;
        }
        // One write of the position serves all outcomes that arrived together.
        if is_done {
            shared.write_position(false)?;
        }
        Ok(true)
    }

    /// Sends the rows of idle shards whose request is full or has waited long enough, or of all
    /// idle shards with `is_all_due`; returns whether anything was sent.
    pub fn send(
        &mut self,
        shared: &mut Shared<'_>,
        is_all_due: bool,
    ) -> Result<bool, ForwardError> {
        let pending = shared.destination.pending()?;
        let rows: u64 = pending.iter().map(|rows| u64::from(*rows)).sum();
        shared.parts.figures.pending.store(rows, Relaxed);
        if self.is_recalling() {
            return Ok(false);
        }
        let queue = &shared.parts.config.queue;
        let mut has_sent = false;
        for (number, rows) in (0..).zip(pending) {
            let Some(shard) = self.shards.get_mut(number as usize) else { continue };
            if shard.on_its_way.is_some() {
                continue;
            }
            if rows == 0 {
                (shard.since, shard.is_again) = (None, false);
                continue;
            }
            let since = *shard.since.get_or_insert_with(Instant::now);
            let is_due = rows >= queue.max_samples_per_send
                || since.elapsed() >= queue.batch_send_deadline
                || shard.is_again
                || is_all_due;
            if is_due {
                self.send_shard(shared, number)?;
                has_sent = true;
            }
        }
        Ok(has_sent)
    }

    fn send_shard(&mut self, shared: &mut Shared<'_>, number: u32) -> Result<(), ForwardError> {
        let rows_max = shared.parts.config.queue.max_samples_per_send;
        let not_before_ms = shared.parts.not_before_ms();
        let version = self.version.version(Instant::now());
        let request = shared.destination.take(number, version, rows_max, not_before_ms)?;
        let Some(request) = request else { return Ok(()) };
        let Request { body, samples, histograms, exemplars, too_old, newest_ms } = request;
        // All rows were too old: no request is sent, so no outcome will arrive.
        if body.is_empty() {
            count_too_old(shared, too_old);
            shared.destination.done(number)?;
            return shared.write_position(false);
        }
        let compressed = self.compressor.compress_vec(&body);
        let compressed = compressed.map_err(|error| {
            StoreError::Runtime(format!("a request could not be compressed: {error}"))
        })?;
        let limit = shared.parts.config.queue.sample_age_limit;
        // Rows may be sent late by a tenth of the limit, so that requests are seldom rebuilt.
        let stale_at = (!limit.is_zero()).then(|| Instant::now() + limit / 10);
        let outgoing = Outgoing {
            body: Bytes::from(compressed),
            version,
            counts: Counts { samples, histograms, exemplars },
            stale_at,
        };
        let (sender, answers) = (Arc::clone(self.sender), self.answers.0.clone());
        let recalled = self.is_recalling.subscribe();
        let sending = async move {
            let outcome = sender.send(&outgoing, recalled).await;
            // The send fails only after the run has ended; then no one needs the outcome.
            let _ = answers.send((number, outcome));
        };
        let task = shared.parts.runtime.spawn(sending.in_current_span());
        if let Some(shard) = self.shards.get_mut(number as usize) {
            let rows = samples + histograms;
            shard.on_its_way = Some(OnItsWay { task, version, rows, too_old, newest_ms });
            (shard.since, shard.is_again) = (None, false);
        }
        Ok(())
    }

    /// Sends the metadata of metric families as a message of its own, if the version is 1.0.
    pub fn send_metadata(&mut self, shared: &mut Shared<'_>) -> Result<(), ForwardError> {
        let metadata = &shared.parts.config.metadata;
        let is_due = self.metadata_sent.is_none_or(|at| at.elapsed() >= metadata.send_interval);
        // While one metadata message is unanswered, no further one is sent.
        let is_on_its_way = self.metadata_task.as_ref().is_some_and(|task| !task.is_finished());
        let version = self.version.version(Instant::now());
        let is_wanted = metadata.send && version == RemoteWriteVersion::V1;
        if !is_wanted || !is_due || is_on_its_way {
            return Ok(());
        }
        self.metadata_sent = Some(Instant::now());
        let mut bodies = Vec::new();
        let mut after = String::new();
        while let Some(request) =
            shared.destination.metadata(&after, metadata.max_samples_per_send)?
        {
            after = request.last;
            if let Ok(body) = self.compressor.compress_vec(&request.body) {
                bodies.push(Bytes::from(body));
            }
        }
        let sender = Arc::clone(self.sender);
        let task = shared.parts.runtime.spawn(async move {
            for body in bodies {
                let sent = sender.client.send(body, "application/x-protobuf", "0.1.0", 0).await;
                let figures = &sender.figures;
                match sent.is_ok_and(|answer| answer.status.is_success()) {
                    true => figures.metadata.fetch_add(1, Relaxed),
                    // Failed metadata is sent again after the next interval.
                    false => figures.metadata_failed.fetch_add(1, Relaxed),
                };
            }
        });
        self.metadata_task = Some(task);
        Ok(())
    }
}

/// Counts rows that were too old for a request. Called after the request has ended, because its
/// rows may be taken and counted again until then.
fn count_too_old(shared: &mut Shared<'_>, rows: u64) {
    shared.parts.figures.dropped.too_old.fetch_add(rows, Relaxed);
    shared.resharding.dropped(rows);
}

impl Drop for Dispatcher<'_> {
    /// Aborts all requests. Whether their rows arrived stays unknown.
    fn drop(&mut self) {
        let requests = self.shards.iter().filter_map(|shard| shard.on_its_way.as_ref());
        requests.for_each(|sent| sent.task.abort());
        if let Some(task) = &self.metadata_task {
            task.abort();
        }
    }
}
