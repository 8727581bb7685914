//! The connection to one destination: HTTP with hyper, TLS with rustls, one connection for each
//! request that is on its way at a time.

use super::config::{Credentials, DestinationConfig, Secret};
use super::tls::connector;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::fs::File;
use std::io::Read as _;
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

/// Largest file of a secret, a key or certificates: a bundle of the world's authorities has 300 KiB.
const FILE_BYTES_MAX: u64 = 4 << 20;

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
    /// The name that the receiver's certificate must have is none.
    #[error("tls_config.server_name {0:?} is neither a host's name nor an address")]
    ServerName(String),
    /// The credentials have characters that no header may have.
    #[error("{0} has characters that cannot be sent in a header")]
    Credentials(&'static str),
    /// A file that the configuration names cannot be used.
    #[error("{key} {}: {what}", path.display())]
    File {
        /// The key that names it.
        key: &'static str,
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
    /// Reads all files that the configuration names, so that what is wrong with them is known when it
    /// is loaded, and not request by request; connects to nobody yet.
    pub fn open(config: &DestinationConfig) -> Result<Client, ClientError> {
        let url = &config.url;
        let host = url.host_str().unwrap_or_default();
        let wrong = |error: &dyn std::fmt::Display| ClientError::Connection(error.to_string());
        let is_tls = url.scheme() == "https";
        let tls = match is_tls || config.tls.is_set() {
            true => {
                let name = config.tls.server_name.as_deref();
                let name = name.unwrap_or_else(|| host.trim_matches(['[', ']']));
                let server_name = |_| ClientError::ServerName(name.to_owned());
                let name = ServerName::try_from(name.to_owned()).map_err(server_name)?;
                Some((connector(&config.tls)?, name)).filter(|_| is_tls)
            }
            false => None,
        };
        let host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let host = HeaderValue::from_str(&host).map_err(|error| wrong(&error))?;
        let client = Client { config: config.clone(), tls, host, idle: Mutex::default() };
        // Whatever keeps a request from being made would do so each time.
        client.request(Bytes::new(), "application/x-protobuf", "0.1.0", 0)?;
        Ok(client)
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
        let mut begin = Vec::new();
        let read = tokio::time::timeout(TEXT_WAIT, read_text(body, &mut begin)).await;
        let mut text = String::from_utf8_lossy(&begin).into_owned();
        match read {
            Ok(Ok(true)) => {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < IDLE_MAX {
                    idle.push(connection);
                }
            }
            Ok(Ok(false)) => {}
            Ok(Err(error)) => text.push_str(&format!(" ({error})")),
            Err(_) => text.push_str(" (the rest of the answer did not come)"),
        }
        Answer { status: parts.status, headers: parts.headers, text }
    }
}

/// Reads an answer's text and keeps its beginning; gives whether it ended before it was too long.
async fn read_text(mut body: Incoming, begin: &mut Vec<u8>) -> Result<bool, hyper::Error> {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        bytes += data.len();
        let wanted = TEXT_BYTES_MAX.saturating_sub(begin.len());
        begin.extend_from_slice(data.get(..wanted.min(data.len())).unwrap_or_default());
        if bytes > ANSWER_BYTES_MAX {
            return Ok(false);
        }
    }
    Ok(true)
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

/// Reads a file that a key of the configuration names.
pub(super) fn read_file(key: &'static str, path: &Path) -> Result<Vec<u8>, ClientError> {
    let failed = |what: String| ClientError::File { key, path: path.to_owned(), what };
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(error.to_string()))?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(failed(format!("it has more than {FILE_BYTES_MAX} bytes"))),
        false => Ok(bytes),
    }
}

fn read_secret(key: &'static str, secret: &Secret) -> Result<String, ClientError> {
    match secret {
        Secret::Text(text) => Ok(text.clone()),
        Secret::File(path) => {
            let text = String::from_utf8(read_file(key, path)?);
            let what = "it is not text".to_owned();
            let text = text.map_err(|_| ClientError::File { key, path: path.clone(), what })?;
            Ok(text.trim().to_owned())
        }
    }
}

fn authorization(credentials: &Credentials) -> Result<Option<HeaderValue>, ClientError> {
    let (key, text) = match credentials {
        Credentials::None => return Ok(None),
        Credentials::Basic { username, password } => {
            let secret = read_secret("basic_auth.password_file", password)?;
            let pair = format!("{username}:{secret}");
            ("basic_auth", format!("Basic {}", STANDARD.encode(pair)))
        }
        Credentials::Authorization { kind, credentials } => {
            let secret = read_secret("authorization.credentials_file", credentials)?;
            ("authorization", format!("{kind} {secret}"))
        }
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| ClientError::Credentials(key))?;
    value.set_sensitive(true);
    Ok(Some(value))
}
