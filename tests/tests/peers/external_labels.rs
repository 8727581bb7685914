//! A Prometheus that reads from a store, either of them with external labels.

use tidepool_tests::clock::now_ms;
use tidepool_tests::peers::Release;
use tidepool_tests::prometheus;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::chain;

const FLAGS: [&str; 2] = ["--external-label=region=eu", "--external-label=zone=z1"];

/// Starts a store with twelve samples of the requested series.
fn start(flags: &[&str]) -> Store {
    let store = Store::start_with(|config| flags.iter().fold(config, |config, f| config.flag(f)));
    let store = store.expect("tidepool starts");
    let now_ms = now_ms();
    let samples: Vec<_> = (0..12).map(|i| (now_ms - (12 - i) * 600_000, i as f64)).collect();
    let pairs = [("__name__", "m"), ("job", "a"), ("path", "/")];
    let series = Series::new(&pairs, &samples);
    let response = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
    store
}

/// A reader adds its own external labels to its requests and removes them from answers: it finds
/// the samples of a store with the same labels, and nothing in a store without them.
#[test]
fn prometheus_reads_with_and_without_external_labels() {
    let labels = [("region", "eu"), ("zone", "z1")];
    let others = [("region", "asia")];
    let with = start(&FLAGS);
    let without = start(&[]);
    let question = "sort(count_over_time(m{job=\"a\",path=\"/\"}[3h]))";
    for release in [Release::V2, Release::V3] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let ask = |name: &str, store: &Store, labels: &[(&str, &str)]| {
            let config = prometheus::Config::new(release, &directory.path().join(name));
            let config = config.expect("the directory can be used").external_labels(labels);
            let reader = config.remote_read(&store.server.url()).start().expect("it starts");
            let answer = prometheus::query(&reader, question, now_ms());
            let answer = answer.unwrap_or_else(|e| panic!("{}\n{}", chain(&e), reader.log()));
            reader.terminate().expect("it ends");
            let pairs: Vec<(String, String)> = answer.into_iter().collect();
            pairs
        };
        let own = r#"{"job":"a","path":"/"}"#;
        let full = r#"{"job":"a","path":"/","region":"eu","zone":"z1"}"#;
        let twelve = |labels: &str| vec![(labels.to_owned(), "12".to_owned())];
        assert_eq!(ask("a", &with, &[]), twelve(full), "only the store has labels");
        assert_eq!(ask("b", &with, &labels), twelve(own), "both have the same");
        let one = r#"{"job":"a","path":"/","zone":"z1"}"#;
        assert_eq!(ask("c", &with, &labels[..1]), twelve(one), "the reader has one of them");
        assert_eq!(ask("d", &with, &others), [], "the reader has another value");
        assert_eq!(ask("e", &without, &labels), [], "only the reader has labels");
        assert_eq!(ask("f", &without, &[]), twelve(own), "no server has labels");
    }
}
