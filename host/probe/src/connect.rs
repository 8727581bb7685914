//! Opens a connection and measures its phases.

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

/// A byte stream in both directions, with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// An open connection with its measurements.
pub(crate) struct Connection {
    pub stream: Box<dyn Stream>,
    /// Duration of the TCP handshake.
    pub connect: Duration,
    /// Duration of the TLS handshake, and facts about it; `None` without TLS.
    pub tls: Option<(Duration, TlsFacts)>,
    /// Whether ALPN has chosen HTTP/2.
    pub is_http2: bool,
}

/// Settings of a TLS handshake.
pub(crate) struct Tls {
    /// Trusted certificates and the client's own certificate.
    pub config: Arc<ClientConfig>,
    /// Server name for SNI, and for the verification of the certificate.
    pub name: ServerName<'static>,
    /// Whether the server's certificate is verified.
    pub is_verified: bool,
}

/// Connects, and does a TLS handshake if `tls` is given.
pub(crate) async fn connect(
    address: SocketAddr,
    tls: Option<Tls>,
) -> Result<Connection, ProbeError> {
    let begun = Instant::now();
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|source| ProbeError::Connect { address, source })?;
    let connect = begun.elapsed();
    // With Nagle's algorithm, a request of two segments would wait for an acknowledgement. If
    // setting the option fails, the probe is only slower.
    let _ = stream.set_nodelay(true);
    let Some(Tls { config, name, is_verified }) = tls else {
        return Ok(Connection { stream: Box::new(stream), connect, tls: None, is_http2: false });
    };
    // TCP and TLS are separate phases of `probe_http_duration_seconds`.
    let begun = Instant::now();
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(ProbeError::Tls)?;
    let took = begun.elapsed();
    let (_, connection) = stream.get_ref();
    let is_http2 = connection.alpn_protocol() == Some(b"h2");
    let facts = TlsFacts::of(connection, is_verified);
    Ok(Connection { stream: Box::new(stream), connect, tls: Some((took, facts)), is_http2 })
}
