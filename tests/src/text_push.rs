//! Text as a push, and what is stored of it.
//!
//! The functions here are assertions: they panic where the server under test fails.

use crate::clock::now_ms;
use crate::histogram::ValueSeries;
use crate::http::{Client, Response};
use crate::process::Server;
use crate::remote_read::{Reader, everything};

/// Where text is pushed.
pub const PATH: &str = "/api/v1/import/prometheus";
/// The type of Prometheus' own text.
pub const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The type of OpenMetrics.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Pushes a body; the path is what comes after [`PATH`].
pub fn push(server: &Server, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let url = format!("{}{PATH}{path}", server.url());
    Client::default().post(&url, headers, body).expect("an answer")
}

/// All of it was stored.
#[track_caller]
pub fn assert_stored(response: &Response) {
    assert_eq!((response.status, response.text().as_str()), (204, ""));
}

/// All that is stored.
pub fn all_series(server: &Server) -> Vec<ValueSeries> {
    let query = everything(0, now_ms() + 60_000);
    Reader::new(&server.url()).streamed_values(&query).expect("an answer")
}
