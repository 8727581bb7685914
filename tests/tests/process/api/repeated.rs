//! Range queries repeated with ranges that have moved on: their answers are those of a full
//! evaluation, byte for byte, whatever was stored, deleted and cut meanwhile.

use serde_json::Value;
use std::time::Duration;
use tidepool_tests::admin::Admin;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::histogram::generate::SentSeries;
use tidepool_tests::histogram::stored::{rows, send};
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::promql::{Expressions, data};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Random, Series};
use tidepool_tests::soak;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Interval between two samples of a series.
const INTERVAL_MS: i64 = 15_000;

#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub start_ms: i64,
    pub end_ms: i64,
    pub step_ms: i64,
}

pub fn ask(server: &Server, expression: &str, range: Range, more: &str) -> (u16, String) {
    let seconds = |ms: i64| format!("{}.{:03}", ms / 1000, ms % 1000);
    let Range { start_ms, end_ms, step_ms } = range;
    let [start, end, step] = [start_ms, end_ms, step_ms].map(seconds);
    let query = percent_encode(expression);
    let parameters = format!("query={query}&start={start}&end={end}&step={step}{more}");
    let url = format!("{}/api/v1/query_range?{parameters}", server.url());
    let response = Client::default().get(&url).expect("an answer");
    (response.status, response.text())
}

fn counter(server: &Server, what: &str) -> f64 {
    server.metric(&format!("tidepool_query_cache_{what}")).expect("a metric")
}

/// Queries of a dashboard, in addition to random expressions.
pub const PANELS: [&str; 17] = [
    "cpu_seconds_total",
    "rate(cpu_seconds_total[5m])",
    "sum by (job) (rate(cpu_seconds_total[1m]))",
    "sum(rate(cpu_seconds_total[2m] offset 3m))",
    "temperature",
    "avg by (instance) (temperature)",
    "topk(2, temperature)",
    "max_over_time(temperature[10m])",
    "quantile_over_time(0.9, temperature[4m])",
    "absent(temperature{instance=\"none\"})",
    "max_over_time(sum by (job) (temperature)[10m:1m])",
    "histogram_quantile(0.9, sum by (le, job) (rate(request_seconds_bucket[5m])))",
    "temperature and on (instance) (up == 1)",
    "temperature - temperature offset 2m",
    "count({__name__=~\".+\"})",
    "latency_custom",
    // An info annotation says that this may be no counter.
    "rate(temperature[5m])",
];

/// Returns samples from `from_ms` on and before `until_ms`.
fn between(data: &[SentSeries], from_ms: i64, until_ms: i64) -> Vec<SentSeries> {
    let cut = |series: &SentSeries| {
        let values = series.values.iter();
        let values = values.filter(|(time_ms, _)| *time_ms >= from_ms && *time_ms < until_ms);
        SentSeries { values: values.cloned().collect(), ..series.clone() }
    };
    data.iter().map(cut).filter(|series| !series.values.is_empty()).collect()
}

#[test]
fn repeated_queries_answer_as_new_ones() {
    let seed = 20_311;
    let (rounds, scrapes) = (soak::count(12, 100), 480);
    let end_ms = now_ms() / 1000 * 1000 - 60_000;
    let begin_ms = end_ms - scrapes as i64 * INTERVAL_MS;
    let all = data(seed, scrapes, end_ms);
    let store = Store::start_with(|config| {
        let config = config.block_duration("20m").flag("--out-of-order-window=3h");
        config.flag("--enable-admin-api").flag("--enable-feature=promql-experimental-functions")
    });
    let store = store.expect("tidepool starts");
    let server = &store.server;
    let admin = Admin::new(&server.url());
    let mut random = Random::new(seed, 5);
    let mut expressions = Expressions::new(seed, (begin_ms / 1000, end_ms / 1000));
    let mut panels: Vec<String> = PANELS.map(str::to_owned).into();
    panels.extend((0..60).map(|_| expressions.next_expression()));

    let (mut sent_ms, mut late) = (begin_ms, all.out_of_order);
    let mut differences = Vec::new();
    for round in 0..=rounds {
        // Half of the data at first, then a part of the rest in each round.
        let until_ms = match round {
            0 => begin_ms + (end_ms - begin_ms) / 2,
            _ => sent_ms + (end_ms - begin_ms) / 2 / rounds as i64,
        };
        send(server, Version::V2, &rows(&between(&all.series, sent_ms, until_ms)));
        sent_ms = until_ms;
        match random.below(6) {
            0 => {
                // Deletes samples before some time, once.
                let behind_ms = sent_ms - random.below(3_600_000) as i64;
                send(server, Version::V2, &rows(&between(&late, behind_ms, sent_ms)));
                for series in &mut late {
                    series
                        .values
                        .retain(|(time_ms, _)| *time_ms < behind_ms || *time_ms >= sent_ms);
                }
            }
            1 => {
                let from_ms = begin_ms + random.below((sent_ms - begin_ms) as u64) as i64;
                let selector = random.pick(&["temperature", "{instance=~\"a:.\"}", "{job=\"db\"}"]);
                admin.delete(&[selector], from_ms, from_ms + 120_000);
            }
            2 => admin.clean_tombstones(),
            _ => {}
        }
        for (number, expression) in panels.iter().enumerate() {
            let step_ms = if number % 4 == 0 { 60_000 } else { 15_000 };
            let length_ms = random.pick(&[1_800_000, 3_600_000]);
            // Most dashboards align their ranges to the step; then only their ends differ.
            let end_ms = (sent_ms + random.below(45_000) as i64) / step_ms * step_ms;
            let range = Range { start_ms: end_ms - length_ms, end_ms, step_ms };
            let found = ask(server, expression, range, "");
            let expected = ask(server, expression, range, "&nocache=1");
            if found != expected {
                differences.push(format!("round {round}: {expression} {range:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "seed {seed}: {}", differences.join("\n"));
    let (hits, misses) = (counter(server, "hits_total"), counter(server, "misses_total"));
    println!("{hits} hits, {misses} misses");
    assert_eq!(hits + misses, ((rounds + 1) * panels.len()) as f64);
    // Most random expressions look ahead, or depend on the query's range.
    assert!(hits * 10.0 > misses, "{hits} hits, {misses} misses");
}

/// Makes series of a metric with a sample at each scrape of the two hours before a time.
pub fn fleet(name: &str, series: usize, end_ms: i64) -> Vec<Series> {
    let of = |number: usize| {
        let samples: Vec<(i64, f64)> = (0..480)
            .rev()
            .map(|back| end_ms - back * INTERVAL_MS)
            .map(|ms| (ms, (ms / INTERVAL_MS % 10_000) as f64 * (number + 1) as f64))
            .collect();
        let (instance, job) = (format!("i{number:03}"), format!("j{}", number % 5));
        Series::new(&[("__name__", name), ("instance", &instance), ("job", &job)], &samples)
    };
    (0..series).map(of).collect()
}

pub fn write(store: &Store, series: &[Series]) {
    for series in series.chunks(10) {
        let rows: Vec<_> = series.iter().map(Series::row).collect();
        let response = store.writer().send(Version::V2, &rows).expect("an answer");
        assert!(response.is_success(), "{} {}", response.status, response.text());
    }
}

/// An info annotation of early steps was shown for a range without them, as long as it was cached.
#[test]
fn infos_are_those_of_the_range_that_is_asked_for() {
    let store = Store::start_with(|config| config.flag("--out-of-order-window=3h"));
    let store = store.expect("tidepool starts");
    let end_ms = now_ms() / 60_000 * 60_000 - 1_200_000;
    // One that may be no counter, and ends half an hour before the other.
    write(&store, &fleet("used_bytes", 2, end_ms - 1_800_000));
    write(&store, &fleet("requests_total", 2, end_ms));
    let panel = "sum(rate(used_bytes[1m])) or sum(rate(requests_total[1m]))";
    let mut with_info = Vec::new();
    // The whole range, then parts of it, then ranges that have moved on.
    for (from, to) in [(60, 0), (10, 0), (20, 5), (60, 0), (15, 0), (45, 20), (62, 2), (12, 0)] {
        let [start_ms, end_ms] = [from, to].map(|minutes| end_ms - minutes * 60_000);
        let range = Range { start_ms, end_ms, step_ms: INTERVAL_MS };
        let found = ask(&store.server, panel, range, "");
        assert_eq!(found.0, 200, "{}", found.1);
        assert_eq!(found, ask(&store.server, panel, range, "&nocache=1"), "{range:?}");
        with_info.push(found.1.contains("used_bytes"));
    }
    assert!(with_info.contains(&true) && with_info.contains(&false), "{with_info:?}");
}

/// 24 panels over the last hour, refreshed every ten seconds beside scrapes: repeated reads of the
/// store are less than a fifth of the first ones.
#[test]
fn a_repeated_dashboard_reads_a_fifth_at_most() {
    let store = Store::start_with(|config| config.flag("--out-of-order-window=3h"));
    let store = store.expect("tidepool starts");
    let end_ms = now_ms() / 60_000 * 60_000 - 1_200_000;
    write(&store, &fleet("requests_total", 60, end_ms));
    write(&store, &fleet("used_bytes", 60, end_ms));
    let panels: Vec<String> = (0..4)
        .flat_map(|job| {
            [
                format!("used_bytes{{job=\"j{job}\"}}"),
                format!("rate(requests_total{{job=\"j{job}\"}}[5m])"),
                format!("sum by (instance) (rate(requests_total{{job=~\"j[0-{job}]\"}}[1m]))"),
                format!("used_bytes{{job=\"j{job}\"}} / on (instance) requests_total"),
                format!("topk(3, used_bytes{{job=~\"j[{job}-9]\"}})"),
                format!("quantile(0.9, rate(requests_total{{job!=\"j{job}\"}}[2m]))"),
            ]
        })
        .collect();
    assert_eq!(panels.len(), 24);
    let read = |now_ms: i64| -> u64 {
        let end_ms = now_ms / INTERVAL_MS * INTERVAL_MS;
        let range = Range { start_ms: end_ms - 3_600_000, end_ms, step_ms: INTERVAL_MS };
        let of_panel = |expression: &String| {
            let (status, body) = ask(&store.server, expression, range, "&stats=true");
            assert_eq!(status, 200, "{expression}: {body}");
            let answer: Value = serde_json::from_str(&body).expect("JSON");
            let points = answer["data"]["result"][0]["values"].as_array().map_or(0, Vec::len);
            assert!(points > 230, "{expression} has {points} points");
            answer["data"]["stats"]["samples"]["samplesRead"].as_u64().expect("a count")
        };
        panels.iter().map(of_panel).sum()
    };
    let first = read(end_ms);
    let mut repeated = Vec::new();
    for refresh in 1..=12 {
        // Scrapes come at times of their own, not when a dashboard sends requests.
        let now_ms = end_ms + refresh * 10_000;
        for name in ["requests_total", "used_bytes"] {
            let newer = fleet(name, 60, now_ms / INTERVAL_MS * INTERVAL_MS);
            let newer: Vec<Series> =
                newer.iter().map(|series| series.between(now_ms - 15_000, now_ms)).collect();
            write(&store, &newer);
        }
        repeated.push(read(now_ms));
    }
    println!("{first} samples at first, then {repeated:?}");
    assert!(first > 100_000, "{first}");
    assert!(repeated.iter().all(|samples| samples * 5 <= first), "{first} {repeated:?}");
    // Only samples stored since are read again.
    assert!(repeated.iter().any(|samples| *samples > 0), "{repeated:?}");
}

#[test]
fn the_flag_bounds_the_memory_and_turns_it_off() {
    let end_ms = now_ms() / 60_000 * 60_000;
    let range = Range { start_ms: end_ms - 3_600_000, end_ms, step_ms: INTERVAL_MS };
    let start = |size: &str| {
        let flag = format!("--query-cache-size={size}");
        let store = Store::start_with(|config| config.flag(&flag)).expect("tidepool starts");
        write(&store, &fleet("used_bytes", 20, end_ms));
        store
    };
    let store = start("200KiB");
    assert_eq!(counter(&store.server, "limit_bytes"), 204_800.0);
    for number in 0..40 {
        let expression = format!("used_bytes{{instance=~\"i00[0-9]\"}} + {number}");
        assert_eq!(ask(&store.server, &expression, range, "").0, 200);
        assert!(counter(&store.server, "bytes") <= 204_800.0);
    }
    assert!(counter(&store.server, "entries") >= 3.0);
    assert!(counter(&store.server, "evictions_total") >= 20.0);
    // The newest is still cached, the oldest is not.
    for (number, hits) in [(39, 1.0), (0, 1.0)] {
        let expression = format!("used_bytes{{instance=~\"i00[0-9]\"}} + {number}");
        assert_eq!(ask(&store.server, &expression, range, "").0, 200);
        assert_eq!(counter(&store.server, "hits_total"), hits, "{number}");
    }

    let store = start("0");
    for _ in 0..3 {
        assert_eq!(ask(&store.server, "used_bytes", range, "").0, 200);
    }
    for what in ["hits_total", "misses_total", "entries", "bytes", "limit_bytes"] {
        assert_eq!(counter(&store.server, what), 0.0, "{what}");
    }
}

/// Cached answers keep their info annotations, as long as newer steps have the same ones.
#[test]
fn answers_with_infos_are_kept_unless_the_infos_change() {
    let end_ms = now_ms() / 60_000 * 60_000;
    let store = Store::start().expect("tidepool starts");
    let server = &store.server;
    write(&store, &fleet("used_bytes", 5, end_ms));
    let half_ms = end_ms - 3_600_000;
    let late = fleet("late_bytes", 5, end_ms);
    let late: Vec<Series> = late.iter().map(|series| series.between(half_ms, end_ms + 1)).collect();
    write(&store, &late);
    let range = |until_ms: i64| Range {
        start_ms: until_ms - 1_800_000,
        end_ms: until_ms,
        step_ms: INTERVAL_MS,
    };
    let check = |expression: &str, until_ms: i64, infos: usize| {
        let found = ask(server, expression, range(until_ms), "");
        assert_eq!(found, ask(server, expression, range(until_ms), "&nocache=1"));
        let answer: Value = serde_json::from_str(&found.1).expect("JSON");
        assert_eq!(answer["infos"].as_array().map_or(0, Vec::len), infos, "{}", found.1);
    };
    let hits = || counter(server, "hits_total");

    // The same annotations at each step.
    for refresh in 0..4 {
        check("sum(rate(used_bytes[5m]))", end_ms - 60_000 + refresh * INTERVAL_MS, 1);
        check("sum(rate(used_bytes[5m]))", end_ms - 60_000 + refresh * INTERVAL_MS, 1);
    }
    assert_eq!(hits(), 7.0);

    // One more annotation from some time on; then each query is evaluated in full.
    let both = "sum(rate(used_bytes[5m])) or sum(rate(late_bytes[5m]))";
    check(both, half_ms - 30_000, 1);
    check(both, half_ms - 15_000, 1);
    assert_eq!(hits(), 8.0);
    check(both, half_ms + 300_000, 2);
    assert_eq!(hits(), 9.0);
    for refresh in 1..4 {
        check(both, half_ms + 300_000 + refresh * INTERVAL_MS, 2);
    }
    assert_eq!(hits(), 9.0);
}

/// A block that is copied into the directory appears in the answers, also in those of cached steps.
#[test]
fn blocks_of_others_are_noticed() {
    let end_ms = now_ms() / 60_000 * 60_000;
    let other = Store::start_with(|config| config.block_duration("10m")).expect("tidepool starts");
    write(&other, &fleet("copied", 3, end_ms));
    let blocks = || {
        let blocks = data_dir::blocks(other.config.data_dir()).expect("blocks");
        (blocks.len() >= 4).then_some(blocks)
    };
    let block = wait::until("blocks", TIMEOUT, blocks).expect("they are cut").swap_remove(0);

    let store = Store::start().expect("tidepool starts");
    let range = Range { start_ms: end_ms - 7_200_000, end_ms, step_ms: 60_000 };
    let ask = || ask(&store.server, "copied", range, "").1;
    let nothing = ask();
    assert!(!nothing.contains("copied"), "{nothing}");
    assert_eq!(ask(), nothing);
    assert_eq!(counter(&store.server, "hits_total"), 1.0);
    let (name, data) = (block.ulid.to_string(), store.config.data_dir());
    let copy = data.join("copy");
    std::fs::create_dir_all(copy.join("chunks")).expect("a directory");
    for file in ["index", "meta.json", "chunks/000001"] {
        std::fs::copy(block.path.join(file), copy.join(file)).expect("copied");
    }
    std::fs::rename(&copy, data.join(&name)).expect("moved");
    let has_it = || ask().contains("copied").then_some(());
    wait::until("the copied block", TIMEOUT, has_it).expect("it is read");
    std::fs::rename(data.join(&name), &copy).expect("moved away");
    let is_gone = || (ask() == nothing).then_some(());
    wait::until("the answer without it", TIMEOUT, is_gone).expect("it is gone");
}
