//! The connection to one destination: HTTP with hyper, TLS with rustls, one connection for each
//! request that is on its way at a time.

use super::config::{Credentials, DestinationConfig, Secret};
use super::tls::connector;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// What of an error's text is read and shown, as upstream does it.
const TEXT_BYTES_MAX: usize = 256;

/// Largest answer that is read to its end, so that its connection can be used again.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Longest time that an answer's text is waited for once its head is there.
const TEXT_WAIT: Duration = Duration::from_secs(5);

/// Connections that wait to be used again.
const IDLE_MAX: usize = 256;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The beginning of its text.
    pub text: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It took too long.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection could not be made or broke.
    #[error("{0}")]
    Connection(String),
    /// A file that the configuration names cannot be used.
    #[error("{}: {what}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

/// Sends requests to one destination.
pub struct Client {
    config: DestinationConfig,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    host: HeaderValue,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Client {
    /// Reads the files that TLS needs; connects to nobody yet.
    pub fn open(config: &DestinationConfig) -> Result<Client, ClientError> {
        let url = &config.url;
        let host = url.host_str().unwrap_or_default();
        let wrong = |error: &dyn std::fmt::Display| ClientError::Connection(error.to_string());
        let tls = match url.scheme() {
            "https" => {
                let name = config.tls.server_name.as_deref();
                let name = name.unwrap_or_else(|| host.trim_matches(['[', ']']));
                let name = ServerName::try_from(name.to_owned()).map_err(|e| wrong(&e))?;
                Some((connector(&config.tls)?, name))
            }
            _ => None,
        };
        let host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let host = HeaderValue::from_str(&host).map_err(|error| wrong(&error))?;
        Ok(Client { config: config.clone(), tls, host, idle: Mutex::default() })
    }

    /// Sends a body that is compressed already; `content_type` and `version` say what it is.
    pub async fn send(
        &self,
        body: Bytes,
        content_type: &'static str,
        version: &'static str,
        attempt: u32,
    ) -> Result<Answer, ClientError> {
        let timeout = self.config.remote_timeout;
        let sent = async {
            let mut request = self.request(body, content_type, version, attempt)?;
            // A connection that waited may have been closed meanwhile: that says nothing, as long as
            // nothing was sent on it.
            while let Some(mut connection) = self.waiting() {
                if connection.ready().await.is_err() {
                    continue;
                }
                match connection.try_send_request(request).await {
                    Ok(answer) => return Ok((answer, connection)),
                    Err(mut error) => match error.take_message() {
                        Some(unsent) => request = unsent,
                        None => return Err(broken(error.error())),
                    },
                }
            }
            let mut connection = self.connect().await?;
            let answer = connection.send_request(request).await;
            Ok((answer.map_err(|error| broken(&error))?, connection))
        };
        match tokio::time::timeout(timeout, sent).await {
            Ok(sent) => {
                let (answer, connection) = sent?;
                Ok(self.read(answer, connection).await)
            }
            Err(_) => Err(ClientError::Timeout(timeout)),
        }
    }

    fn waiting(&self) -> Option<SendRequest<Full<Bytes>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn request(
        &self,
        body: Bytes,
        content_type: &'static str,
        version: &'static str,
        attempt: u32,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let url = &self.config.url;
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(target)
            .header(header::HOST, self.host.clone())
            .header(header::CONTENT_TYPE, content_type)
            .header(header::CONTENT_ENCODING, "snappy")
            .header(header::USER_AGENT, concat!("tidepool/", env!("CARGO_PKG_VERSION")))
            .header("X-Prometheus-Remote-Write-Version", version);
        if attempt > 0 {
            request = request.header("Retry-Attempt", attempt.to_string());
        }
        for (name, value) in &self.config.headers {
            request = request.header(name, value);
        }
        if let Some(value) = authorization(&self.config.credentials)? {
            request = request.header(header::AUTHORIZATION, value);
        }
        request.body(Full::new(body)).map_err(|error| ClientError::Connection(error.to_string()))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let url = &self.config.url;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default().unwrap_or(80);
        let stream = TcpStream::connect((host, port)).await.map_err(|error| broken(&error))?;
        let _ = stream.set_nodelay(true);
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(stream),
            Some((connector, name)) => {
                let connected = connector.connect(name.clone(), stream).await;
                Box::new(connected.map_err(|error| broken(&error))?)
            }
        };
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
        tokio::spawn(async move {
            // Whoever waits for an answer hears of it.
            let _ = connection.await;
        });
        Ok(sender)
    }

    /// What an answer says. Its status counts even if its text does not come.
    async fn read(
        &self,
        answer: hyper::Response<Incoming>,
        connection: SendRequest<Full<Bytes>>,
    ) -> Answer {
        let (parts, body) = answer.into_parts();
        let read = Limited::new(body, ANSWER_BYTES_MAX).collect();
        let text = match tokio::time::timeout(TEXT_WAIT, read).await {
            Ok(Ok(read)) => {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < IDLE_MAX {
                    idle.push(connection);
                }
                let bytes = read.to_bytes();
                String::from_utf8_lossy(&bytes[..bytes.len().min(TEXT_BYTES_MAX)]).into_owned()
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "its text did not come".to_owned(),
        };
        Answer { status: parts.status, headers: parts.headers, text }
    }
}

/// A failure with its causes, which hyper keeps to itself otherwise.
fn broken(error: &dyn std::error::Error) -> ClientError {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    ClientError::Connection(text)
}

pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, ClientError> {
    let failed = |error: std::io::Error| ClientError::File {
        path: path.to_owned(),
        what: error.to_string(),
    };
    std::fs::read(path).map_err(failed)
}

fn read_secret(secret: &Secret) -> Result<String, ClientError> {
    match secret {
        Secret::Text(text) => Ok(text.clone()),
        Secret::File(path) => {
            let text = String::from_utf8(read_file(path)?);
            let what = "it is not text".to_owned();
            let text = text.map_err(|_| ClientError::File { path: path.clone(), what })?;
            Ok(text.trim().to_owned())
        }
    }
}

fn authorization(credentials: &Credentials) -> Result<Option<HeaderValue>, ClientError> {
    let text = match credentials {
        Credentials::None => return Ok(None),
        Credentials::Basic { username, password } => {
            let pair = format!("{username}:{}", read_secret(password)?);
            format!("Basic {}", STANDARD.encode(pair))
        }
        Credentials::Authorization { kind, credentials } => {
            format!("{kind} {}", read_secret(credentials)?)
        }
    };
    let wrong = |_| ClientError::Connection("the credentials cannot be sent in a header".into());
    let mut value = HeaderValue::from_str(&text).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(Some(value))
}
