//! Posts of alerts to an Alertmanager.
//!
//! Source: `sendOne` in `notifier/sendloop.go` of prometheus/prometheus. Unlike there, a redirect
//! that turns the request into a GET (301, 302, 303) is a failure: the answer to it would be 200,
//! and the alerts would be lost without a trace. 307 and 308 repeat the request, and are followed.

use super::alert::Alert;
use crate::config::alerting::AlertmanagerConfig;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use hyper::{Method, StatusCode};
use std::time::Duration;
use tidepool_client::{Answer, Ask, Client, ClientError, HttpClientConfig};
use tidepool_settings::redact::shown_request;

/// Maximum size of an answer that is read to its end, so that the connection can be reused.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Maximum bytes of an answer's text that are shown.
const TEXT_BYTES_MAX: usize = 256;

/// Maximum wait for the text after the head of an answer.
const TEXT_WAIT: Duration = Duration::from_secs(1);

/// The HTTP clients of one item of the configuration; clones share connections.
#[derive(Clone)]
pub(super) struct PostClient {
    first: Client,
    /// Follows redirects, if the configuration allows that.
    follower: Option<Client>,
    timeout: Duration,
}

/// Reasons why Alertmanager has not accepted alerts.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("the alerts cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("its URL is not valid: {0}")]
    Url(#[from] url::ParseError),
    #[error("it answers {status} to {location}, which is not followed; give that address")]
    Redirect {
        status: StatusCode,
        /// Without parts that may be secret.
        location: String,
    },
    #[error("it answers {status}{}{text}", if text.is_empty() { "" } else { ": " })]
    Status {
        status: StatusCode,
        /// Beginning of the answer.
        text: String,
    },
}

impl PostError {
    /// Whether the alerts are at fault, so that they would be refused again. Other errors of
    /// clients, such as 403 and 404, may be those of a portal or a proxy that is set up wrongly.
    pub fn is_refusal(&self) -> bool {
        let PostError::Status { status, .. } = self else { return false };
        matches!(
            *status,
            StatusCode::BAD_REQUEST
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::UNPROCESSABLE_ENTITY
        )
    }
}

impl PostClient {
    /// Reads all files that the configuration names. Does not connect.
    pub fn open(config: &AlertmanagerConfig) -> Result<PostClient, ClientError> {
        let follows = config.http.follow_redirects.unwrap_or(true);
        let first = HttpClientConfig { follow_redirects: Some(false), ..config.http.clone() };
        Ok(PostClient {
            first: Client::open(&first)?,
            follower: follows.then(|| Client::open(&config.http)).transpose()?,
            timeout: config.timeout,
        })
    }

    /// Posts alerts. Each status 2xx accepts them, whatever text follows.
    pub async fn post(&self, url: &str, alerts: &[Alert]) -> Result<(), PostError> {
        let mut ask = Ask::get_text(url)?;
        ask.method = Method::POST;
        ask.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        ask.body = Bytes::from(serde_json::to_vec(alerts)?);
        ask.timeout = Some(self.timeout);
        ask.answer_bytes_max = ANSWER_BYTES_MAX;
        let mut answer = self.first.send(&ask).await?;
        let repeats = |status| {
            matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
        };
        if let Some(follower) = self.follower.as_ref().filter(|_| repeats(answer.status)) {
            answer = follower.send(&ask).await?;
        }
        let (status, headers) = (answer.status, std::mem::take(&mut answer.headers));
        let text = text(answer).await;
        if status.is_success() {
            return Ok(());
        }
        match headers.get(LOCATION) {
            Some(location) if status.is_redirection() => {
                let location = shown_request(&String::from_utf8_lossy(location.as_bytes()));
                Err(PostError::Redirect { status, location: beginning(&location) })
            }
            _ => Err(PostError::Status { status, text }),
        }
    }
}

/// Reads an answer, within bounds of size and time; returns its beginning in one line.
async fn text(mut answer: Answer) -> String {
    let mut begin = Vec::new();
    let read = async {
        while let Ok(Some(data)) = answer.chunk().await {
            let wanted = TEXT_BYTES_MAX.saturating_sub(begin.len()).min(data.len());
            begin.extend_from_slice(data.get(..wanted).unwrap_or_default());
        }
    };
    // What did not come in time is not needed: the status has all that counts.
    let _ = tokio::time::timeout(TEXT_WAIT, read).await;
    beginning(&String::from_utf8_lossy(&begin))
}

/// Cuts a text to a line that can be logged.
fn beginning(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(TEXT_BYTES_MAX).map(plain).collect::<String>().trim().to_owned()
}
