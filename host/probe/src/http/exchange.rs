//! Sends one request over a connection of its own, and measures its phases.

use crate::config::HttpProbe;
use crate::connect::{Connection, Tls, connect};
use crate::error::ProbeError;
use crate::report::{HTTP_BODY_LENGTH, HTTP_DURATION, Report};
use crate::tls::TlsFacts;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;
use tidepool_client::ClientError;
use tidepool_client::parts::LazyTls;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::pki_types::ServerName;
use url::Url;

/// A request of a probe: the first request, or a request after a redirect.
pub(super) struct Hop {
    pub url: Url,
    /// Resolved address of the URL's host.
    pub address: IpAddr,
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Whether the request goes to the target itself, not to another host that it redirects to.
    pub is_first_host: bool,
}

/// A response whose body has not been read yet.
pub(super) struct Answer {
    pub response: Response<Incoming>,
    pub method: Method,
    /// Time at which the response's headers arrived.
    pub begun: Instant,
    /// Facts of the TLS handshake; `None` without TLS.
    pub tls: Option<TlsFacts>,
    /// The body read so far; empty if no rule matches the body.
    pub body: BytesMut,
    _connection: Driver,
}

/// Task that drives a connection; dropping the handle aborts the task.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a request over a new connection and waits for the response's headers.
pub(super) async fn send(
    probe: &HttpProbe,
    hop: &Hop,
    report: &mut Report,
) -> Result<Answer, ProbeError> {
    let port = hop.url.port_or_known_default().unwrap_or(80);
    let tls = match hop.url.scheme() {
        "https" => Some(tls(probe, hop)?),
        _ => None,
    };
    let connection = connect(SocketAddr::new(hop.address, port), tls).await?;
    let Connection { stream, connect, tls, is_http2 } = connection;
    // `add_of`, because phases are summed over redirects.
    let mut phase = |name: &str, seconds: f64| report.add_of(HTTP_DURATION, name, seconds);
    phase("connect", connect.as_secs_f64());
    if let Some((took, _)) = &tls {
        phase("tls", took.as_secs_f64());
    }
    let request = request(hop, is_http2)?;
    let begun = Instant::now();
    let stream = TokioIo::new(stream);
    let (response, driver) = if is_http2 {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
        let driver = drive(connection);
        (sender.send_request(request).await?, driver)
    } else {
        let (mut sender, connection) = http1::Builder::new()
            // Go's client accepts such headers, so a target that upstream can probe must not fail
            // here.
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .handshake(stream)
            .await?;
        let driver = drive(connection);
        (sender.send_request(request).await?, driver)
    };
    phase("processing", begun.elapsed().as_secs_f64());
    Ok(Answer {
        response,
        method: hop.method.clone(),
        begun: Instant::now(),
        tls: tls.map(|(_, facts)| facts),
        body: BytesMut::new(),
        _connection: driver,
    })
}

fn drive(connection: impl Future<Output = hyper::Result<()>> + Send + 'static) -> Driver {
    Driver(tokio::spawn(async move {
        // `send_request` returns the same error, so it is ignored here.
        let _ = connection.await;
    }))
}

/// Creates the TLS settings for each request, because certificate files may change.
fn tls(probe: &HttpProbe, hop: &Hop) -> Result<Tls, ProbeError> {
    let config = &probe.client.tls;
    let made = LazyTls::new(config, probe.client.enable_http2.unwrap_or(true));
    let host = super::host_of(&hop.url);
    let named = hop.headers.get(HOST).and_then(|value| value.to_str().ok());
    let name = match hop.is_first_host {
        // A configured `Host` names the virtual host whose certificate the server presents.
        true => made.server_name(named.map_or(host, without_port))?,
        // `server_name` in the configuration applies to the target, not to other hosts.
        false => ServerName::try_from(host.to_owned())
            .map_err(|_| ClientError::ServerName(host.to_owned()))?,
    };
    Ok(Tls { config: made.get()?, name, is_verified: !config.insecure_skip_verify })
}

/// Returns a host without its port and without the brackets of an IPv6 address.
fn without_port(host: &str) -> &str {
    let bare = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    bare.map_or(host, |(host, _)| host).trim_matches(['[', ']'])
}

fn request(hop: &Hop, is_http2: bool) -> Result<Request<Full<Bytes>>, ProbeError> {
    let mut headers = hop.headers.clone();
    let host = hop.url.host_str().unwrap_or_default();
    // `port` is absent for the scheme's default port, which `Host` leaves out as well.
    let authority = match hop.url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let target = match hop.url.query() {
        Some(query) => format!("{}?{query}", hop.url.path()),
        None => hop.url.path().to_owned(),
    };
    let uri = match is_http2 {
        true => {
            // HTTP/2 carries the host as `:authority` instead of a header.
            let named = headers.remove(HOST);
            let named = named.as_ref().and_then(|value| value.to_str().ok());
            let uri = hyper::Uri::builder().scheme(hop.url.scheme());
            uri.authority(named.unwrap_or(&authority)).path_and_query(target).build()?
        }
        false => {
            let value = HeaderValue::try_from(authority).map_err(hyper::http::Error::from)?;
            headers.entry(HOST).or_insert(value);
            // Each request has its own connection, so the server need not keep it open.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            hyper::Uri::builder().path_and_query(target).build()?
        }
    };
    let request = Request::builder().method(&hop.method).uri(uri);
    let mut request = request.body(Full::new(hop.body.clone()))?;
    *request.headers_mut() = headers;
    Ok(request)
}

impl Answer {
    /// Reads the body up to `body_size_limit`. A longer body is an error.
    pub async fn read(&mut self, probe: &HttpProbe, report: &mut Report) -> Result<(), ProbeError> {
        let limit = probe.body_bytes_max;
        let keeps = probe.looks_at_body();
        let mut bytes = 0_u64;
        while let Some(frame) = self.response.body_mut().frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            // `bytes` never exceeds `limit`, because `taken` is at most `left`.
            let left = usize::try_from(limit - bytes).unwrap_or(usize::MAX);
            let taken = data.len().min(left);
            bytes += taken as u64;
            // Set for each frame, so that a probe that times out reports the length so far.
            report.set(HTTP_BODY_LENGTH, bytes as f64);
            if keeps {
                self.body.extend_from_slice(&data[..taken]);
            }
            if data.len() > left {
                return Err(ProbeError::BodySize(limit));
            }
        }
        Ok(())
    }
}
