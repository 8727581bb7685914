//! Connects to a host, to a Unix socket, or through a proxy, with TLS for https URLs.

use crate::ClientError;
use crate::proxy::{Proxies, Proxy};
use crate::stream::{Socket, Stream};
use crate::tls::LazyTls;
use crate::zone::looked_up;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1::handshake;
use hyper::header::{HOST, HeaderMap};
use hyper::http::uri::Scheme;
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt::set_tcp_user_timeout;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tidepool_settings::redact::shown;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;

type BoxedStream = Box<dyn Stream>;

/// Limits on connections, in addition to the deadline of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectLimits {
    /// Maximum time for establishing a connection.
    pub connect: Option<Duration>,
    /// Maximum time that sent bytes may remain unacknowledged (`TCP_USER_TIMEOUT` of `tcp(7)`).
    pub unacknowledged: Option<Duration>,
}

/// Establishes connections; clones share their settings.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Parts>);

struct Parts {
    tls: LazyTls,
    proxies: Arc<Proxies>,
    /// Socket for all requests, whatever host they have.
    unix_socket: Option<PathBuf>,
    limits: ConnectLimits,
}

impl Connector {
    pub fn new(
        tls: LazyTls,
        proxies: Arc<Proxies>,
        unix_socket: Option<PathBuf>,
        limits: ConnectLimits,
    ) -> Connector {
        Connector(Arc::new(Parts { tls, proxies, unix_socket, limits }))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Socket>;
    type Error = ClientError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Socket>, ClientError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let parts = Arc::clone(&self.0);
        Box::pin(async move {
            let connected = match parts.limits.connect {
                None => parts.connect(&to).await,
                Some(limit) => {
                    let connected = timeout(limit, parts.connect(&to)).await;
                    connected.unwrap_or(Err(ClientError::Timeout(limit)))
                }
            };
            connected.map(TokioIo::new)
        })
    }
}

impl Parts {
    async fn connect(&self, to: &Uri) -> Result<Socket, ClientError> {
        let is_https = to.scheme() == Some(&Scheme::HTTPS);
        let address = looked_up(to.host().unwrap_or_default());
        // The zone selects an interface of this machine; proxies and certificates ignore it.
        let host = address.split('%').next().unwrap_or_default();
        let port = to.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let proxy = self.proxies.for_host(is_https, host, port);
        let (stream, is_proxied) = match (&self.unix_socket, proxy) {
            (Some(path), _) => {
                let stream = UnixStream::connect(path).await;
                (
                    Box::new(stream.map_err(|error| ClientError::broken(&error))?) as BoxedStream,
                    false,
                )
            }
            (None, None) => (self.tcp(&address, port).await?, false),
            // For http URLs, the proxy receives the whole URL; https goes through a tunnel.
            (None, Some(proxy)) => (self.through(proxy, to, is_https, port).await?, !is_https),
        };
        if !is_https {
            return Ok(Socket::new(stream, false, is_proxied));
        }
        let name = self.tls.server_name(host)?;
        let connector = TlsConnector::from(self.tls.get()?);
        let connected = connector.connect(name, stream).await;
        let stream = connected.map_err(|error| ClientError::broken(&error))?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Socket::new(Box::new(stream), is_http2, false))
    }

    /// Connects to a proxy, and for https through a tunnel to the host.
    async fn through(
        &self,
        proxy: &Proxy,
        to: &Uri,
        is_https: bool,
        port: u16,
    ) -> Result<BoxedStream, ClientError> {
        let failed = |error: ClientError| {
            ClientError::Connection(format!("proxy {}: {error}", shown(&proxy.url)))
        };
        // `connect` needs an IPv6 address without the brackets of a URL.
        let host = proxy.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let proxy_port = proxy.url.port_or_known_default().unwrap_or(80);
        let mut stream = self.tcp(host, proxy_port).await.map_err(failed)?;
        if proxy.url.scheme() == "https" {
            let connector = TlsConnector::from(self.tls.get()?);
            let name = self.tls.server_name(host)?;
            // `CONNECT` is sent in HTTP/1.1, so HTTP/2 must not be negotiated with the proxy.
            let connector = connector.with_alpn(vec![b"http/1.1".to_vec()]);
            let connected = connector.connect(name, stream).await;
            stream = Box::new(connected.map_err(|error| failed(ClientError::broken(&error)))?);
        }
        if !is_https {
            return Ok(stream);
        }
        let authority = format!("{}:{port}", to.host().unwrap_or_default());
        tunnel(stream, &authority, &proxy.connect_headers).await.map_err(failed)
    }

    async fn tcp(&self, host: &str, port: u16) -> Result<BoxedStream, ClientError> {
        let stream = TcpStream::connect((host, port)).await;
        let stream = stream.map_err(|error| ClientError::broken(&error))?;
        // Without `nodelay`, a request of two segments would wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        if let Some(limit) = self.limits.unacknowledged {
            let millis = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
            // If the system lacks the option, the deadline of the request still applies.
            let _ = set_tcp_user_timeout(&stream, millis);
        }
        Ok(Box::new(stream))
    }
}

/// Requests a tunnel to a host and port from a proxy.
async fn tunnel(
    stream: BoxedStream,
    authority: &str,
    headers: &HeaderMap,
) -> Result<BoxedStream, ClientError> {
    let broken = |error: hyper::Error| ClientError::broken(&error);
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
    tokio::spawn(async move {
        // The request that waits for the response returns the same error.
        let _ = connection.with_upgrades().await;
    });
    let request = Request::builder().method(Method::CONNECT).uri(authority).header(HOST, authority);
    let mut request =
        request.body(Empty::<Bytes>::new()).map_err(|error| ClientError::Url(error.to_string()))?;
    request.headers_mut().extend(headers.clone());
    let answer = sender.send_request(request).await.map_err(broken)?;
    if !answer.status().is_success() {
        let what = format!("CONNECT {authority} is answered {}", answer.status());
        return Err(ClientError::Connection(what));
    }
    let upgraded = hyper::upgrade::on(answer).await.map_err(broken)?;
    Ok(Box::new(TokioIo::new(upgraded)))
}
