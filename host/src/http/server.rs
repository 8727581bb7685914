//! The accept loop.

use super::connection;
use super::doors::Doors;
use super::durations::Durations;
use crate::access::Access;
use crate::config::HttpConfig;
use crate::forward::figures::ForwardFigures;
use crate::plugin::Plugins;
use crate::reload::{Live, ReloadHandle};
use crate::ship::ShipFigures;
use crate::shutdown::Shutdown;
use crate::store::{BodyBudget, Store, system_now_ms};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

/// How long running requests may go on after the stop signal.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after a failed accept, which mostly means that file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a server is made of.
pub struct ServerConfig {
    /// What it serves.
    pub store: Store,
    /// What stands before the store, if anything does.
    pub plugins: Option<Plugins>,
    /// What was shipped, if blocks are.
    pub ship: Option<Arc<ShipFigures>>,
    /// What was forwarded, by destination.
    pub forward: ForwardFigures,
    /// Where, within which bounds and whom. What changes holds for requests that come later, but
    /// for the address, and the bounds of connections and of bodies together.
    pub live: watch::Receiver<Live>,
    /// Reads the configuration again.
    pub reload: ReloadHandle,
}

/// A bound server.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    context: Context,
}

/// What every request may use. Clones share all of it but the configuration.
#[derive(Clone)]
pub(super) struct Context {
    pub store: Store,
    pub plugins: Option<Plugins>,
    /// As it was when the request came.
    pub access: Arc<Access>,
    pub ship: Option<Arc<ShipFigures>>,
    /// What was forwarded, by destination.
    pub forward: ForwardFigures,
    /// As it was when the request came.
    pub http: Arc<HttpConfig>,
    pub bodies: BodyBudget,
    pub counters: Arc<HttpCounters>,
    pub durations: Arc<Durations>,
    pub doors: Arc<Doors>,
    pub reload: ReloadHandle,
    /// When the server was started.
    pub started_ms: i64,
    /// Tells the connection that waits the longest to give up its place.
    pub crowded: Arc<Notify>,
    live: watch::Receiver<Live>,
}

impl Context {
    /// With the configuration as it is now.
    pub fn now(&self) -> Context {
        let Live { http, access } = self.live.borrow().clone();
        Context { http, access, ..self.clone() }
    }
}

/// What the server counted.
#[derive(Default)]
pub(super) struct HttpCounters {
    pub write_requests: AtomicU64,
    pub write_requests_failed: AtomicU64,
    pub read_requests: AtomicU64,
    pub read_requests_failed: AtomicU64,
    pub connections_open: AtomicU64,
    pub connections_idle: AtomicU64,
    pub connections_crowded_out: AtomicU64,
    pub connections_slow_head: AtomicU64,
    pub connections_slow_reader: AtomicU64,
    pub connections_malformed: AtomicU64,
    pub connections_insecure: AtomicU64,
    pub refused_unauthorized: AtomicU64,
    pub refused_foreign: AtomicU64,
    pub refused_slow: AtomicU64,
    pub refused_too_large: AtomicU64,
    pub refused_type: AtomicU64,
    pub refused_unavailable: AtomicU64,
}

impl Server {
    /// Binds the address.
    pub async fn bind(config: ServerConfig) -> io::Result<Server> {
        let ServerConfig { store, plugins, ship, forward, live, reload } = config;
        let Live { http, access } = live.borrow().clone();
        let listener = http.listen.bind().await?;
        let address = listener.local_addr()?;
        let context = Context {
            store,
            plugins,
            access,
            ship,
            forward,
            bodies: BodyBudget::new(http.inflight_bytes_max),
            http,
            counters: Arc::new(HttpCounters::default()),
            durations: Arc::new(Durations::default()),
            doors: Arc::new(Doors::default()),
            reload,
            started_ms: system_now_ms(),
            crowded: Arc::new(Notify::new()),
            live,
        };
        Ok(Server { listener, address, context })
    }

    /// The address it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the stop signal, then lets running requests end.
    pub async fn run(self, mut shutdown: Shutdown) {
        let Server { listener, context, .. } = self;
        let live = context.live.clone();
        let current = move || Arc::clone(&live.borrow().access);
        tokio::spawn(Access::watch(current, shutdown.clone()));
        let connections_max = context.http.connections_max;
        let slots = Arc::new(Semaphore::new(connections_max as usize));
        loop {
            let accepted = async {
                let stream = accept(&listener).await?;
                Some((stream, slot(&slots, &context.crowded).await?))
            };
            let accepted = tokio::select! {
                () = shutdown.wait() => break,
                accepted = accepted => accepted,
            };
            let Some((stream, slot)) = accepted else { continue };
            let (context, shutdown) = (context.now(), shutdown.clone());
            tokio::spawn(async move {
                connection::serve(&context, stream, shutdown).await;
                drop(slot);
            });
        }
        drop(listener);
        let all_ended = slots.acquire_many(connections_max);
        if tokio::time::timeout(DRAIN_TIMEOUT, all_ended).await.is_err() {
            tracing::warn!("requests that still ran were cut off");
        }
    }
}

async fn accept(listener: &TcpListener) -> Option<TcpStream> {
    match listener.accept().await {
        Ok((stream, _)) => Some(stream),
        Err(error) => {
            tracing::warn!(%error, "could not accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Waits for a place, which a connection that does nothing has to give up.
async fn slot(slots: &Arc<Semaphore>, crowded: &Notify) -> Option<OwnedSemaphorePermit> {
    if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
        return Some(slot);
    }
    crowded.notify_one();
    let slot = Arc::clone(slots).acquire_owned().await.ok();
    // If a place came free by itself, nobody has to give up another one.
    std::pin::pin!(crowded.notified()).as_mut().enable();
    slot
}
