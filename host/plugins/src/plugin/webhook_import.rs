//! The imported interface `webhook`: requests to granted URLs.

use super::bindings::job::tidepool::plugin::webhook::{Host, WebhookError};
use super::record::Post;
use super::state::PluginState;
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tidepool_client::{Ask, Client, ClientError, ConnectLimits, HttpClientConfig};

/// Maximum duration of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Status that a plugin receives for a webhook request in a trial run.
const ANSWER_OF_TRIAL: u16 = 200;

/// One client for all plugins, so that connections are reused.
static CLIENT: OnceLock<Result<Client, ClientError>> = OnceLock::new();

impl Host for PluginState {
    async fn post(
        &mut self,
        url: String,
        content_type: String,
        body: Vec<u8>,
    ) -> wasmtime::Result<Result<u16, WebhookError>> {
        if let Some(record) = &self.around.record {
            let kept = record.posted(Post { url, content_type, body });
            let full = |_| WebhookError::Failed("a trial run keeps no more output".to_owned());
            return Ok(kept.map(|()| ANSWER_OF_TRIAL).map_err(full));
        }
        let url = match url::Url::parse(&url) {
            // The parsed form is checked: the text may hide another host or `..` segments.
            Ok(url) if is_granted(&self.webhooks, url.as_str()) => url,
            _ => return Ok(Err(WebhookError::Denied(url))),
        };
        Ok(post(url, content_type, body, self.deadline).await.map_err(WebhookError::Failed))
    }
}

/// Returns whether a URL is granted, or continues a granted URL with a path or a query.
fn is_granted(granted: &[String], url: &str) -> bool {
    granted.iter().any(|granted| match url.strip_prefix(granted.as_str()) {
        Some(rest) => granted.ends_with('/') || rest.is_empty() || rest.starts_with(['/', '?']),
        None => false,
    })
}

async fn post(
    url: url::Url,
    content_type: String,
    body: Vec<u8>,
    deadline: Instant,
) -> Result<u16, String> {
    let client = CLIENT.get_or_init(client).as_ref().map_err(ToString::to_string)?;
    let mut headers = HeaderMap::new();
    let content_type = HeaderValue::try_from(content_type).map_err(|error| error.to_string())?;
    headers.insert(CONTENT_TYPE, content_type);
    // The request ends at the deadline of the call that makes it.
    let timeout = Some(deadline.saturating_duration_since(Instant::now()));
    let (method, body) = (Method::POST, body.into());
    let ask = Ask { method, headers, body, timeout, ..Ask::get(url) };
    let answer = client.send(ask).await.map_err(|error| error.to_string())?;
    Ok(answer.status.as_u16())
}

fn client() -> Result<Client, ClientError> {
    // A redirect could lead to a URL that is not granted.
    let config =
        HttpClientConfig { follow_redirects: Some(false), ..HttpClientConfig::of_environment() };
    let limits = ConnectLimits { connect: Some(CONNECT_TIMEOUT), unacknowledged: None };
    Client::open_bounded(&config, limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_below_a_granted_address_is_granted() {
        let granted = ["http://127.0.0.1:9093/".to_owned(), "https://hooks.test/a".to_owned()];
        for url in [
            "http://127.0.0.1:9093/",
            "http://127.0.0.1:9093/api/v2/alerts",
            "https://hooks.test/a",
            "https://hooks.test/a/b",
            "https://hooks.test/a?b=c",
        ] {
            assert!(is_granted(&granted, url), "{url}");
        }
        for url in [
            "https://127.0.0.1:9093/",
            "http://127.0.0.1:9094/",
            "http://127.0.0.1:9093@evil.test/",
            "https://hooks.test/ab",
            "https://hooks.test/",
            "https://hooks.test.evil/a",
        ] {
            let parsed = url::Url::parse(url).map(String::from);
            assert!(!parsed.is_ok_and(|url| is_granted(&granted, &url)), "{url}");
        }
    }
}
