//! HTTP requests to a server, as client_golang sends them.

use crate::cli::CliError;
use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use std::path::Path;
use std::time::Duration;
use tidepool_client::{Ask, Client, ClientError, HttpClientConfig};
use tidepool_settings::redact::shown;
use tidepool_settings::yaml;
use url::Url;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Maximum size of an answer to a request with JSON: twice that of all silences of a server.
const JSON_BYTES_MAX: u64 = 128 << 20;

/// Client for one server, with the server's URL and additional headers.
pub struct HttpClient {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

/// A request: method, path segments after the path of the server's URL, and parameters.
pub struct Question<'a> {
    pub method: Method,
    pub path: &'a [&'a str],
    pub parameters: &'a [(&'a str, String)],
}

/// Parses a server's URL, in which `http://` may be omitted.
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

/// Parses a header `NAME=VALUE` or `NAME:VALUE`, for clap.
pub fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let Some((name, value)) = text.split_once(['=', ':']) else {
        return Err(format!("expected NAME=VALUE, got {text:?}"));
    };
    let name: HeaderName = name.trim().parse().map_err(|_| format!("{name:?} is no header"))?;
    let value = value.trim().parse().map_err(|_| format!("{value:?} cannot be in a header"))?;
    Ok((name, value))
}

/// Reads the file of `--http.config.file`. Paths in the file are relative to its directory.
fn read_config(path: &Path) -> Result<HttpClientConfig, CliError> {
    let text = std::fs::read_to_string(path).map_err(CliError::file("read", path))?;
    let read = yaml::load(&text).and_then(|node| yaml::read::<HttpClientConfig>("", &node));
    let mut config = read.map_err(|error| CliError::HttpConfig {
        path: path.to_owned(),
        // The text of the error begins with line and column.
        what: error.to_string(),
    })?;
    config.set_directory(path.parent().unwrap_or(Path::new("")));
    Ok(config)
}

impl HttpClient {
    /// Reads all files that the configuration names. Does not connect.
    pub fn open(
        url: Url,
        config_file: Option<&Path>,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<HttpClient, CliError> {
        // promtool refuses this with the same text.
        if !url.username().is_empty() && config_file.is_some() {
            let what = "Cannot set base auth in the server URL and use a http.config.file at the same time";
            return Err(CliError::Request(what.into()));
        }
        let config = config_file.map(read_config).transpose()?.unwrap_or_default();
        let client = Client::open(&config).map_err(|error| CliError::Request(error.to_string()))?;
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(name, value.clone());
        }
        Ok(HttpClient { client, url, headers: all })
    }

    /// Sends a request and reads the response. Without a timeout, waits without limit.
    pub async fn send(
        &self,
        question: &Question<'_>,
        timeout: Option<Duration>,
    ) -> Result<(StatusCode, Bytes), String> {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(question.path);
        }
        let parameters = question.parameters.iter();
        let form = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(parameters.map(|(name, value)| (*name, value.as_str())))
            .finish();
        let mut headers = self.headers.clone();
        let has_body = question.method == Method::POST;
        let body = match has_body {
            true => {
                headers.insert(header::CONTENT_TYPE, FORM);
                form.into()
            }
            false => {
                url.set_query(Some(&form));
                Bytes::new()
            }
        };
        self.exchange(Ask {
            method: question.method.clone(),
            headers,
            body,
            timeout,
            ..Ask::get(url)
        })
        .await
    }

    /// Sends a request with parameters in the URL and a body of JSON, and reads the response.
    pub async fn send_json(
        &self,
        method: Method,
        path: &[&str],
        parameters: &[(&str, String)],
        json: Option<String>,
        timeout: Duration,
    ) -> Result<(StatusCode, Bytes), String> {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        let mut headers = self.headers.clone();
        if json.is_some() {
            headers.insert(header::CONTENT_TYPE, JSON);
        }
        let (body, timeout) = (json.unwrap_or_default().into(), Some(timeout));
        let answer_bytes_max = JSON_BYTES_MAX;
        let ask = Ask { method, headers, body, timeout, answer_bytes_max, ..Ask::get(url) };
        self.exchange(ask).await
    }

    async fn exchange(&self, ask: Ask) -> Result<(StatusCode, Bytes), String> {
        // Without the URL's password, because errors may be written to logs.
        let (asked, method) = (shown(&ask.url), ask.method.clone());
        let exchange = async {
            let answer = self.client.send(ask).await?;
            Ok((answer.status, answer.bytes().await?))
        };
        exchange.await.map_err(|error: ClientError| {
            // The text is that of Go's HTTP client, which promtool prints.
            let verb = match method {
                Method::POST => "Post",
                Method::DELETE => "Delete",
                _ => "Get",
            };
            let why = match error {
                ClientError::Timeout(_) => "context deadline exceeded".to_owned(),
                error => error.to_string(),
            };
            format!("{verb} \"{asked}\": {why}")
        })
    }
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

    fn opened(text: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = folder.path().join("http.yml");
        let written = std::fs::write(folder.path().join("secret"), "s3cret\n")
            .and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| error.to_string())?;
        let url = parse_url("http://127.0.0.1:9201")?;
        HttpClient::open(url, Some(&path), &[]).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn paths_of_the_file_are_relative_to_it() {
        for text in ["", "basic_auth: {username_file: secret, password_file: secret}"] {
            assert_eq!(opened(text), Ok(()), "{text}");
        }
        for (text, why) in [
            ("proxy_urls: http://proxy", ":1:1: proxy_urls: there is no such key; there are basic"),
            ("tls_config: {cert_file: a}", ":1:13: tls_config: cert_file and key_file belong"),
            ("authorization: {credentials_file: none}", "none: No such file"),
            ("basic_auth: {password: s3cret, password_file: secret}", "only one of them"),
            ("basic_auth: [", "this is not YAML"),
        ] {
            let error = opened(text).expect_err(text);
            assert!(error.contains(why) && !error.contains("s3cret"), "{text}: {error}");
        }
    }
}
