//! Queries a server like client_golang (`api/prometheus/v1`): with POST, or else GET.

use super::Failure;
use super::http::{HttpClient, Question};
use super::time::Time;
use super::value::{Metric, Value};
use crate::cli::CliError;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Timeout of a request, as in promtool. An analysis has no timeout.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// Statuses of servers and proxies that do not accept POST.
const NO_POST: [StatusCode; 3] =
    [StatusCode::FORBIDDEN, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];

pub struct Server {
    client: HttpClient,
    runtime: Runtime,
    timeout: Option<Duration>,
}

#[derive(Deserialize)]
struct Envelope<D> {
    status: String,
    data: Option<D>,
    #[serde(default, rename = "errorType")]
    error_type: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
}

impl Server {
    /// Creates a client of a server. Does not connect.
    pub fn new(client: HttpClient, timeout: Option<Duration>) -> Result<Server, CliError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| CliError::Runtime(error.to_string()))?;
        Ok(Server { client, runtime, timeout })
    }

    pub fn instant(&self, expression: &str, time: Time) -> Result<Value, Failure> {
        let parameters = [("query", expression.to_owned()), ("time", time.parameter())];
        self.post(&["query"], &parameters)
    }

    pub fn range(
        &self,
        expression: &str,
        (start, end): (Time, Time),
        step: &str,
    ) -> Result<Value, Failure> {
        let parameters = [
            ("end", end.parameter()),
            ("query", expression.to_owned()),
            ("start", start.parameter()),
            ("step", step.to_owned()),
        ];
        self.post(&["query_range"], &parameters)
    }

    pub fn series(&self, selectors: &[String], span: (Time, Time)) -> Result<Vec<Metric>, Failure> {
        self.post(&["series"], &selection(selectors, span))
    }

    /// Returns the values of a label, and the response's warnings.
    pub fn label_values(
        &self,
        name: &str,
        selectors: &[String],
        span: (Time, Time),
    ) -> Result<(Vec<String>, Vec<String>), Failure> {
        let path = ["label", name, "values"];
        let (status, body) = self.ask(Method::GET, &path, &selection(selectors, span))?;
        data(status, &body)
    }

    fn post<D: DeserializeOwned>(
        &self,
        path: &[&str],
        parameters: &[(&str, String)],
    ) -> Result<D, Failure> {
        let (mut status, mut body) = self.ask(Method::POST, path, parameters)?;
        // As in client_golang, because a proxy may permit only GET.
        if NO_POST.contains(&status) {
            (status, body) = self.ask(Method::GET, path, parameters)?;
        }
        data(status, &body).map(|(data, _)| data)
    }

    /// Sends a request that only POST can have.
    pub fn post_only<D: DeserializeOwned>(
        &self,
        path: &[&str],
        parameters: &[(&str, String)],
    ) -> Result<D, Failure> {
        let (status, body) = self.ask(Method::POST, path, parameters)?;
        data(status, &body).map(|(data, _)| data)
    }

    fn ask(
        &self,
        method: Method,
        path: &[&str],
        parameters: &[(&str, String)],
    ) -> Result<(StatusCode, bytes::Bytes), Failure> {
        let path: Vec<&str> = ["api", "v1"].iter().chain(path).copied().collect();
        let question = Question { method, path: &path, parameters };
        self.runtime.block_on(self.client.send(&question, self.timeout)).map_err(Failure::Exchange)
    }
}

fn selection<'a>(selectors: &[String], (start, end): (Time, Time)) -> Vec<(&'a str, String)> {
    let mut parameters = vec![("end", end.parameter())];
    parameters.extend(selectors.iter().map(|selector| ("match[]", selector.clone())));
    parameters.push(("start", start.parameter()));
    parameters
}

/// Returns the data of a response, and its warnings.
fn data<D: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<(D, Vec<String>), Failure> {
    // Prometheus' own errors have these statuses. Other statuses may come from a proxy.
    let is_error = matches!(status, StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST);
    let failed = |kind: &str, text: String, detail: &str| {
        Err(Failure::Api { kind: kind.to_owned(), text, detail: detail.trim().to_owned() })
    };
    if !status.is_success() && !is_error {
        let (code, detail) = (status.as_u16(), String::from_utf8_lossy(body));
        return match code / 100 {
            4 => failed("client_error", format!("client error: {code}"), &detail),
            5 => failed("server_error", format!("server error: {code}"), &detail),
            _ => failed("bad_response", format!("bad response code {code}"), &detail),
        };
    }
    let envelope = match serde_json::from_slice::<Envelope<D>>(body) {
        Ok(envelope) => envelope,
        Err(error) => return failed("bad_response", error.to_string(), ""),
    };
    match (envelope.status.as_str(), envelope.data) {
        ("error", _) => failed(&envelope.error_type, envelope.error, ""),
        ("success", _) if is_error => {
            failed("bad_response", "inconsistent body for response code".into(), "")
        }
        (_, Some(data)) => Ok((data, envelope.warnings)),
        (_, None) => failed("bad_response", "the answer has no data".into(), ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, body: &str) -> Result<Vec<String>, String> {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        data(status, body.as_bytes()).map(|(data, _)| data).map_err(|failure| failure.to_string())
    }

    /// Expected texts are those of `apiClientImpl.Do` in client_golang.
    #[test]
    fn failures_are_client_golangs() {
        assert_eq!(said(200, r#"{"status":"success","data":["a"]}"#), Ok(vec!["a".into()]));
        for (status, body, expected) in [
            (400, r#"{"status":"error","errorType":"bad_data","error":"no"}"#, "bad_data: no"),
            (
                422,
                r#"{"status":"success","data":[]}"#,
                "bad_response: inconsistent body for response code",
            ),
            (503, "starting\n", "server_error: server error: 503 (detail: starting)"),
            (401, "", "client_error: client error: 401"),
            (302, "", "bad_response: bad response code 302"),
        ] {
            assert_eq!(said(status, body), Err(expected.to_owned()), "{status}");
        }
        assert!(said(200, "<html>").is_err_and(|text| text.starts_with("bad_response: ")));
    }
}
