//! The accept loop.

use super::routes;
use crate::config::HttpConfig;
use crate::shutdown::Shutdown;
use crate::store::Store;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How long a client may take to send a request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long running requests may go on after the stop signal.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after a failed accept, which mostly means that file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a server is made of.
pub struct ServerConfig {
    /// What it serves.
    pub store: Store,
    /// Where and within which bounds.
    pub http: HttpConfig,
}

/// A bound server.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    context: Arc<Context>,
}

/// What every request may use.
pub(super) struct Context {
    pub store: Store,
    pub http: HttpConfig,
    pub counters: HttpCounters,
}

/// What the server counted.
#[derive(Default)]
pub(super) struct HttpCounters {
    pub write_requests: AtomicU64,
    pub write_requests_failed: AtomicU64,
    pub read_requests: AtomicU64,
    pub read_requests_failed: AtomicU64,
}

impl Server {
    /// Binds the address.
    pub async fn bind(config: ServerConfig) -> io::Result<Server> {
        let ServerConfig { store, http } = config;
        let listener = TcpListener::bind(http.listen).await.map_err(|error| {
            io::Error::new(error.kind(), format!("could not listen on {}: {error}", http.listen))
        })?;
        let address = listener.local_addr()?;
        let context = Arc::new(Context { store, http, counters: HttpCounters::default() });
        Ok(Server { listener, address, context })
    }

    /// The address it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the stop signal, then lets running requests end.
    pub async fn run(self, mut shutdown: Shutdown) {
        let Server { listener, context, .. } = self;
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        let graceful = GracefulShutdown::new();
        let connections = Arc::new(Semaphore::new(context.http.connections_max));
        loop {
            let accepted = tokio::select! {
                () = shutdown.wait() => break,
                accepted = accept(&listener, &connections) => accepted,
            };
            let Some((stream, slot)) = accepted else { continue };
            let context = Arc::clone(&context);
            let service = service_fn(move |request| routes::handle(Arc::clone(&context), request));
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                // A connection that breaks is the client's affair; the next one is independent.
                if let Err(error) = connection.await {
                    tracing::debug!(error, "a connection ended early");
                }
                drop(slot);
            });
        }
        drop(listener);
        if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
            tracing::warn!("requests that still ran were cut off");
        }
    }
}

async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(connections).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Answers are small and awaited; a failure to say so costs only delay.
            let _ = stream.set_nodelay(true);
            Some((stream, slot))
        }
        Err(error) => {
            tracing::warn!(%error, "could not accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
