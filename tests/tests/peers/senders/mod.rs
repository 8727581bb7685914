//! Foreign senders: Prometheus as a server and as an agent, vmagent, the client library of
//! client_golang, promtool. tidepool has exactly the samples that they report as sent, to the bit.

mod go_client;
mod promtool;
mod scrapers;
mod vmagent;

use std::time::Duration;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::remote_read::{matcher, query};
use tidepool_tests::series::{Sample, Series};
use tidepool_tests::tidepool::Store;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns all series of a job.
fn of_job(store: &Store, job: &str) -> Vec<Series> {
    let query = query(0, i64::MAX, vec![matcher(Type::Eq, "job", job)]);
    store.reader().streamed(&[query]).expect("a stream").remove(0)
}

/// Returns the samples of the only series of a name.
fn samples_of(series: &[Series], name: &str) -> Vec<Sample> {
    let mut named = series.iter().filter(|s| s.labels.value("__name__") == name);
    named.next().map(|series| series.samples.clone()).unwrap_or_default()
}
