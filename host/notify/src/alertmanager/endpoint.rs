//! The task that sends alerts to one Alertmanager: live ones from its queue, and ends of alerts
//! from the journal.
//!
//! Source: `notifier/sendloop.go` of prometheus/prometheus: a batch that is not accepted is
//! dropped, because alerts that still fire are sent again. Unlike there, draining ends at the first
//! failure and after [`DRAIN_MAX`], so that an Alertmanager that does not answer cannot hold up a
//! stop.

use super::Shared;
use super::alert::{Alert, Relabeling};
use super::client::{PostClient, PostError};
use super::peer::{Peer, locked};
use super::pump::Pump;
use super::queue::Queue;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedMutexGuard, watch};

/// Maximum duration of draining, besides the request under way.
const DRAIN_MAX: Duration = Duration::from_secs(30);

pub(super) struct Endpoint {
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    client: PostClient,
    /// Rules for the alerts of this item of the configuration, after those for all.
    relabeling: Arc<Relabeling>,
    queue: Mutex<Queue>,
    has_work: Notify,
    has_stopped: watch::Sender<bool>,
}

impl Endpoint {
    pub fn new(
        shared: Arc<Shared>,
        peer: Arc<Peer>,
        client: PostClient,
        relabeling: Arc<Relabeling>,
    ) -> Endpoint {
        let queue = Mutex::new(Queue::new(shared.options.queue_capacity));
        let (has_work, has_stopped) = (Notify::new(), watch::channel(false).0);
        Endpoint { shared, peer, client, relabeling, queue, has_work, has_stopped }
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    pub fn batch_size(&self) -> usize {
        self.shared.options.batch_size
    }

    /// URLs of all Alertmanagers that are in use.
    pub fn urls(&self) -> Vec<String> {
        self.shared.peers.all().iter().map(|peer| peer.url().to_owned()).collect()
    }

    /// Applies all rules; returns `None` for an alert that is not sent here.
    pub fn relabeled(&self, alert: Alert) -> Option<Alert> {
        let relabeling = Arc::clone(&*locked(&self.shared.relabeling));
        relabeling.apply(alert).and_then(|alert| self.relabeling.apply(alert))
    }

    /// Queues alerts to which all rules are applied. Never waits.
    pub fn push(&self, alerts: Vec<Alert>) {
        if *self.has_stopped.borrow() {
            return;
        }
        let mut queue = locked(&self.queue);
        let before = queue.len();
        let dropped = queue.push(alerts);
        self.count_queue(before, queue.len());
        drop(queue);
        if dropped > 0 {
            self.peer.figures.dropped.fetch_add(dropped as u64, Relaxed);
            tracing::warn!(
                alertmanager = self.peer.url(),
                dropped,
                "the queue for Alertmanager is full; dropped its oldest alerts"
            );
        }
        self.has_work.notify_one();
    }

    /// Ends the task; it drains the queue if that is configured.
    pub fn stop(&self) {
        self.has_stopped.send_replace(true);
    }

    pub async fn run(self: Arc<Endpoint>) {
        let mut has_stopped = self.has_stopped.subscribe();
        // The pump of this URL, once no other endpoint has it.
        let mut held: Option<OwnedMutexGuard<Pump>> = None;
        while !*has_stopped.borrow_and_update() {
            let sent = self.send_batch().await;
            if let Some(pump) = &mut held {
                if sent == Some(true) {
                    pump.is_reachable();
                }
                pump.work(&self).await;
            }
            if sent.is_some() {
                continue;
            }
            tokio::select! {
                _ = has_stopped.changed() => {}
                () = self.has_work.notified() => {}
                pump = next_pump(&self.peer, held.is_some()) => held = Some(pump),
                () = wait(&mut held) => {}
            }
        }
        if let Some(pump) = &mut held {
            pump.write(&self, true).await;
        }
        drop(held);
        self.end().await;
    }

    /// Posts alerts, and counts them.
    pub async fn post(&self, alerts: &[Alert]) -> Result<(), PostError> {
        let begin = Instant::now();
        let posted = self.client.post(self.peer.url(), alerts).await;
        match &posted {
            Ok(()) => self.peer.report_sent(alerts.len(), begin.elapsed()),
            Err(error) => self.peer.report_failed(alerts.len(), error.to_string()),
        }
        posted
    }

    /// Sends the oldest alerts of the queue. Returns whether they were accepted, and `None` if
    /// there are none.
    async fn send_batch(&self) -> Option<bool> {
        let batch = self.take(self.batch_size());
        if batch.is_empty() {
            return None;
        }
        let is_accepted = self.post(&batch).await.is_ok();
        match is_accepted {
            true => self.peer.add_accepted(&batch),
            false => self.count_dropped(batch.len()),
        }
        Some(is_accepted)
    }

    /// Sends or drops what is left in the queue.
    async fn end(&self) {
        if self.shared.options.drains_on_shutdown {
            let begin = Instant::now();
            while begin.elapsed() < DRAIN_MAX && self.send_batch().await == Some(true) {}
        }
        let left = self.take(usize::MAX).len();
        if left > 0 {
            self.count_dropped(left);
            tracing::warn!(
                alertmanager = self.peer.url(),
                dropped = left,
                "stopped sending to an Alertmanager; dropped the alerts in its queue"
            );
        }
    }

    fn take(&self, count: usize) -> Vec<Alert> {
        let mut queue = locked(&self.queue);
        let before = queue.len();
        let batch = queue.take(count);
        self.count_queue(before, queue.len());
        batch
    }

    fn count_dropped(&self, alerts: usize) {
        self.peer.figures.dropped.fetch_add(alerts as u64, Relaxed);
    }

    /// Adds a change, because several endpoints may have the same URL.
    fn count_queue(&self, before: usize, after: usize) {
        let length = &self.peer.figures.queue_length;
        match after.checked_sub(before) {
            Some(more) => length.fetch_add(more as u64, Relaxed),
            None => length.fetch_sub((before - after) as u64, Relaxed),
        };
    }
}

/// Waits for the pump of a URL; for ever if this endpoint has it, or there is none.
async fn next_pump(peer: &Peer, has_it: bool) -> OwnedMutexGuard<Pump> {
    match &peer.pump {
        Some(pump) if !has_it => Arc::clone(pump).lock_owned().await,
        _ => std::future::pending().await,
    }
}

async fn wait(held: &mut Option<OwnedMutexGuard<Pump>>) {
    match held {
        Some(pump) => pump.wait().await,
        None => std::future::pending().await,
    }
}
