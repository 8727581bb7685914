//! Plugins: the behaviour of each world, the handling of faults, and undisturbed ingestion.

mod examples;
mod hostile;
mod loading;
mod paths;
mod worlds;

use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, Response};
use tidepool_tests::process::Server;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::series::Series;

const TIMEOUT: Duration = Duration::from_secs(240);

/// Returns all series that are stored.
fn stored(server: &Server) -> Vec<Series> {
    let all = everything(0, now_ms() + 3_600_000);
    let answers = Reader::new(&server.url()).streamed(&[all]).expect("an answer");
    answers.into_iter().flatten().collect()
}

/// Returns a line for each stored sample: labels by name, value, time.
fn lines(server: &Server) -> Vec<String> {
    let mut lines: Vec<String> = stored(server)
        .iter()
        .flat_map(|series| {
            let pairs = series.labels.pairs().iter().map(|(name, value)| format!("{name}={value}"));
            let labels = pairs.collect::<Vec<_>>().join(",");
            let samples = series.samples.iter();
            let line = move |sample: &tidepool_tests::series::Sample| {
                format!("{labels} {} {}", sample.value, sample.timestamp_ms)
            };
            samples.map(line).collect::<Vec<_>>()
        })
        .collect();
    lines.sort();
    lines
}

fn post(server: &Server, path: &str, body: &[u8]) -> Response {
    Client::default().post(&format!("{}{path}", server.url()), &[], body).expect("an answer")
}

/// Pushes text, which must be accepted.
#[track_caller]
fn push(server: &Server, text: &str) {
    let response = post(server, "/api/v1/import/prometheus", text.as_bytes());
    assert_eq!((response.status, response.text().as_str()), (204, ""), "{}", server.log());
}
