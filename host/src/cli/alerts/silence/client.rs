//! Requests to `/api/v2/` of a server.

use crate::cli::CliError;
use crate::cli::query::{Failure, HttpClient, parse_url};
use bytes::Bytes;
use hyper::{Method, StatusCode};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Timeout of a request: amtool's.
const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Client {
    client: HttpClient,
    runtime: Runtime,
}

impl Client {
    /// Does not connect.
    pub fn open(url: &str, config_file: Option<&Path>) -> Result<Client, Failure> {
        let url = parse_url(url).map_err(Failure::Usage)?;
        let client = HttpClient::open(url, config_file, &[])?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| CliError::Runtime(error.to_string()))?;
        Ok(Client { client, runtime })
    }

    /// Sets a silence; returns its identifier.
    pub fn set(&self, silence: &Value) -> Result<String, Failure> {
        let body = self.ask(Method::POST, &["silences"], &[], Some(silence))?;
        let answer: Value = serde_json::from_slice(&body).map_err(unreadable)?;
        let id = answer["silenceID"].as_str().map(str::to_owned);
        id.ok_or_else(|| Failure::Exchange("the answer has no silenceID".to_owned()))
    }

    /// Returns the silences that have these matchers.
    pub fn list(&self, filters: &[String]) -> Result<Vec<Value>, Failure> {
        let filters: Vec<(&str, String)> =
            filters.iter().map(|filter| ("filter", filter.clone())).collect();
        let body = self.ask(Method::GET, &["silences"], &filters, None)?;
        serde_json::from_slice(&body).map_err(unreadable)
    }

    pub fn expire(&self, id: &str) -> Result<(), Failure> {
        self.ask(Method::DELETE, &["silence", id], &[], None)
            .map(drop)
            .map_err(|failure| Failure::Exchange(format!("{id}: {failure}")))
    }

    fn ask(
        &self,
        method: Method,
        path: &[&str],
        parameters: &[(&str, String)],
        body: Option<&Value>,
    ) -> Result<Bytes, Failure> {
        let path: Vec<&str> = ["api", "v2"].iter().chain(path).copied().collect();
        let body = body.map(Value::to_string);
        let exchange = self.client.send_json(method, &path, parameters, body, TIMEOUT);
        let (status, body) = self.runtime.block_on(exchange).map_err(Failure::Exchange)?;
        match status.is_success() {
            true => Ok(body),
            false => Err(Failure::Exchange(refusal(status, &body))),
        }
    }
}

fn unreadable(error: serde_json::Error) -> Failure {
    Failure::Exchange(format!("the answer is not that of this API: {error}"))
}

/// Returns the text of a refusal: a string or an object in JSON, or plain text of a proxy.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let read = serde_json::from_slice::<Value>(body).ok();
    let said = read.as_ref().and_then(|read| read.as_str().or_else(|| read["message"].as_str()));
    let text = match said {
        Some(said) => said.to_owned(),
        None => String::from_utf8_lossy(body).trim().to_owned(),
    };
    match text.is_empty() {
        true if status == StatusCode::NOT_FOUND => "silence not found".to_owned(),
        true => status.to_string(),
        false => format!("{text} ({})", status.as_u16()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_in_the_words_of_the_server() {
        for (status, body, expected) in [
            (400, "\"invalid silence: no\"", "invalid silence: no (400)"),
            (
                422,
                "{\"code\":602,\"message\":\"comment in body is required\"}",
                "comment in body is required (422)",
            ),
            (401, "credentials are missing or wrong\n", "credentials are missing or wrong (401)"),
            (404, "", "silence not found"),
            (502, "", "502 Bad Gateway"),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(refusal(status, body.as_bytes()), expected);
        }
    }
}
