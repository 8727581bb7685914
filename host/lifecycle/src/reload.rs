//! Reloads of the configuration: requests, by SIGHUP or a call, and the result of the last reload.

use crate::clock::system_now_ms;
use crate::shutdown::Shutdown;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

/// Reason for which the process keeps the old configuration.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The new configuration cannot be used.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The process is about to stop.
    #[error("tidepool stops")]
    Stopping,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadOutcome {
    /// Flags whose new value is in use now.
    pub changed: Vec<String>,
    /// Flags whose new value needs a restart.
    pub need_restart: Vec<String>,
}

type Request = oneshot::Sender<Result<ReloadOutcome, ReloadError>>;

/// Requests reloads. Clones send to the same queue.
#[derive(Clone)]
pub struct ReloadHandle {
    requests: mpsc::Sender<Request>,
    last: Arc<LastReload>,
}

/// Result of the last reload, or of the start.
struct LastReload {
    was_successful: AtomicBool,
    success_ms: AtomicI64,
    need_restart: AtomicU64,
}

/// The queue of requests, for the code that reloads.
pub struct ReloadRequests(mpsc::Receiver<Request>);

impl ReloadHandle {
    /// Makes a handle and the queue of its requests.
    pub fn new() -> (ReloadHandle, ReloadRequests) {
        // One queued request: the senders of further requests wait until the queue has room.
        let (requests, queue) = mpsc::channel(1);
        let last = LastReload {
            was_successful: AtomicBool::new(true),
            success_ms: AtomicI64::new(system_now_ms()),
            need_restart: AtomicU64::new(0),
        };
        (ReloadHandle { requests, last: Arc::new(last) }, ReloadRequests(queue))
    }

    /// Reads the configuration again, and waits for the result.
    pub async fn reload(&self) -> Result<ReloadOutcome, ReloadError> {
        let (reply, answer) = oneshot::channel();
        // The program drops the receiving side when it stops.
        self.requests.send(reply).await.map_err(|_| ReloadError::Stopping)?;
        let outcome = answer.await.map_err(|_| ReloadError::Stopping)?;
        self.last.was_successful.store(outcome.is_ok(), Relaxed);
        match &outcome {
            Ok(ReloadOutcome { changed, need_restart }) => {
                self.last.success_ms.store(system_now_ms(), Relaxed);
                self.last.need_restart.store(need_restart.len() as u64, Relaxed);
                tracing::info!(changed = changed.join(", "), "configuration reloaded");
                if !need_restart.is_empty() {
                    let flags = need_restart.join(", ");
                    tracing::warn!(flags, "changed flags take effect only after a restart");
                }
            }
            Err(error) => {
                tracing::error!(%error, "configuration reload failed; the old configuration stays in use");
            }
        }
        outcome
    }

    /// Returns whether the last reload was successful.
    pub fn was_successful(&self) -> bool {
        self.last.was_successful.load(Relaxed)
    }

    /// Time of the last successful reload, in milliseconds since the epoch.
    pub fn success_ms(&self) -> i64 {
        self.last.success_ms.load(Relaxed)
    }

    /// Number of flags with a value that takes effect only after a restart.
    pub fn need_restart(&self) -> u64 {
        self.last.need_restart.load(Relaxed)
    }

    /// Reloads on every SIGHUP until the stop signal.
    pub fn on_hangup(self, mut shutdown: Shutdown) -> io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = shutdown.wait() => return,
                    _ = hangup.recv() => {}
                }
                // `reload` has logged the result.
                let _ = self.reload().await;
            }
        });
        Ok(())
    }
}

impl ReloadRequests {
    /// Returns the next request; `None` once all handles are dropped.
    pub async fn next(&mut self) -> Option<ReloadRequest> {
        self.0.recv().await.map(ReloadRequest)
    }
}

/// A request for a reload, whose sender waits for the result.
pub struct ReloadRequest(Request);

impl ReloadRequest {
    /// Sends the result to the caller.
    pub fn answer(self, outcome: Result<ReloadOutcome, ReloadError>) {
        // An error means that the caller has stopped waiting.
        let _ = self.0.send(outcome);
    }
}
