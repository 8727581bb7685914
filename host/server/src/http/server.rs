//! The accept loop of the server, and the limit on open connections.

use super::connection;
use super::context::{Context, Crowded, ServerConfig};
use super::durations::Durations;
use super::handler::Handler;
use super::metrics;
use super::routes;
use crate::access::Access;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidepool_lifecycle::boxed::BoxFuture;
use tidepool_lifecycle::shutdown::Shutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Time after the stop signal for running requests to complete.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after a failed accept, usually because of too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for idle connections to close before a connection with a slow body is closed.
const IDLE_LEAVE: Duration = Duration::from_millis(100);

pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    context: Context,
}

impl Server {
    pub fn new(listener: TcpListener, config: ServerConfig) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let context = Context::new(config, Durations::of(routes::handlers().map(Handler::name)));
        let own = context.clone();
        context.scraping.own_metrics().set(move || {
            let context = own.now();
            async move { metrics::page(&context).await }
        });
        Ok(Server { listener, address, context })
    }

    /// Returns the bound address. If port 0 was configured, it has the port chosen by the system.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts connections until the stop signal, then waits for running requests.
    pub fn run(self, shutdown: Shutdown) -> BoxFuture<'static, ()> {
        Box::pin(self.serve(shutdown))
    }

    async fn serve(self, mut shutdown: Shutdown) {
        let Server { listener, context, .. } = self;
        tokio::spawn(Access::watch(context.current_access(), shutdown.clone()));
        let connections_max = context.http.connections_max;
        let slots = Arc::new(Semaphore::new(connections_max as usize));
        loop {
            let accepted = async {
                // Accepted before a slot is free, so that clients connect and their requests wait.
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
        // Closed at once, so that new clients are refused instead of waiting in the accept queue.
        drop(listener);
        // All slots are free when all connections have ended.
        let all_ended = slots.acquire_many(connections_max);
        if tokio::time::timeout(DRAIN_TIMEOUT, all_ended).await.is_err() {
            tracing::warn!("running requests were aborted at the stop");
        }
        // Otherwise the numbers of suppressed log lines would be lost.
        context.requests.end_all();
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

/// Waits for a slot. Closes an idle connection if needed, or else one with a slow body.
async fn slot(slots: &Arc<Semaphore>, crowded: &Crowded) -> Option<OwnedSemaphorePermit> {
    if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
        return Some(slot);
    }
    // If no connection is idle now, the notification is stored for the next idle one.
    crowded.idle.notify_one();
    let free = Arc::clone(slots).acquire_owned();
    let mut free = std::pin::pin!(free);
    let slot = loop {
        tokio::select! {
            slot = &mut free => break slot.ok(),
            () = tokio::time::sleep(IDLE_LEAVE) => crowded.slow.notify_one(),
        }
    };
    // Takes back stored notifications: if a slot became free otherwise, none needs to close.
    for crowded in [&crowded.idle, &crowded.slow] {
        std::pin::pin!(crowded.notified()).as_mut().enable();
    }
    slot
}
