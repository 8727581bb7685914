//! Requests to one destination, and the parts of their answers that are read.

use super::config::DestinationConfig;
use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use std::time::Duration;
use tidepool_client::{Ask, ClientError};

/// Maximum bytes of an error's text that are read and shown, as in upstream.
const TEXT_BYTES_MAX: usize = 256;

/// Answers up to this size are read to their end, so that the connection can be reused.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Maximum wait for an answer's text after its headers.
const TEXT_WAIT: Duration = Duration::from_secs(5);

const VERSION: HeaderName = HeaderName::from_static("x-prometheus-remote-write-version");
const RETRY_ATTEMPT: HeaderName = HeaderName::from_static("retry-attempt");

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Beginning of the answer's text.
    pub text: String,
}

/// Sends requests to one destination.
pub struct Client {
    client: tidepool_client::Client,
    config: DestinationConfig,
}

impl Client {
    /// Reads all files that the configuration names, so that their errors appear when the
    /// configuration is loaded, not with each request. Does not connect.
    pub fn open(config: &DestinationConfig) -> Result<Client, ClientError> {
        let client = tidepool_client::Client::open(&config.http)?;
        let client = Client { client, config: config.clone() };
        // Built once as a check: an error in building one request would recur with every request.
        let ask = client.ask(Bytes::new(), "application/x-protobuf", "0.1.0", 0);
        client.client.check(&ask)?;
        Ok(client)
    }

    /// Sends a compressed body; `content_type` and `version` describe it.
    pub async fn send(
        &self,
        body: Bytes,
        content_type: &'static str,
        version: &'static str,
        attempt: u32,
    ) -> Result<Answer, ClientError> {
        let ask = self.ask(body, content_type, version, attempt);
        Ok(read(self.client.send(ask).await?).await)
    }

    fn ask(
        &self,
        body: Bytes,
        content_type: &'static str,
        version: &'static str,
        attempt: u32,
    ) -> Ask {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("snappy"));
        headers.insert(VERSION, HeaderValue::from_static(version));
        // As in upstream, the first attempt does not carry this header.
        if attempt > 0 {
            headers.insert(RETRY_ATTEMPT, HeaderValue::from(attempt));
        }
        for (name, value) in &self.config.headers {
            headers.append(name, value.clone());
        }
        Ask {
            method: Method::POST,
            headers,
            body,
            timeout: Some(self.config.remote_timeout),
            answer_bytes_max: ANSWER_BYTES_MAX,
            ..Ask::get((*self.config.url).clone())
        }
    }
}

/// Reads an answer. Its status is returned even if its text does not arrive.
async fn read(mut answer: tidepool_client::Answer) -> Answer {
    let mut begin = Vec::new();
    let read = tokio::time::timeout(TEXT_WAIT, read_text(&mut answer, &mut begin)).await;
    let mut text = String::from_utf8_lossy(&begin).into_owned();
    match read {
        // Cut on purpose: the beginning of a long answer is enough.
        Ok(Ok(()) | Err(ClientError::TooLarge { .. })) => {}
        Ok(Err(ClientError::Timeout(_))) | Err(_) => {
            text.push_str(" (the rest of the answer did not come)");
        }
        Ok(Err(error)) => text.push_str(&format!(" ({error})")),
    }
    Answer { status: answer.status, headers: answer.headers, text }
}

/// Reads an answer's text and keeps its beginning.
async fn read_text(
    answer: &mut tidepool_client::Answer,
    begin: &mut Vec<u8>,
) -> Result<(), ClientError> {
    while let Some(data) = answer.chunk().await? {
        // The rest is read but not kept, so that the connection can be reused.
        let wanted = TEXT_BYTES_MAX.saturating_sub(begin.len());
        begin.extend_from_slice(data.get(..wanted.min(data.len())).unwrap_or_default());
    }
    Ok(())
}
