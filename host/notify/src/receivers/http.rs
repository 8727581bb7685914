//! Requests of receivers, and what their answers mean.

use super::{ANSWER_BYTES_MAX, DeliveryError, begin, one_line};
use crate::config::SecretUrl;
use bytes::Bytes;
use hyper::header::HeaderMap;
use hyper::{Method, StatusCode};
use std::time::Duration;
use tidepool_client::{Answer, Ask, Client, ClientError, retry_after};
use tidepool_lifecycle::clock::system_now_ms;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// Maximum wait for the text of an answer whose status is known.
const TEXT_WAIT: Duration = Duration::from_secs(2);

/// Shortest part of a path that may be a token: `api` and `webhooks` are none.
const TOKEN_BYTES_MIN: usize = 10;

const HIDDEN: &str = "<secret>";

pub(super) struct Request {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// From the first byte to the last one of the answer.
    pub timeout: Duration,
}

/// Sends a request, and returns the answer with the beginning of its text. Only a status of 2xx is
/// a success.
pub(super) async fn exchange(
    client: &Client,
    url: &SecretUrl,
    request: Request,
) -> Result<String, DeliveryError> {
    let limit = request.timeout;
    let deadline = Instant::now() + limit;
    // The file of the URL may lie where reading it takes long.
    let head = async {
        let url = read_url(url).await?;
        let ask = Ask {
            method: request.method,
            headers: request.headers,
            body: request.body,
            timeout: Some(limit),
            answer_bytes_max: ANSWER_BYTES_MAX as u64,
            ..Ask::get(url.clone())
        };
        let answer = client.send(ask).await.map_err(|error| failure(&url, error))?;
        Ok((url, answer))
    };
    let head = timeout_at(deadline, head).await;
    let (url, answer) = head.unwrap_or(Err(DeliveryError::Timeout(limit)))?;
    meaning(&url, answer, deadline).await
}

async fn read_url(url: &SecretUrl) -> Result<Url, DeliveryError> {
    let read = match url.is_in_file() {
        false => url.read(),
        true => {
            let url = url.clone();
            let read = tokio::task::spawn_blocking(move || url.read());
            read.await.map_err(|_| DeliveryError::failed("the program is about to stop"))?
        }
    };
    read.map_err(|error| DeliveryError::failed(error.to_string()))
}

async fn meaning(
    url: &Url,
    mut answer: Answer,
    deadline: Instant,
) -> Result<String, DeliveryError> {
    let status = answer.status;
    let retry_after = retry_after(&answer.headers, system_now_ms());
    let mut bytes = Vec::new();
    let read = async {
        // Whatever ends the text: the status says what it means.
        while let Ok(Some(chunk)) = answer.chunk().await {
            bytes.extend_from_slice(&chunk);
        }
    };
    let _ = timeout_at(deadline.min(Instant::now() + TEXT_WAIT), read).await;
    let text = without_secrets(url, &one_line(&bytes));
    let summary = match text.as_str() {
        "" => status.to_string(),
        text => format!("{status}: {text}"),
    };
    let summary = begin(&summary, ANSWER_BYTES_MAX).to_owned();
    match status {
        _ if status.is_success() => Ok(summary),
        // These two ask for a second try, unlike all others of the client's errors.
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            Err(DeliveryError::Failed { what: summary, retry_after })
        }
        _ if status.is_client_error() => Err(DeliveryError::Refused { what: summary }),
        _ if status.is_redirection() => {
            let what = format!(
                "{status}: redirects are not followed; name the receiver's own URL, or set \
                 follow_redirects"
            );
            Err(DeliveryError::Failed { what, retry_after })
        }
        _ => Err(DeliveryError::Failed { what: summary, retry_after }),
    }
}

fn failure(url: &Url, error: ClientError) -> DeliveryError {
    match error {
        ClientError::Timeout(timeout) => DeliveryError::Timeout(timeout),
        // The target may have the URL's token, in another spelling.
        ClientError::RedirectTarget(_) => {
            DeliveryError::failed("a redirect to a URL that is no http or https URL")
        }
        error => DeliveryError::failed(without_secrets(url, &error.to_string())),
    }
}

/// Hides parts of the URL in a text: many servers repeat in their answers what they were asked for.
fn without_secrets(url: &Url, text: &str) -> String {
    let path = url.path();
    let mut secrets = vec![url.as_str()];
    secrets.extend(url.query());
    secrets.extend(url.password());
    secrets.extend(Some(path).filter(|path| path.len() > 1));
    secrets.extend(path.split('/').filter(|part| part.len() >= TOKEN_BYTES_MIN));
    let pairs: Vec<_> = url.query_pairs().map(|(_, value)| value.into_owned()).collect();
    secrets.extend(pairs.iter().map(String::as_str).filter(|value| value.len() >= TOKEN_BYTES_MIN));
    // What contains others goes first.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut text = text.to_owned();
    for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
        text = text.replace(secret, HIDDEN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_url_are_hidden() {
        for (url, text, expected) in [
            ("http://a/", "Cannot POST / here", "Cannot POST / here"),
            ("http://a/api/x?token=t", "no /api/x?token=t", "no <secret>?<secret>"),
            (
                "https://a/api/webhooks/1/aBcDeFgHiJ",
                "no webhook aBcDeFgHiJ under api",
                "no webhook <secret> under api",
            ),
            ("https://u:hunter2@a/b/", "https://u:hunter2@a/b/ is gone", "<secret> is gone"),
            ("https://a/b?key=ab%20cdefghijk", "bad key 'ab cdefghijk'", "bad key '<secret>'"),
        ] {
            let url = Url::parse(url).expect("a URL");
            assert_eq!(without_secrets(&url, text), expected);
        }
    }
}
