//! Sends requests: headers with the configured credentials, redirects, and the connection pool.
//! Tokens are not handled here, because `oauth2` obtains them by exchanges of its own.

use crate::ClientError;
use crate::ask::{Ask, uri, with_port};
use crate::config::{Credentials, HttpClientConfig};
use crate::connect::{ConnectLimits, Connector};
use crate::credentials::{add_headers, authorization};
use crate::files::off_network;
use crate::proxy::{Proxies, url_credentials};
use crate::redirect::{REDIRECTS_MAX, is_trusted, method, redirect, without_secrets};
use crate::stream::Received;
use crate::tls::{LazyTls, Stamps, stamps};
use crate::upload::StreamedBody;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::{Method, Request, Response};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use url::Url;

/// Text of a hyper error that no method of hyper's error type identifies.
const UNEXPECTED: &str = "unexpected message from connection";

/// Maximum number of headers of a response. Go limits only their size.
const HEADERS_MAX: usize = 512;

/// Maximum number of idle connections to one host.
const IDLE_MAX: usize = 256;

/// Time for which an idle connection is kept, as upstream; requests are usually more frequent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Interval of pings on an HTTP/2 connection that receives nothing; as upstream.
const PING_INTERVAL: Duration = Duration::from_secs(60);

/// User agent of requests that set none.
const AGENT: &str = concat!("tidepool/", env!("CARGO_PKG_VERSION"));

type Pool = legacy::Client<Connector, Either<Full<Bytes>, StreamedBody>>;

/// Sends requests as configured, but without OAuth 2 tokens. Clones share connections.
#[derive(Clone)]
pub(crate) struct Exchange(Arc<Inner>);

struct Inner {
    config: HttpClientConfig,
    unix_socket: Option<PathBuf>,
    limits: ConnectLimits,
    proxies: Arc<Proxies>,
    live: Mutex<Live>,
}

/// Connection pool, and the state of the certificate and key files that its connections use.
struct Live {
    stamps: Stamps,
    pool: Pool,
}

/// Whether a request that follows a redirect may still carry secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    All,
    NoSecrets,
}

impl Exchange {
    /// Reads all files that the configuration names, so that errors in them appear when the
    /// configuration is loaded, not in each request. Does not connect. With `unix_socket`, all
    /// requests use this socket, whatever the host of their URL.
    pub fn open(
        config: &HttpClientConfig,
        unix_socket: Option<PathBuf>,
        limits: ConnectLimits,
    ) -> Result<Exchange, ClientError> {
        let variable = |name: &str| std::env::var(name).ok();
        let proxies = Arc::new(Proxies::new(&config.proxy, variable)?);
        // Read only to report errors; each request reads the files again.
        authorization(&config.credentials)?;
        add_headers(&mut HeaderMap::new(), &config.headers)?;
        let stamps = stamps(&config.tls);
        let tls = lazy_tls(config);
        if let Some(name) = &config.tls.server_name {
            tls.server_name(name)?;
        }
        if config.tls.is_set() {
            tls.get()?;
        }
        let connector = Connector::new(tls, Arc::clone(&proxies), unix_socket.clone(), limits);
        let pool = pool(connector);
        let live = Mutex::new(Live { stamps, pool });
        let config = config.clone();
        Ok(Exchange(Arc::new(Inner { config, unix_socket, limits, proxies, live })))
    }

    pub fn config(&self) -> &HttpClientConfig {
        &self.0.config
    }

    /// Checks that a request could be made, which reports errors before the first request.
    pub fn check(&self, ask: &Ask) -> Result<(), ClientError> {
        let inner = &self.0;
        if ask.url.scheme() == "https" {
            let tls = lazy_tls(&inner.config);
            tls.server_name(ask.url.host_str().unwrap_or_default().trim_matches(['[', ']']))?;
            tls.get()?;
        }
        inner.request(ask, &ask.url, &ask.method, Trust::NoSecrets).map(drop)
    }

    /// Sends a request, follows redirects if configured, and returns the response's head with the
    /// URL that was requested last.
    pub async fn send(&self, ask: &Ask) -> Result<(Response<Incoming>, Url), ClientError> {
        let follows = self.0.config.follow_redirects.unwrap_or(true);
        let mut url = ask.url.clone();
        let mut asked_by = ask.method.clone();
        // Cloned only on a redirect; most requests are not redirected.
        let mut ask = Cow::Borrowed(ask);
        let mut trust = Trust::All;
        for _ in 0..REDIRECTS_MAX {
            let (request, pool) = Inner::prepare(&self.0, &ask, &url, &asked_by, trust).await?;
            let answer = once(&pool, request).await?;
            let next = match follows {
                true => redirect(&url, answer.status(), answer.headers())?,
                false => None,
            };
            let Some(next) = next else { return Ok((answer, url)) };
            if !next.repeats {
                // A GET without a body needs no content type.
                asked_by = method(&asked_by);
                let ask = ask.to_mut();
                ask.body = Bytes::new();
                ask.headers.remove(CONTENT_TYPE);
            }
            // After leaving the first host, no secrets are sent, even on return to that host.
            if !is_trusted(&ask.url, &next.url) {
                trust = Trust::NoSecrets;
            }
            url = next.url;
        }
        Err(ClientError::Redirects(REDIRECTS_MAX))
    }

    /// Sends a request with a body that can be sent only once; follows no redirect.
    pub async fn send_stream(
        &self,
        ask: &Ask,
        body: StreamedBody,
    ) -> Result<Response<Incoming>, ClientError> {
        let (request, pool) =
            Inner::prepare(&self.0, ask, &ask.url, &ask.method, Trust::All).await?;
        let sent = asked(&pool, request.map(|_| Either::Right(body))).await;
        answered(sent)
    }
}

impl Inner {
    /// Creates a request, and returns the pool for it. Files are read on another thread.
    async fn prepare(
        this: &Arc<Inner>,
        ask: &Ask,
        url: &Url,
        method: &Method,
        trust: Trust,
    ) -> Result<(Request<Full<Bytes>>, Pool), ClientError> {
        if !this.config.names_files() {
            return Ok((this.request(ask, url, method, trust)?, this.pool()));
        }
        let (inner, ask) = (Arc::clone(this), ask.clone());
        let (url, method) = (url.clone(), method.clone());
        off_network(move || Ok((inner.request(&ask, &url, &method, trust)?, inner.pool()))).await
    }

    /// Creates a request with all headers. With OAuth 2, credentials in the URL are not sent.
    fn request(
        &self,
        ask: &Ask,
        url: &Url,
        method: &Method,
        trust: Trust,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut headers = ask.headers.clone();
        add_headers(&mut headers, &self.config.headers)?;
        if !headers.contains_key(AUTHORIZATION) {
            let takes_tokens = matches!(self.config.credentials, Credentials::OAuth2(_));
            let configured = authorization(&self.config.credentials)?;
            let value = match configured {
                None if !takes_tokens => url_credentials("the URL", url)?,
                configured => configured,
            };
            if let Some(value) = value {
                headers.insert(AUTHORIZATION, value);
            }
        }
        // After all headers that may be secret have been added.
        if trust == Trust::NoSecrets {
            headers = without_secrets(headers);
        }
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        // Only requests for http URLs carry proxy headers; a tunnel has its own `CONNECT` headers.
        if url.scheme() == "http" && self.unix_socket.is_none() {
            let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
            let port = url.port_or_known_default().unwrap_or(80);
            let proxy = self.proxies.for_host(false, host, port);
            if let Some(value) = proxy.and_then(|proxy| proxy.authorization()) {
                headers.insert(PROXY_AUTHORIZATION, value.clone());
            }
        }
        // The zone applies to the first host only, not to another host of a redirect.
        let zone = ask.zone.as_deref().filter(|_| url.host() == ask.url.host());
        let uri = uri(url, zone)?;
        if let (Some(_), Some(host)) = (zone, url.host_str()) {
            // The zone has no meaning for the server (RFC 6874, section 4).
            let host = HeaderValue::try_from(with_port(host.to_owned(), url));
            headers.insert(HOST, host.map_err(|error| ClientError::Url(error.to_string()))?);
        }
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .body(Full::new(ask.body.clone()))
            .map_err(|error| ClientError::Url(error.to_string()))?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Returns a pool that uses the current files. If changed files are not valid, returns the pool
    /// with the earlier files.
    fn pool(&self) -> Pool {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        // Without files nothing can change.
        if live.stamps.is_empty() {
            return live.pool.clone();
        }
        let now = stamps(&self.config.tls);
        if now != live.stamps {
            // Updated even if the files are not valid, so that each change is reported once.
            live.stamps = now;
            let tls = lazy_tls(&self.config);
            match tls.get() {
                Ok(_) => {
                    let (proxies, socket) = (Arc::clone(&self.proxies), self.unix_socket.clone());
                    live.pool = pool(Connector::new(tls, proxies, socket, self.limits));
                }
                Err(error) => tracing::warn!(
                    %error,
                    "certificates or keys changed and cannot be used; requests go on with those \
                     that were read before"
                ),
            }
        }
        live.pool.clone()
    }
}

/// Sends a request. The server may close an idle connection just when it is reused; then a GET or
/// HEAD is sent again.
async fn once(
    pool: &Pool,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, ClientError> {
    let changes_nothing = matches!(*request.method(), Method::GET | Method::HEAD);
    // Cloning is cheap, because clones share the bytes of the body.
    let again = changes_nothing.then(|| request.clone());
    let sent = match (asked(pool, request.map(Either::Left)).await, again) {
        (Err(error), Some(request)) if has_waited(&error) => {
            asked(pool, request.map(Either::Left)).await
        }
        (sent, _) => sent,
    };
    answered(sent)
}

/// Passes a request to the pool. A function of its own, because the HTTP code is compiled where the
/// pool is called, and an `async fn` is compiled in each crate that awaits it.
fn asked(
    pool: &Pool,
    request: Request<Either<Full<Bytes>, StreamedBody>>,
) -> legacy::ResponseFuture {
    pool.request(request)
}

/// Records in the connection that it has delivered a response.
fn answered(
    sent: Result<Response<Incoming>, legacy::Error>,
) -> Result<Response<Incoming>, ClientError> {
    let answer = sent.map_err(|error| failed(&error))?;
    if let Some(received) = answer.extensions().get::<Received>() {
        received.set_answered();
    }
    Ok(answer)
}

fn lazy_tls(config: &HttpClientConfig) -> LazyTls {
    LazyTls::new(&config.tls, config.enable_http2.unwrap_or(true))
}

fn pool(connector: Connector) -> Pool {
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_MAX)
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        // As in Go's client, which upstream uses: servers of devices often send such headers.
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_max_headers(HEADERS_MAX)
        .build(connector)
}

/// Returns whether a request failed on a reused connection, before any byte of a response.
fn has_waited(error: &legacy::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    let mut is_closed = false;
    // The system's error is among the causes of the pool's and hyper's errors.
    while let Some(error) = cause {
        let of_hyper = error.downcast_ref::<hyper::Error>();
        is_closed |= of_hyper.is_some_and(|error| {
            error.is_incomplete_message() || error.is_canceled() || error.is_closed()
        });
        let of_system = error.downcast_ref::<std::io::Error>();
        is_closed |= of_system.is_some_and(|error| {
            use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
            matches!(error.kind(), BrokenPipe | ConnectionReset)
        });
        cause = error.source();
    }
    is_closed && received(error).is_some_and(|received| received.has_answered())
}

/// Returns the record of the connection on which a request failed.
fn received(error: &legacy::Error) -> Option<Received> {
    let mut extensions = hyper::http::Extensions::new();
    error.connect_info()?.get_extras(&mut extensions);
    extensions.remove()
}

/// Converts an error; leaves out the pool's own text.
fn failed(error: &legacy::Error) -> ClientError {
    let cause = std::error::Error::source(error);
    let broken = match cause.and_then(|cause| cause.downcast_ref::<ClientError>()) {
        Some(own) => own.clone(),
        None => ClientError::broken(cause.unwrap_or(error)),
    };
    let broken = match broken {
        ClientError::Connection(what) if error.is_connect() => ClientError::Unreachable(what),
        broken => broken,
    };
    let ClientError::Connection(what) = &broken else { return broken };
    match received(error).and_then(|received| received.foreign_line()) {
        Some(line) => ClientError::Connection(format!(
            "{what}: the server does not speak HTTP, it begins with {line:?}"
        )),
        // hyper returns no connection info if bytes arrived before the request.
        None if what.contains(UNEXPECTED) => ClientError::Connection(
            "the server does not speak HTTP, it sends before it is asked".into(),
        ),
        None => broken,
    }
}
