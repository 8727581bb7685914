//! Reloads of the configuration: who asks for one, on SIGHUP or on request, and how the last went.

use crate::clock::system_now_ms;
use crate::shutdown::Shutdown;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

/// Why the configuration stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It cannot be used.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The process is about to end.
    #[error("tidepool stops")]
    Stopping,
}

/// The result of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadOutcome {
    /// Flags whose new value holds now.
    pub changed: Vec<String>,
    /// Flags that differ and need a restart.
    pub need_restart: Vec<String>,
}

type Request = oneshot::Sender<Result<ReloadOutcome, ReloadError>>;

/// Asks for reloads; clones ask the same.
#[derive(Clone)]
pub struct ReloadHandle {
    requests: mpsc::Sender<Request>,
    last: Arc<LastReload>,
}

/// How the last attempt went, a start included.
struct LastReload {
    was_successful: AtomicBool,
    success_ms: AtomicI64,
    need_restart: AtomicU64,
}

/// Requests, for what reloads.
pub struct ReloadRequests(mpsc::Receiver<Request>);

impl ReloadHandle {
    /// A handle, and what it asks for.
    pub fn new() -> (ReloadHandle, ReloadRequests) {
        let (requests, queue) = mpsc::channel(1);
        let last = LastReload {
            was_successful: AtomicBool::new(true),
            success_ms: AtomicI64::new(system_now_ms()),
            need_restart: AtomicU64::new(0),
        };
        (ReloadHandle { requests, last: Arc::new(last) }, ReloadRequests(queue))
    }

    /// Reads the configuration again.
    pub async fn reload(&self) -> Result<ReloadOutcome, ReloadError> {
        let (reply, answer) = oneshot::channel();
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

    /// Whether the last attempt was successful.
    pub fn was_successful(&self) -> bool {
        self.last.was_successful.load(Relaxed)
    }

    /// When the last successful one was, in milliseconds since the epoch.
    pub fn success_ms(&self) -> i64 {
        self.last.success_ms.load(Relaxed)
    }

    /// How many flags have a value that takes effect only after a restart.
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
                // It has logged what there is to say.
                let _ = self.reload().await;
            }
        });
        Ok(())
    }
}

impl ReloadRequests {
    /// The next request; none once all handles are dropped.
    pub async fn next(&mut self) -> Option<ReloadRequest> {
        self.0.recv().await.map(ReloadRequest)
    }
}

/// Somebody who waits for a reload.
pub struct ReloadRequest(Request);

impl ReloadRequest {
    /// Says how it went.
    pub fn answer(self, outcome: Result<ReloadOutcome, ReloadError>) {
        // Who asked may have gone.
        let _ = self.0.send(outcome);
    }
}
