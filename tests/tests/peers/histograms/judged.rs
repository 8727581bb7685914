//! The same messages are sent to tidepool and to Prometheus, which must accept, refuse and return
//! the same.

use super::receiver;
use tidepool_tests::clock::now_ms;
use tidepool_tests::histogram::generate::{SentSeries, SentValue};
use tidepool_tests::histogram::stored::{assert_holds, data_until_now, exact, read, rows, send};
use tidepool_tests::histogram::wire::{SentRow, encode};
use tidepool_tests::process::Server;
use tidepool_tests::proto::prometheus::histogram::{Count, ResetHint, ZeroCount};
use tidepool_tests::proto::prometheus::{BucketSpan, Histogram};
use tidepool_tests::remote_write::{Version, Writer, Written};
use tidepool_tests::series::Labels;
use tidepool_tests::tidepool::Store;

fn start_both(directory: &std::path::Path) -> (Store, Server) {
    let store = Store::start().expect("tidepool starts");
    let prometheus = receiver(directory, "receiver").start().expect("Prometheus starts");
    (store, prometheus)
}

/// Removes negative zeros, which Prometheus' messages lack.
fn without_negative_zero(mut data: Vec<SentSeries>) -> Vec<SentSeries> {
    for (_, value) in data.iter_mut().flat_map(|series| &mut series.values) {
        if let SentValue::Float(value) = value {
            *value += 0.0;
        }
    }
    data
}

#[test]
fn answers_are_those_of_prometheus() {
    for version in Version::ALL {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (store, prometheus) = start_both(directory.path());
        let data = without_negative_zero(data_until_now(201, 36, 300, 5_000));
        let all = rows(&data);
        for server in [&store.server, &prometheus] {
            send(server, version, &all);
            assert_holds("both", server, &data);
        }
        // Compared including the kind of stale markers.
        let (ours, theirs) = (read("ours", &store.server), read("theirs", &prometheus));
        assert_eq!(exact(&ours), exact(&theirs));
    }
}

#[test]
fn out_of_order_histograms_are_taken_as_prometheus_takes_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (store, prometheus) = start_both(directory.path());
    let data = without_negative_zero(data_until_now(202, 18, 300, 5_000));
    let all = rows(&data);
    let part = |out_of_order: bool| -> Vec<SentRow<'_>> {
        let numbered = all.iter().enumerate().filter(|(n, _)| (n % 3 == 1) == out_of_order);
        numbered.map(|(_, row)| *row).collect()
    };
    let (in_order, mut out_of_order) = (part(false), part(true));
    out_of_order.reverse();
    for server in [&store.server, &prometheus] {
        send(server, Version::V2, &in_order);
        send(server, Version::V2, &out_of_order);
        assert_holds("both", server, &data);
    }
}

fn spans(list: &[(i32, u32)]) -> Vec<BucketSpan> {
    list.iter().map(|&(offset, length)| BucketSpan { offset, length }).collect()
}

fn whole() -> Histogram {
    Histogram {
        count: Some(Count::CountInt(7)),
        sum: 12.5,
        schema: 3,
        zero_threshold: 0.001,
        zero_count: Some(ZeroCount::ZeroCountInt(1)),
        positive_spans: spans(&[(-2, 2), (3, 1)]),
        positive_deltas: vec![1, 1, -1],
        negative_spans: spans(&[(0, 1)]),
        negative_deltas: vec![2],
        ..Histogram::default()
    }
}

fn fractions() -> Histogram {
    Histogram {
        count: Some(Count::CountFloat(7.5)),
        zero_count: Some(ZeroCount::ZeroCountFloat(1.5)),
        positive_deltas: vec![],
        positive_counts: vec![1.0, 2.0, 1.0],
        negative_deltas: vec![],
        negative_counts: vec![2.0],
        ..whole()
    }
}

fn custom() -> Histogram {
    Histogram {
        count: Some(Count::CountInt(4)),
        schema: -53,
        zero_threshold: 0.0,
        zero_count: Some(ZeroCount::ZeroCountInt(0)),
        positive_spans: spans(&[(0, 1), (1, 2)]),
        positive_deltas: vec![1, 0, 1],
        negative_spans: vec![],
        negative_deltas: vec![],
        custom_values: vec![0.5, 1.0, 2.5],
        ..whole()
    }
}

/// Returns histograms, valid and invalid, each with a description.
fn cases() -> Vec<(&'static str, Histogram)> {
    let with = |base: Histogram, change: &dyn Fn(&mut Histogram)| {
        let mut histogram = base;
        change(&mut histogram);
        histogram
    };
    let schema = |schema: i32| Histogram { schema, ..whole() };
    let mut cases = vec![
        ("whole", whole()),
        ("fractions", fractions()),
        ("custom", custom()),
        ("empty", Histogram::default()),
        (
            "empty fractions",
            Histogram { count: Some(Count::CountFloat(0.0)), ..Histogram::default() },
        ),
        ("count too large", Histogram { count: Some(Count::CountInt(8)), ..whole() }),
        ("count too small", Histogram { count: Some(Count::CountInt(6)), ..whole() }),
        (
            "count too large, sum NaN",
            Histogram { count: Some(Count::CountInt(8)), sum: f64::NAN, ..whole() },
        ),
        (
            "count too small, sum NaN",
            Histogram { count: Some(Count::CountInt(6)), sum: f64::NAN, ..whole() },
        ),
        (
            "fractions that do not add up",
            Histogram { count: Some(Count::CountFloat(99.0)), ..fractions() },
        ),
        (
            "fractions that are too many",
            Histogram { count: Some(Count::CountFloat(1.0)), ..fractions() },
        ),
        ("negative count", Histogram { count: Some(Count::CountFloat(-7.5)), ..fractions() }),
        (
            "negative zero count",
            Histogram { zero_count: Some(ZeroCount::ZeroCountFloat(-1.0)), ..fractions() },
        ),
        ("negative bucket", with(whole(), &|h| h.positive_deltas = vec![1, -2, 4])),
        ("negative bucket below zero", with(whole(), &|h| h.negative_deltas = vec![-2])),
        ("negative fraction", with(fractions(), &|h| h.positive_counts = vec![1.0, -2.0, 1.0])),
        ("NaN bucket", with(fractions(), &|h| h.positive_counts = vec![1.0, f64::NAN, 1.0])),
        ("infinite sum", Histogram { sum: f64::INFINITY, ..whole() }),
        ("too few buckets", with(whole(), &|h| h.positive_deltas = vec![1, 3])),
        ("too many buckets", with(whole(), &|h| h.positive_deltas = vec![1, 1, -1, 0])),
        ("buckets without spans", with(whole(), &|h| h.negative_spans = vec![])),
        ("spans without buckets", with(fractions(), &|h| h.negative_counts = vec![])),
        ("span goes back", with(whole(), &|h| h.positive_spans = spans(&[(-2, 2), (-1, 1)]))),
        (
            "span of no length",
            with(whole(), &|h| h.positive_spans = spans(&[(-2, 2), (2, 0), (1, 1)])),
        ),
        ("negative zero threshold", Histogram { zero_threshold: -1.0, ..whole() }),
        ("NaN zero threshold", Histogram { zero_threshold: f64::NAN, ..whole() }),
        ("bounds on exponential buckets", Histogram { custom_values: vec![1.0], ..whole() }),
        ("bounds not ascending", with(custom(), &|h| h.custom_values = vec![0.5, 0.5, 2.5])),
        ("bound NaN", with(custom(), &|h| h.custom_values = vec![0.5, f64::NAN, 2.5])),
        (
            "last bound infinite",
            with(custom(), &|h| h.custom_values = vec![0.5, 1.0, f64::INFINITY]),
        ),
        ("too few bounds", with(custom(), &|h| h.custom_values = vec![0.5, 1.0])),
        ("no bounds", with(custom(), &|h| h.custom_values = vec![])),
        ("custom with a zero bucket", Histogram { zero_threshold: 0.1, ..custom() }),
        (
            "custom with a zero count",
            with(custom(), &|h| {
                h.zero_count = Some(ZeroCount::ZeroCountInt(1));
                h.count = Some(Count::CountInt(5));
            }),
        ),
        (
            "custom below zero",
            with(custom(), &|h| {
                h.negative_spans = spans(&[(0, 1)]);
                h.negative_deltas = vec![1];
                h.count = Some(Count::CountInt(5));
            }),
        ),
        (
            "custom begins below the first bound",
            with(custom(), &|h| h.positive_spans = spans(&[(-1, 1), (1, 2)])),
        ),
        (
            "custom fractions",
            with(custom(), &|h| {
                h.count = Some(Count::CountFloat(4.0));
                h.zero_count = Some(ZeroCount::ZeroCountFloat(0.0));
                h.positive_deltas = vec![];
                h.positive_counts = vec![1.0, 1.0, 2.0];
            }),
        ),
        ("gauge", with(whole(), &|h| h.reset_hint = ResetHint::Gauge.into())),
        ("unknown hint", Histogram { reset_hint: 17, ..whole() }),
    ];
    for number in [-55, -54, -52, -10, -9, -5, -4, 0, 8, 9, 20, 52, 53, 54, 1_000, i32::MIN] {
        cases.push(("schema", schema(number)));
    }
    cases
}

/// Compares status, headers, and the stored result.
#[test]
fn the_same_histograms_are_refused() {
    for version in Version::ALL {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (store, prometheus) = start_both(directory.path());
        let timestamp_ms = now_ms() - 1_000;
        let mut differ = Vec::new();
        for (number, (what, histogram)) in cases().into_iter().enumerate() {
            let what = format!("{version}, {what} (schema {})", histogram.schema);
            let name = format!("case_{number}");
            let labels = Labels::from_pairs([("__name__", name.as_str())]);
            let other = Labels::from_pairs([("__name__", format!("beside_{number}"))]);
            let (value, float) = (SentValue::Histogram(Box::new(histogram)), SentValue::Float(1.0));
            let row = |labels, value| SentRow { labels, timestamp_ms, value };
            let body = encode(version, &[row(&labels, &value), row(&other, &float)]);
            let answers = [&store.server, &prometheus].map(|server| {
                let response =
                    Writer::new(&server.url()).send_body(version, &body).expect("an answer");
                (response.status, Written::from_response(&response), response.text())
            });
            let [ours, theirs] = &answers;
            if (ours.0, ours.1) != (theirs.0, theirs.1) {
                differ.push(format!("{what}:\n  ours   {ours:?}\n  theirs {theirs:?}"));
            }
        }
        assert!(differ.is_empty(), "{}", differ.join("\n"));
        let (mut ours, mut theirs) = (read("ours", &store.server), read("theirs", &prometheus));
        if version == Version::V1 {
            // Prometheus keeps nothing of a request with one invalid part; tidepool keeps the rest,
            // as the specification demands.
            for series in [&mut ours, &mut theirs] {
                series.retain(|one| one.labels.value("__name__").starts_with("case"));
            }
        }
        assert_eq!(exact(&ours), exact(&theirs), "{version}");
    }
}
