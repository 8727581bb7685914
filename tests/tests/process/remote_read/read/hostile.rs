//! Reads of the largest allowed size do not delay writes: the short form of `bench-reads`.

use serde_json::Value;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::hostile::{Contents, Kind, Writes, beside, filled};
use tidepool_tests::http::Client;
use tidepool_tests::tidepool::Store;

/// A head whose scan at once takes a tenth of a second and more.
const CONTENTS: Contents = Contents { series: 100_000, exemplars: 100_000, families: 50_000 };

const PHASE: Duration = Duration::from_secs(2);

/// Three of four writes take no longer beside reads, or at most this many times their duration
/// alone: machines that run tests have other work, too. If a call scans the whole head at once,
/// nearly each write waits for one, some hundred milliseconds.
const PART: f64 = 0.75;
const TIME_MAX: Duration = Duration::from_millis(50);
const RATIO_MAX: u32 = 4;

#[test]
fn reads_of_the_head_hold_no_write_up() {
    let start_ms = now_ms();
    let store = filled(&[], CONTENTS, start_ms).expect("a filled head");
    let mut writes = Writes::new(&store.server.url(), start_ms + 1_000, 50);
    for kind in [
        Kind::SeriesNegative,
        Kind::SeriesEmpty,
        Kind::LabelsSelectors,
        Kind::ValuesRegex,
        Kind::ReadStreamed,
        Kind::Exemplars,
        Kind::Cardinality,
        Kind::Metadata,
        Kind::Deletes,
    ] {
        let quiet = writes.send_for(PHASE).expect("writes").quantile(PART);
        let loaded = beside(&store, &mut writes, kind, CONTENTS, 2, PHASE).expect("writes");
        let (time, longest) = (loaded.phase.quantile(PART), loaded.phase.quantile(1.0));
        let reads = loaded.answered;
        println!("{}: {time:?}, longest {longest:?}, {quiet:?} quiet, {reads} reads", kind.name());
        assert!(loaded.answered > 0, "{}: {} refused", kind.name(), loaded.refused);
        let time_max = TIME_MAX.max(quiet * RATIO_MAX);
        assert!(time <= time_max, "{}: {time:?}, {quiet:?} quiet", kind.name());
    }
}

fn data(store: &Store, path: &str) -> Value {
    let answer = Client::default().get(&format!("{}/api/v1/{path}", store.server.url()));
    let answer: Value = serde_json::from_slice(&answer.expect("an answer").body).expect("JSON");
    assert_eq!(answer["status"], "success", "{answer}");
    answer["data"].clone()
}

/// Data that the head returns in many pieces equals the sent data, each item once and in order.
#[test]
fn what_comes_in_pieces_is_whole() {
    let start_ms = now_ms();
    let contents = Contents { series: 20_000, exemplars: 20_000, families: 20_000 };
    let store = filled(&[], contents, start_ms).expect("a filled head");

    // Ten of each of two thousand series.
    let found = data(&store, "query_exemplars?query=flood");
    let series = found.as_array().expect("series");
    assert_eq!(series.len(), 2_000);
    let labels = |one: &Value| (one["seriesLabels"]["i"].to_string(), one["seriesLabels"].clone());
    assert!(series.is_sorted_by(|a, b| labels(a).0 < labels(b).0), "in label order, each once");
    for one in series {
        assert_eq!(labels(one).1["__name__"], "flood");
        let times = one["exemplars"].as_array().expect("exemplars").iter();
        let times: Vec<i64> = times
            .map(|e| (e["timestamp"].as_f64().expect("a time") * 1e3).round() as i64)
            .collect();
        assert_eq!(times, (1..=10).map(|round| start_ms + round).collect::<Vec<_>>());
    }
    let one = data(&store, "query_exemplars?query=flood%7Bi%3D~%221.%22%7D");
    assert_eq!(one.as_array().map(Vec::len), Some(10));

    let families = data(&store, "metadata");
    let families = families.as_object().expect("families");
    assert_eq!(families.len(), contents.families);
    assert_eq!(families["family_019999_total"][0]["unit"], "seconds");
    let names = |path| data(&store, path).as_object().expect("families").keys().cloned().collect();
    let one: Vec<String> = names("metadata?metric=family_000007_total");
    assert_eq!(one, ["family_000007_total"]);
    assert_eq!(names("metadata?metric=family_00000"), [""; 0]);
    assert_eq!(names("metadata?limit=2"), ["family_000000_total", "family_000001_total"]);
    assert_eq!(names("metadata?limit=0"), [""; 0]);

    let status = data(&store, "status/tsdb?limit=10000");
    assert_eq!(status["headStats"]["numLabelPairs"], 20_000 + 10 + 1);
    let items = |list: &str| -> Vec<(String, u64)> {
        let items = status[list].as_array().expect("a list").iter();
        let item = |item: &Value| {
            (
                item["name"].as_str().expect("a name").to_owned(),
                item["value"].as_u64().expect("a number"),
            )
        };
        items.map(item).collect()
    };
    let numbers = [("i", 20_000u64), ("job", 10), ("__name__", 1)];
    assert_eq!(items("labelValueCountByLabelName"), numbers.map(|(n, v)| (n.to_owned(), v)));
    assert_eq!(items("seriesCountByMetricName"), [("flood".to_owned(), 20_000)]);
    let pairs = items("seriesCountByLabelValuePair");
    assert_eq!((pairs.len(), &pairs[0]), (10_000, &("__name__=flood".to_owned(), 20_000)));
    assert!(pairs[1..11].iter().all(|(pair, n)| pair.starts_with("job=") && *n == 2_000));
    assert!(pairs[11..].iter().all(|(pair, number)| pair.starts_with("i=") && *number == 1));
}
