//! A connection, and how long each of its phases took.

use crate::error::ProbeError;
use crate::tls::TlsFacts;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// Bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection.
pub(crate) struct Connection {
    /// By which bytes go.
    pub stream: Box<dyn Stream>,
    /// How long it took.
    pub connect: Duration,
    /// How long the handshake of TLS took, and what it has shown; none without TLS.
    pub tls: Option<(Duration, TlsFacts)>,
    /// Whether HTTP/2 is spoken by it.
    pub is_http2: bool,
}

/// What TLS needs.
pub(crate) struct Tls {
    /// Whom to trust, and what to show.
    pub config: Arc<ClientConfig>,
    /// Whose certificate the server must show.
    pub name: ServerName<'static>,
    /// Whether its certificate is verified.
    pub is_verified: bool,
}

/// Connects, and with `tls` shakes hands.
pub(crate) async fn connect(
    address: SocketAddr,
    tls: Option<Tls>,
) -> Result<Connection, ProbeError> {
    let begun = Instant::now();
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|source| ProbeError::Connect { address, source })?;
    let connect = begun.elapsed();
    // Without it, requests of two segments wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let Some(Tls { config, name, is_verified }) = tls else {
        return Ok(Connection { stream: Box::new(stream), connect, tls: None, is_http2: false });
    };
    let begun = Instant::now();
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(ProbeError::Tls)?;
    let took = begun.elapsed();
    let (_, connection) = stream.get_ref();
    let is_http2 = connection.alpn_protocol() == Some(b"h2");
    let facts = TlsFacts::of(connection, is_verified);
    Ok(Connection { stream: Box::new(stream), connect, tls: Some((took, facts)), is_http2 })
}
