//! A request at each interval for as long as all is well, to a service that raises an alarm when
//! the requests stop.

use super::http::{Request, exchange};
use super::{Answered, DeliveryError};
use crate::config::HeartbeatConfig;
use bytes::Bytes;
use hyper::header::HeaderMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidepool_client::{Client, ClientError};
use tidepool_lifecycle::boxed::BoxFuture;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_lifecycle::shutdown::Shutdown;
use tokio::time::{MissedTickBehavior, interval};

/// Shortest interval, since none at all would be a panic.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Says whether all is well, or what is not.
pub type Health = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

pub struct Heartbeat {
    name: String,
    config: HeartbeatConfig,
    client: Client,
    health: Health,
    figures: Arc<HeartbeatFigures>,
}

#[derive(Debug, Default)]
pub struct HeartbeatFigures {
    pub sent_total: AtomicU64,
    pub failed_total: AtomicU64,
    /// Requests that were not sent, since something was not well.
    pub skipped_total: AtomicU64,
    /// Time of the last request that succeeded; 0 if there was none.
    pub succeeded_at_ms: AtomicI64,
    trouble: Mutex<Option<Trouble>>,
}

/// Why and since when no heartbeat is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub since_ms: i64,
    /// Without secrets.
    pub reason: String,
}

impl HeartbeatFigures {
    pub fn trouble(&self) -> Option<Trouble> {
        self.lock().clone()
    }

    fn note(&self, reason: Option<String>) {
        let mut trouble = self.lock();
        let since_ms = trouble.as_ref().map(|trouble| trouble.since_ms);
        *trouble = reason
            .map(|reason| Trouble { since_ms: since_ms.unwrap_or_else(system_now_ms), reason });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Trouble>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of a heartbeat, without texts that change while the state does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sent,
    Failed,
    Skipped,
}

impl Heartbeat {
    /// Reads the files of certificates that the configuration names. Does not connect.
    pub fn open(
        name: &str,
        config: &HeartbeatConfig,
        health: Health,
    ) -> Result<Heartbeat, ClientError> {
        let (config, client) = (config.clone(), Client::open(&config.http)?);
        Ok(Heartbeat { name: name.to_owned(), config, client, health, figures: Arc::default() })
    }

    pub fn figures(&self) -> Arc<HeartbeatFigures> {
        self.figures.clone()
    }

    /// Sends heartbeats until the program stops. Dropping the future ends it, too.
    pub fn run(self, mut shutdown: Shutdown) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut ticks = interval(self.config.interval.max(INTERVAL_MIN));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut state = None;
            let beats = async {
                loop {
                    ticks.tick().await;
                    state = Some(self.beat(state).await);
                }
            };
            tokio::select! {
                () = beats => {}
                () = shutdown.wait() => {}
            }
        })
    }

    /// Sends a request, whether all is well or not.
    pub async fn send(&self) -> Result<Answered, DeliveryError> {
        let request = Request {
            method: self.config.method.clone(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: self.config.timeout,
        };
        let summary = exchange(&self.client, &self.config.url, request).await?;
        Ok(Answered { summary, alerts: 0 })
    }

    /// Logs only changes, so that days without a line fill no log.
    async fn beat(&self, last: Option<State>) -> State {
        let (name, figures) = (&self.name, &self.figures);
        let (state, total) = match (self.health)() {
            Err(reason) => {
                if last != Some(State::Skipped) {
                    tracing::warn!(receiver = %name, reason, "the heartbeat stops");
                }
                figures.note(Some(reason));
                (State::Skipped, &figures.skipped_total)
            }
            Ok(()) => match self.send().await {
                Ok(_) => {
                    figures.succeeded_at_ms.store(system_now_ms(), Ordering::Relaxed);
                    figures.note(None);
                    if last.is_some_and(|last| last != State::Sent) {
                        tracing::info!(receiver = %name, "the heartbeat is sent again");
                    }
                    (State::Sent, &figures.sent_total)
                }
                Err(error) => {
                    if last != Some(State::Failed) {
                        tracing::warn!(receiver = %name, %error, "the heartbeat cannot be sent");
                    }
                    figures.note(Some(error.to_string()));
                    (State::Failed, &figures.failed_total)
                }
            },
        };
        total.fetch_add(1, Ordering::Relaxed);
        state
    }
}
