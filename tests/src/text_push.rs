//! Pushes of text, and checks of the stored samples.
//!
//! The functions here are assertions: they panic if the server under test fails.

use crate::clock::now_ms;
use crate::histogram::ValueSeries;
use crate::http::{Client, Response};
use crate::process::Server;
use crate::remote_read::{Reader, everything};

/// Path at which text is pushed.
pub const PATH: &str = "/api/v1/import/prometheus";
/// Media type of Prometheus' own text.
pub const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Media type of OpenMetrics text.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Pushes a body; `path` is the part after [`PATH`].
pub fn push(server: &Server, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let url = format!("{}{PATH}{path}", server.url());
    Client::default().post(&url, headers, body).expect("an answer")
}

/// Asserts that everything was stored.
#[track_caller]
pub fn assert_stored(response: &Response) {
    assert_eq!((response.status, response.text().as_str()), (204, ""));
}

/// Returns all series that are stored.
pub fn all_series(server: &Server) -> Vec<ValueSeries> {
    let query = everything(0, now_ms() + 60_000);
    Reader::new(&server.url()).streamed_values(&query).expect("an answer")
}
