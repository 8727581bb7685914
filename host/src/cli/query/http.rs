//! Requests to a server, one connection each: HTTP with hyper, TLS with rustls.

use super::http_config::{HttpConfig, Sender, TlsFiles};
use crate::cli::CliError;
use crate::prom::label_name::decode_path_segment;
use crate::redact::shown;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::handshake;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::Url;

/// Media type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// Requests to one server.
pub struct HttpClient {
    url: Url,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// A request: its method, the segments of its path behind the server's own, and its parameters.
pub struct Ask<'a> {
    pub method: Method,
    pub path: &'a [&'a str],
    pub parameters: &'a [(&'a str, String)],
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A server's URL; `http://` may be left out.
pub fn parse_url(text: &str) -> Result<Url, String> {
    let wrong = || format!("{text:?} is no URL such as http://127.0.0.1:9201");
    let with_scheme = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let url = Url::parse(&with_scheme).map_err(|_| wrong())?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
    if is_http { Ok(url) } else { Err(wrong()) }
}

/// A header as `NAME=VALUE` or `NAME:VALUE`. For use as clap's parser.
pub fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let Some((name, value)) = text.split_once(['=', ':']) else {
        return Err(format!("expected NAME=VALUE, got {text:?}"));
    };
    let name: HeaderName = name.trim().parse().map_err(|_| format!("{name:?} is no header"))?;
    let value = value.trim().parse().map_err(|_| format!("{value:?} cannot be in a header"))?;
    Ok((name, value))
}

impl HttpClient {
    /// Reads all files that the configuration names; connects to nobody yet.
    pub fn open(
        url: Url,
        config_file: Option<&Path>,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<HttpClient, CliError> {
        let has_user = !url.username().is_empty();
        if has_user && config_file.is_some() {
            let what = "Cannot set base auth in the server URL and use a http.config.file at the same time";
            return Err(CliError::Request(what.into()));
        }
        let config = config_file.map(HttpConfig::open).transpose()?;
        let (config, sender) = config.unwrap_or_default();
        let sender = match has_user {
            false => sender,
            true => {
                let decoded = |text: &str| decode_path_segment(text).unwrap_or_default();
                let password = decoded(url.password().unwrap_or_default());
                Some(Sender::Basic(decoded(url.username()), password))
            }
        };
        let mut headers = headers.to_vec();
        if let Some(sender) = sender {
            let text = match sender {
                Sender::Basic(name, password) => {
                    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
                }
                Sender::Header(text) => text,
            };
            let value = HeaderValue::from_str(&text).map_err(|_| {
                CliError::Request("the credentials have characters that no header may have".into())
            })?;
            headers.push((header::AUTHORIZATION, value));
        }
        let tls = match url.scheme() {
            "https" => Some(tls(&url, &config.tls_config)?),
            _ => None,
        };
        Ok(HttpClient { url, tls, headers })
    }

    /// Sends a request and reads the answer; `None` as the timeout waits as long as it takes.
    pub async fn send(
        &self,
        ask: &Ask<'_>,
        timeout: Option<Duration>,
    ) -> Result<(StatusCode, Bytes), String> {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(ask.path);
        }
        let form = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(ask.parameters.iter().map(|(name, value)| (*name, value.as_str())))
            .finish();
        let has_body = ask.method == Method::POST;
        if !has_body {
            url.set_query(Some(&form));
        }
        let body = if has_body { form } else { String::new() };
        let failed = |why: String| {
            let verb = if has_body { "Post" } else { "Get" };
            format!("{verb} \"{}\": {why}", shown(&url))
        };
        let sent = self.exchange(&url, &ask.method, body);
        match timeout {
            None => sent.await.map_err(failed),
            Some(limit) => match tokio::time::timeout(limit, sent).await {
                Ok(answer) => answer.map_err(failed),
                Err(_) => Err(failed("context deadline exceeded".into())),
            },
        }
    }

    async fn exchange(
        &self,
        url: &Url,
        method: &Method,
        body: String,
    ) -> Result<(StatusCode, Bytes), String> {
        let host = url.host_str().unwrap_or_default();
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, authority)
            .header(header::USER_AGENT, concat!("tidepool/", env!("CARGO_PKG_VERSION")));
        if method == Method::POST {
            request = request.header(header::CONTENT_TYPE, FORM);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request =
            request.body(Full::new(Bytes::from(body))).map_err(|error| in_words(&error))?;
        let port = url.port_or_known_default().unwrap_or(80);
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await;
        let stream = stream.map_err(|error| in_words(&error))?;
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(stream),
            Some((connector, name)) => {
                let connected = connector.connect(name.clone(), stream).await;
                Box::new(connected.map_err(|error| in_words(&error))?)
            }
        };
        let (mut sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| in_words(&error))?;
        // The request hears how it ends.
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(|error| in_words(&error))?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| in_words(&error))?;
        Ok((status, body.to_bytes()))
    }
}

/// A failure with its causes, which hyper keeps to itself otherwise.
fn in_words(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn tls(url: &Url, files: &TlsFiles) -> Result<(TlsConnector, ServerName<'static>), CliError> {
    let wrong = |what: String| CliError::Request(format!("tls_config: {what}"));
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let name = files.server_name.as_deref().unwrap_or(host).to_owned();
    let name = ServerName::try_from(name.clone())
        .map_err(|_| wrong(format!("{name:?} is neither a host's name nor an address")))?;
    let certificates = |path: &Path| -> Result<Vec<CertificateDer<'static>>, CliError> {
        let content = std::fs::read(path).map_err(CliError::file("read", path))?;
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
        match found {
            Ok(found) if !found.is_empty() => Ok(found),
            _ => Err(wrong(format!("{} holds no certificate in PEM", path.display()))),
        }
    };
    let mut roots = RootCertStore::empty();
    match &files.ca_file {
        Some(path) => {
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| wrong(format!("{}: {error}", path.display())))?;
            }
        }
        None => {
            // One that does not parse keeps no other from being used.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_root_certificates(roots);
    let config = match (&files.cert_file, &files.key_file) {
        (Some(certificate), Some(key)) => {
            let pem = std::fs::read(key).map_err(CliError::file("read", key))?;
            let private = PrivateKeyDer::from_pem_slice(&pem)
                .map_err(|_| wrong(format!("{} holds no private key in PEM", key.display())))?;
            let built = builder.with_client_auth_cert(certificates(certificate)?, private);
            built.map_err(|error| wrong(format!("{}: {error}", key.display())))?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok((Arc::new(config).into(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_headers_are_read() {
        for (text, expected) in [
            ("http://127.0.0.1:9201", "http://127.0.0.1:9201/"),
            ("127.0.0.1:9201", "http://127.0.0.1:9201/"),
            ("localhost:9201/prom", "http://localhost:9201/prom"),
            ("https://node.example/", "https://node.example/"),
        ] {
            assert_eq!(parse_url(text).map(String::from), Ok(expected.to_owned()));
        }
        for wrong in ["", "ftp://a", "http://", "http://a:port"] {
            assert!(parse_url(wrong).is_err(), "{wrong}");
        }
        for text in ["X-Scope=a=b", "X-Scope: a=b"] {
            let header = parse_header(text).map(|(name, value)| (name.to_string(), value));
            assert_eq!(header, Ok(("x-scope".into(), HeaderValue::from_static("a=b"))));
        }
        assert!(parse_header("X-Scope").is_err() && parse_header("a b=c").is_err());
    }
}
