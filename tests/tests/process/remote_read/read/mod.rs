//! Remote-read tests that need other stores than one small fixture: limits, failures, clients that
//! disconnect, external labels, writes meanwhile.

mod beside_writes;
mod clients;
mod external_labels;
mod hostile;
mod limits;
mod selectors;

use tidepool_tests::clock::now_ms;
use tidepool_tests::proto::prometheus::Query;
use tidepool_tests::proto::prometheus::read_request::ResponseType;
use tidepool_tests::remote_read::{Reader, request};
use tidepool_tests::sender::send_all;
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::Store;

const KINDS: [ResponseType; 2] = [ResponseType::Samples, ResponseType::StreamedXorChunks];

/// Makes this number of series with this number of samples, one a second until now.
fn dataset(seed: u64, series: usize, scrapes: usize) -> Dataset {
    let start_ms = now_ms() - 1_000 * scrapes as i64;
    let texture = Texture::Regular;
    Dataset::generate(Shape { seed, series, scrapes, start_ms, interval_ms: 1_000, texture })
}

/// Starts a store with some flags and this data.
fn store_with(flags: &[&str], data: &Dataset) -> Store {
    let store = Store::start_with(|config| flags.iter().fold(config, |config, f| config.flag(f)));
    let store = store.expect("tidepool starts");
    send_all(&store, tidepool_tests::remote_write::Version::V2, data);
    store
}

/// Returns the status of an answer, with its text unless the status is 200.
fn status(reader: &Reader, queries: &[Query], kind: ResponseType) -> (u16, String) {
    let response = reader.post(&request(queries, kind)).expect("an answer");
    (response.status, if response.status == 200 { String::new() } else { response.text() })
}
