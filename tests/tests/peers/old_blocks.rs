//! A data directory with a block of Prometheus 2.0, whose index has version 1.

use std::path::Path;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::data_dir;
use tidepool_tests::peers::Release;
use tidepool_tests::promtool::{parse_dump, tsdb};
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::remote_read::{Reader, matcher, query};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

const FIXTURE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/fixtures/index_format_v1");
const BLOCK: &str = "01DXXFZDYD1MQW6079WK0K6EDQ";

/// Returns the samples that promtool finds in the block alone.
fn dumped(release: Release) -> Vec<Series> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let block = Path::new(FIXTURE).join(BLOCK);
    data_dir::copy(&block, &directory.path().join(BLOCK)).expect("a copy");
    // The older promtool does not open a directory without a log.
    std::fs::create_dir(directory.path().join("wal")).expect("a directory");
    parse_dump(&tsdb(release, "dump", directory.path(), &[])).expect("a dump")
}

#[test]
fn a_block_with_an_index_of_version_1_is_served() {
    let store = Store::start_with(|config| {
        let block = Path::new(FIXTURE).join(BLOCK);
        data_dir::copy(&block, &config.data_dir().join(BLOCK)).expect("a copy");
        config
    })
    .expect("tidepool starts");
    let reader = Reader::new(&store.server.url());
    let some = query(0, 10, vec![matcher(Type::Re, "bar", "1.*"), matcher(Type::Neq, "bar", "1")]);
    // These series have no metric name.
    let queries = [query(0, 7_200_000, vec![matcher(Type::Eq, "absent", "")]), some];
    // Not streamed: chunks of 2.x may end in a byte of padding, which the tests' decoder refuses.
    let results = reader.samples(&queries).expect("the read is answered");
    for release in Release::ALL {
        let all = dumped(release);
        assert_eq!(all.len(), 102);
        assert_same("all", &all, &results[0]);
        let is_asked_for = |series: &&Series| {
            let bar = series.labels.value("bar");
            bar.starts_with('1') && bar != "1"
        };
        let some: Vec<Series> = all.iter().filter(is_asked_for).cloned().collect();
        assert_eq!(some.len(), 10);
        assert_same("some", &some, &results[1]);
    }
}
