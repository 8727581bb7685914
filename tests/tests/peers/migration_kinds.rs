//! Native histograms of every kind, exemplars and metadata move between Prometheus and tidepool as
//! floats do: in the log, in the out-of-order log, and in blocks.

use std::collections::BTreeMap;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::http::{Client, Response};
use tidepool_tests::node::{
    COMPACTION_TIMEOUT, End, KILL, Node, Owner, PROMETHEUS_2, PROMETHEUS_3, STOP, TIDEPOOL,
};
use tidepool_tests::process::Server;
use tidepool_tests::prometheus;
use tidepool_tests::proto::prometheus::histogram::{Count, ZeroCount};
use tidepool_tests::proto::prometheus::{
    BucketSpan, Exemplar, Histogram, Label, Sample, TimeSeries, WriteRequest,
};
use tidepool_tests::proto::write_v2;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::upstream_race::again_after_race;
use tidepool_tests::wait;

/// Kind of a series' samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Fractional,
    Gauge,
    WholeCustom,
    FractionalCustom,
    /// Floats and histograms in turn.
    Mixed,
}

const OF_2_X: [Kind; 3] = [Kind::Whole, Kind::Fractional, Kind::Gauge];
const OF_3_X: [Kind; 6] = [
    Kind::Whole,
    Kind::Fractional,
    Kind::Gauge,
    Kind::WholeCustom,
    Kind::FractionalCustom,
    Kind::Mixed,
];

/// Acknowledged samples by name and time, in a form in which equal samples are equal.
type Expected = BTreeMap<(String, i64), String>;

/// Returns the counts of the buckets from -3 on, at a step: they grow, buckets appear, and now and
/// then all are reset.
fn counts(step: i64) -> Vec<(i32, u64)> {
    let since_reset = step % 70;
    let count = |bucket: i32| {
        let first = i64::from(bucket + 3) * 9;
        u64::try_from((since_reset - first) * i64::from(bucket + 4)).unwrap_or(0)
    };
    (-3..5).map(|bucket| (bucket, count(bucket))).filter(|(_, count)| *count > 0).collect()
}

fn spans(buckets: &[(i32, u64)]) -> Vec<BucketSpan> {
    let mut spans: Vec<BucketSpan> = Vec::new();
    let mut next = 0;
    for (bucket, _) in buckets {
        match spans.last_mut() {
            Some(span) if next == *bucket => span.length += 1,
            _ => spans.push(BucketSpan { offset: bucket - next, length: 1 }),
        }
        next = bucket + 1;
    }
    spans
}

fn histogram(kind: Kind, step: i64, timestamp: i64) -> Histogram {
    let is_custom = matches!(kind, Kind::WholeCustom | Kind::FractionalCustom);
    let mut buckets = counts(step);
    if is_custom {
        // Custom bounds are counted from zero, and there is no zero bucket.
        buckets.iter_mut().for_each(|(bucket, _)| *bucket += 3);
    }
    // Never an empty histogram: Prometheus 2.x takes it for one of whole counts.
    let zero = if is_custom { 0 } else { (step % 70) as u64 + 1 };
    let total = zero + buckets.iter().map(|(_, count)| count).sum::<u64>();
    let mut histogram = Histogram {
        sum: [1.5, -0.0, f64::NEG_INFINITY, 1e300][(step % 4) as usize] * step as f64,
        schema: if is_custom { -53 } else { (step / 50 % 3) as i32 },
        zero_threshold: if is_custom { 0.0 } else { 1e-128 },
        positive_spans: spans(&buckets),
        reset_hint: if kind == Kind::Gauge { 3 } else { 0 },
        timestamp,
        custom_values: if is_custom { (0..8).map(f64::from).collect() } else { Vec::new() },
        ..Default::default()
    };
    if matches!(kind, Kind::Fractional | Kind::FractionalCustom) {
        histogram.count = Some(Count::CountFloat(total as f64 / 2.0));
        histogram.zero_count = Some(ZeroCount::ZeroCountFloat(zero as f64 / 2.0));
        histogram.positive_counts = buckets.iter().map(|(_, count)| *count as f64 / 2.0).collect();
    } else {
        histogram.count = Some(Count::CountInt(total));
        histogram.zero_count = Some(ZeroCount::ZeroCountInt(zero));
        let before = std::iter::once(0).chain(buckets.iter().map(|(_, count)| *count as i64));
        let deltas = buckets.iter().zip(before).map(|((_, count), before)| *count as i64 - before);
        histogram.positive_deltas = deltas.collect();
    }
    histogram
}

/// Returns a histogram's meaning: spans, and hints about resets, may differ.
fn meaning(histogram: &Histogram) -> String {
    let mut buckets = Vec::new();
    for (spans, deltas, counts) in [
        (&histogram.positive_spans, &histogram.positive_deltas, &histogram.positive_counts),
        (&histogram.negative_spans, &histogram.negative_deltas, &histogram.negative_counts),
    ] {
        let mut sum = 0;
        let whole = deltas.iter().map(|delta| {
            sum += delta;
            sum as f64
        });
        let mut counts = whole.chain(counts.iter().copied());
        let mut bucket = 0;
        for span in spans {
            bucket += span.offset;
            for _ in 0..span.length {
                let count = counts.next().expect("a count of every bucket");
                if count != 0.0 {
                    buckets.push((bucket, count));
                }
                bucket += 1;
            }
        }
        buckets.push((i32::MAX, 0.0));
    }
    let Histogram { count, zero_count, schema, zero_threshold, custom_values, .. } = histogram;
    let zero_count = zero_count.filter(|_| *schema != -53);
    // Answers of this kind lose the sign of a sum of zero.
    let sum = if histogram.sum == 0.0 { 0 } else { histogram.sum.to_bits() };
    let is_gauge = histogram.reset_hint == 3;
    format!(
        "{schema} {count:?} {zero_threshold} {zero_count:?} {sum:x} {is_gauge} {custom_values:?} \
         {buckets:?}"
    )
}

fn labels(name: &str) -> Vec<Label> {
    let label = |name: &str, value: &str| Label { name: name.into(), value: value.into() };
    vec![label("__name__", name), label("job", "kinds"), label("kind", name)]
}

#[track_caller]
fn assert_taken(response: Response) {
    assert!(response.status / 100 == 2, "{}: {}", response.status, response.text());
}

fn name_of(kind: Kind) -> String {
    format!("{kind:?}_seconds").to_lowercase()
}

/// Sends a step of every kind, every tenth with an exemplar if requested (Prometheus does not keep
/// that of a new series).
fn send_step(
    server: &Server,
    kinds: &[Kind],
    (step, timestamp): (i64, i64),
    with_exemplars: bool,
    expected: &mut Expected,
) {
    let mut timeseries = Vec::new();
    for kind in kinds {
        let name = name_of(*kind);
        let mut series = TimeSeries { labels: labels(&name), ..Default::default() };
        if *kind == Kind::Mixed && step / 20 % 2 == 0 {
            let value = step as f64;
            series.samples.push(Sample { value, timestamp });
            expected.insert((name, timestamp), format!("{value}"));
        } else {
            let histogram = histogram(*kind, step, timestamp);
            expected.insert((name, timestamp), meaning(&histogram));
            series.histograms.push(histogram);
        }
        if with_exemplars && step % 10 == 5 {
            let labels = vec![Label { name: "trace_id".into(), value: format!("{step:x}") }];
            series.exemplars.push(Exemplar { labels, value: step as f64, timestamp });
        }
        timeseries.push(series);
    }
    let request = WriteRequest { timeseries, metadata: Vec::new() };
    let writer = Writer::new(&server.url());
    assert_taken(writer.send_message(Version::V1, &request).expect("an answer"));
}

fn found(server: &Server) -> Result<Expected, String> {
    let all = everything(i64::MIN / 2, i64::MAX / 2);
    let message = Reader::new(&server.url()).samples_message(&[all]);
    let message = message.map_err(|e| wait::chain(&e))?;
    let mut found = Expected::new();
    for series in &message.results[0].timeseries {
        let name = series.labels.iter().find(|label| label.name == "__name__");
        let name = name.map(|label| label.value.clone()).unwrap_or_default();
        let floats = series.samples.iter().map(|s| (s.timestamp, format!("{}", s.value)));
        let histograms = series.histograms.iter().map(|h| (h.timestamp, meaning(h)));
        for (timestamp, text) in floats.chain(histograms) {
            if let Some(other) = found.insert((name.clone(), timestamp), text) {
                return Err(format!("{name} at {timestamp} came twice, once as {other}"));
            }
        }
    }
    Ok(found)
}

/// Prometheus is asked repeatedly for a while, as in [`Node::assert_holds`].
#[track_caller]
fn assert_holds(server: &Server, expected: &Expected, when: &str) {
    if server.name() == prometheus::NAME_V2 {
        return assert_counts(server, expected, when);
    }
    let ask = || found(server).ok().filter(|found| found == expected).map(|_| ());
    if wait::until("the samples", COMPACTION_TIMEOUT, ask).is_ok() {
        return;
    }
    let found = found(server).unwrap_or_else(|error| panic!("{when}: {error}\n{}", server.log()));
    let differ = expected.iter().filter(|(at, text)| found.get(*at) != Some(*text));
    let differ: Vec<_> = differ.map(|(at, text)| (at, text, found.get(at))).take(4).collect();
    let count = (found.len(), expected.len());
    panic!("{when}: found and expected {count:?}; expected and found: {differ:#?}");
}

/// Prometheus 2.x answers remote reads of this kind without histograms, so only their number is
/// compared here. The next server is asked for the histograms themselves.
#[track_caller]
fn assert_counts(server: &Server, expected: &Expected, when: &str) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in expected.keys() {
        *counts.entry(format!("{{\"job\":\"kinds\",\"kind\":{name:?}}}")).or_default() += 1;
    }
    let counts: BTreeMap<String, String> =
        counts.into_iter().map(|(name, count)| (name, count.to_string())).collect();
    let question = "count_over_time({job=\"kinds\"}[1d])";
    let found = prometheus::query(server, question, now_ms() + 60_000);
    assert_eq!(found.unwrap_or_else(|e| panic!("{when}: {}", wait::chain(&e))), counts, "{when}");
}

fn move_kinds(node: &Node, kinds: &[Kind], turns: &[(Owner, End)], steps_per_turn: i64) {
    let is_out_of_order = |step: i64| node.takes_out_of_order() && step % 5 == 3;
    let steps = turns.len() as i64 * steps_per_turn;
    let time = |step: i64| now_ms().div_euclid(1_000) * 1_000 - (steps - step) * 15_000;
    let base = time(0);
    let at = |step: i64| (step, base + step * 15_000);
    let mut expected = Expected::new();
    for ((owner, end), turn) in turns.iter().zip(0..) {
        let server = node.start(*owner);
        assert_holds(&server, &expected, &format!("turn {turn}, {owner:?} has taken over"));
        let own: Vec<i64> = (turn * steps_per_turn..(turn + 1) * steps_per_turn).collect();
        for some in own.chunks(50) {
            let in_order = some.iter().filter(|step| !is_out_of_order(**step));
            let out_of_order = some.iter().rev().filter(|step| is_out_of_order(**step));
            for step in in_order.chain(out_of_order) {
                send_step(&server, kinds, at(*step), false, &mut expected);
            }
        }
        if *owner == TIDEPOOL && steps_per_turn * 15_000 > 4 * node.block_ms() {
            let cut = || data_dir::blocks(&node.data_dir()).ok()?.len().checked_sub(4);
            wait::until("blocks", Duration::from_secs(60), cut).expect("blocks");
        }
        assert_holds(&server, &expected, &format!("turn {turn}, {owner:?} has worked"));
        end(server).expect("it ends");
    }
    let server = node.start(TIDEPOOL);
    assert_holds(&server, &expected, "at the end");
}

const HISTOGRAMS_OF_2_X: &str = "--enable-feature=native-histograms";

#[test]
fn histograms_move_from_prometheus_2() {
    again_after_race(|| {
        let turns =
            [(PROMETHEUS_2, STOP), (TIDEPOOL, KILL), (PROMETHEUS_2, KILL), (TIDEPOOL, STOP)];
        let node = Node::default().prometheus_flag(HISTOGRAMS_OF_2_X);
        move_kinds(&node, &OF_2_X, &turns, 60);
        let node = Node::default().prometheus_flag(HISTOGRAMS_OF_2_X).blocks(5, 45);
        move_kinds(&node, &OF_2_X, &turns, 200);
    });
}

#[test]
fn histograms_move_from_prometheus_3() {
    again_after_race(|| {
        let turns =
            [(PROMETHEUS_3, KILL), (TIDEPOOL, STOP), (PROMETHEUS_3, STOP), (TIDEPOOL, KILL)];
        move_kinds(&Node::default(), &OF_3_X, &turns, 60);
        let node = Node::default().blocks(5, 45).out_of_order_window("30m");
        move_kinds(&node, &OF_3_X, &turns, 200);
    });
}

#[test]
fn exemplars_move() {
    let node = Node::default().prometheus_flag("--enable-feature=exemplar-storage");
    let mut expected = Expected::new();
    let start_ms = now_ms() - 600_000;
    for (turn, owner) in (0..).zip([PROMETHEUS_3, TIDEPOOL, PROMETHEUS_3, TIDEPOOL, PROMETHEUS_3]) {
        let server = node.start(owner);
        let kept = exemplars_kept(&server, owner);
        assert_eq!(kept, turn * 5 * OF_3_X.len(), "turn {turn}, {owner:?}\n{}", server.log());
        for step in turn as i64 * 50..(turn as i64 + 1) * 50 {
            let at = (step, start_ms + step * 1_000);
            send_step(&server, &OF_3_X, at, true, &mut expected);
        }
        assert_holds(&server, &expected, &format!("turn {turn}, {owner:?}"));
        let kept = exemplars_kept(&server, owner);
        assert_eq!(kept, (turn + 1) * 5 * OF_3_X.len(), "turn {turn}, {owner:?} at its end");
        server.kill().expect("it can be killed");
    }
}

fn exemplars_kept(server: &Server, owner: Owner) -> usize {
    if owner == TIDEPOOL {
        let name = "prometheus_tsdb_exemplar_exemplars_in_storage";
        return server.metric(name).expect("the metric") as usize;
    }
    let url = format!(
        "{}/api/v1/query_exemplars?query=%7Bjob%3D%22kinds%22%7D&start={}&end={}",
        server.url(),
        now_ms() / 1000 - 86_400,
        now_ms() / 1000 + 86_400
    );
    let answer = Client::default().get(&url).expect("an answer").text();
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    let series = answer["data"].as_array().expect("a list");
    series.iter().filter_map(|series| Some(series["exemplars"].as_array()?.len())).sum()
}

fn families(server: &Server) -> serde_json::Value {
    let answer = Client::default().get(&format!("{}/api/v1/metadata", server.url()));
    let answer = answer.expect("an answer").text();
    serde_json::from_str::<serde_json::Value>(&answer).expect("JSON")["data"].take()
}

/// Prometheus keeps the metadata of 2.0 senders in its log if that feature is enabled.
#[test]
fn metadata_moves() {
    let node = Node::default().prometheus_flag("--enable-feature=metadata-wal-records");
    let mut wanted = serde_json::Map::new();
    for (turn, owner) in [PROMETHEUS_3, TIDEPOOL, PROMETHEUS_3, TIDEPOOL].into_iter().enumerate() {
        let server = node.start(owner);
        if owner == TIDEPOOL {
            assert_eq!(families(&server), serde_json::Value::Object(wanted.clone()));
        }
        let name = format!("turn_{turn}_bytes");
        let symbols = ["", "__name__", &name, "What it is.", "bytes"].map(str::to_string).to_vec();
        let metadata = write_v2::Metadata { r#type: 2, help_ref: 3, unit_ref: 4 };
        let sample = write_v2::Sample { value: 1.0, timestamp: now_ms(), start_timestamp: 0 };
        let series = write_v2::TimeSeries {
            labels_refs: vec![1, 2],
            samples: vec![sample],
            metadata: Some(metadata),
            ..Default::default()
        };
        let request = write_v2::Request { symbols, timeseries: vec![series] };
        let writer = Writer::new(&server.url());
        assert_taken(writer.send_message(Version::V2, &request).expect("an answer"));
        let entry =
            serde_json::json!([{ "type": "gauge", "help": "What it is.", "unit": "bytes" }]);
        wanted.insert(name, entry);
        server.kill().expect("it can be killed");
    }
    let server = node.start(TIDEPOOL);
    assert_eq!(families(&server), serde_json::Value::Object(wanted));
}
