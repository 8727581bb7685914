//! External labels of the node (`--external-label`): matchers on them, series that get them, the
//! resulting order, and real Prometheus as reader with and without such labels.

use crate::remote_read::Case;
use std::time::Duration;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::proto::prometheus::LabelMatcher;
use tidepool_tests::proto::prometheus::label_matcher::Type::{self, Eq, Neq, Nre, Re};
use tidepool_tests::remote_read::{matcher, query};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Row, Sample, Series};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::{self, chain};

const FLAGS: [&str; 2] = ["--external-label=region=eu", "--external-label=zone=z1"];

/// Stored labels besides the name, in the order in which they are stored.
const STORED: [&[(&str, &str)]; 6] = [
    &[],
    &[("job", "a")],
    &[("job", "a"), ("path", "/")],
    &[("job", "a"), ("zone", "z0")],
    // Equal to the second label set once it has the external labels.
    &[("job", "a"), ("zone", "z1")],
    &[("region", "us")],
];

/// Makes two hours of samples, ten minutes apart, at other times for each series.
fn stored(start_ms: i64) -> Vec<Series> {
    let series = |(number, pairs): (usize, &&[(&str, &str)])| {
        let pairs: Vec<_> = [&[("__name__", "m")], *pairs].concat();
        let at = |i: i64| (start_ms + i * 600_000 + number as i64, (i * 10 + number as i64) as f64);
        Series::new(&pairs, &(0..12).map(at).collect::<Vec<_>>())
    };
    STORED.iter().enumerate().map(series).collect()
}

/// Returns the expected answer: stored labels take precedence, and series whose labels become equal
/// are merged.
fn with_external(stored: &[Series], wanted: &[usize]) -> Vec<Series> {
    let mut merged: Vec<Series> = Vec::new();
    for number in wanted {
        let series = &stored[*number];
        let mut pairs = series.labels.pairs().to_vec();
        for (name, value) in [("region", "eu"), ("zone", "z1")] {
            if series.labels.value(name).is_empty() {
                pairs.push((name.to_owned(), value.to_owned()));
            }
        }
        let labels = tidepool_tests::series::Labels::from_pairs(pairs);
        match merged.iter_mut().find(|other| other.labels == labels) {
            Some(same) => same.samples.extend(&series.samples),
            None => merged.push(Series { labels, samples: series.samples.clone() }),
        }
    }
    merged.iter_mut().for_each(|series| series.samples.sort_by_key(|s| s.timestamp_ms));
    merged.sort_by(|a, b| a.labels.cmp(&b.labels));
    merged
}

fn send(store: &Store, stored: &[Series]) {
    for at in 0..stored[0].samples.len() {
        let sample = |series: &'_ Series| -> [Sample; 1] { [series.samples[at]] };
        let samples: Vec<[Sample; 1]> = stored.iter().map(sample).collect();
        let rows: Vec<Row<'_>> = stored
            .iter()
            .zip(&samples)
            .map(|(series, samples)| Row { labels: &series.labels, samples })
            .collect();
        let response = store.writer().send(Version::V2, &rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }
}

fn start(start_ms: i64, flags: &[&str]) -> (Store, Vec<Series>) {
    let stored = stored(start_ms);
    let store = Store::start_with(|config| {
        flags.iter().fold(config.block_duration("30m"), |config, flag| config.flag(flag))
    })
    .expect("tidepool starts");
    send(&store, &stored);
    let cut = || {
        let blocks = data_dir::blocks(store.config.data_dir()).ok()?;
        (!blocks.is_empty()).then_some(())
    };
    wait::until("a block", Duration::from_secs(150), cut).expect("blocks are cut");
    (store, stored)
}

fn matchers(list: &[(Type, &str, &str)]) -> Vec<LabelMatcher> {
    list.iter().map(|(kind, name, value)| matcher(*kind, name, value)).collect()
}

/// Head and blocks, both kinds.
#[test]
fn external_labels_are_found_and_added() {
    let start_ms = now_ms() - 7_300_000;
    let (store, stored) = start(start_ms, &FLAGS);
    let cases: &[Case] = &[
        (&[(Eq, "__name__", "m")], &[0, 1, 2, 3, 4, 5]),
        // The node's own value selects series stored without the label.
        (&[(Eq, "region", "eu")], &[0, 1, 2, 3, 4]),
        (&[(Eq, "zone", "z1"), (Eq, "job", "a")], &[1, 2]),
        (&[(Eq, "region", "eu"), (Eq, "zone", "z1")], &[0, 1, 2]),
        // Another value selects series stored with it.
        (&[(Eq, "region", "us")], &[5]),
        (&[(Eq, "zone", "z0")], &[3]),
        (&[(Eq, "region", "none")], &[]),
        // Other kinds of matchers are unchanged.
        (&[(Re, "region", "eu")], &[]),
        (&[(Re, "zone", "z.")], &[3, 4]),
        (&[(Neq, "region", "eu")], &[0, 1, 2, 3, 4, 5]),
        (&[(Neq, "zone", "z1"), (Neq, "zone", "")], &[3]),
        (&[(Nre, "zone", "z1"), (Eq, "job", "a")], &[1, 2, 3]),
        (&[(Eq, "region", "")], &[0, 1, 2, 3, 4]),
    ];
    for (list, wanted) in cases {
        for (start_ms, end_ms) in [(i64::MIN, i64::MAX), (start_ms, start_ms + 3_000_000)] {
            let query = query(start_ms, end_ms, matchers(list));
            let expected: Vec<Series> = with_external(&stored, wanted)
                .iter()
                .map(|series| series.between(start_ms, end_ms))
                .collect();
            let streamed = store.reader().streamed(std::slice::from_ref(&query));
            let streamed = streamed.unwrap_or_else(|e| panic!("{list:?}: {}", chain(&e)));
            assert_same(&format!("streamed {list:?}"), &expected, &streamed[0]);
            let samples = store.reader().samples(&[query]);
            let samples = samples.unwrap_or_else(|e| panic!("{list:?}: {}", chain(&e)));
            assert_same(&format!("samples {list:?}"), &expected, &samples[0]);
            assert!(samples[0].is_sorted_by(|a, b| a.labels < b.labels), "{list:?}");
        }
    }
}
