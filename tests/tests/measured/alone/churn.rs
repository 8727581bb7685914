//! A day in which most targets are replaced every quarter of an hour: the days before must cost
//! neither memory nor time of a narrow query.

use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::remote_read::{matcher, query};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Sample, Series};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TARGETS: usize = 200;
const SERIES_PER_TARGET: usize = 20;
/// Number of new targets among ten in each quarter.
const REPLACED_OF_TEN: usize = 6;
const QUARTERS: usize = 96;
const QUARTER_MS: i64 = 15 * 60_000;
const SCRAPE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;

/// Returns the series of a target: `replaced` targets change their pod with each quarter.
fn series(target: usize, quarter: usize, start_ms: i64) -> Vec<Series> {
    let generation = if target % 10 < REPLACED_OF_TEN { quarter } else { 0 };
    let pod = format!("pod-{target}-{generation}");
    let samples: Vec<Sample> = (0..QUARTER_MS / SCRAPE_MS)
        .map(|scrape| Sample { timestamp_ms: start_ms + scrape * SCRAPE_MS, value: scrape as f64 })
        .collect();
    let one = |number: usize| {
        let name = format!("metric_{number}");
        let mut series = Series::new(
            &[("__name__", &name), ("instance", &pod), ("job", "churn"), ("namespace", "default")],
            &[],
        );
        series.samples = samples.clone();
        series
    };
    (0..SERIES_PER_TARGET).map(one).collect()
}

#[test]
fn a_day_of_churn_leaves_no_trace_in_memory() {
    let store = Store::start().expect("tidepool starts");
    let day_start_ms = now_ms() - QUARTERS as i64 * QUARTER_MS;
    let metric = |name: &str| store.metric(name).expect("the metric");
    let mut memory_bytes = Vec::new();
    let mut series_most = 0.0f64;
    for quarter in 0..QUARTERS {
        let start_ms = day_start_ms + quarter as i64 * QUARTER_MS;
        for targets in (0..TARGETS).collect::<Vec<_>>().chunks(50) {
            let all: Vec<Series> =
                targets.iter().flat_map(|target| series(*target, quarter, start_ms)).collect();
            let rows: Vec<_> = all.iter().map(Series::row).collect();
            let response = store.writer().send(Version::V2, &rows).expect("an answer");
            assert_eq!(response.status, 204, "{}", response.text());
        }
        let newest_ms = start_ms + QUARTER_MS;
        // Data comes a thousand times as fast as on a node; cuts must keep up.
        wait::until("the cut", Duration::from_secs(60), || {
            let oldest_s = store.metric("prometheus_tsdb_head_min_time_seconds")?;
            (newest_ms as f64 - oldest_s * 1000.0 <= 3.3 * HOUR_MS as f64).then_some(())
        })
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
        series_most = series_most.max(metric("prometheus_tsdb_head_series"));
        memory_bytes.push(metric("tidepool_head_memory_bytes"));
    }
    let replaced = TARGETS * REPLACED_OF_TEN / 10 * SERIES_PER_TARGET;
    let living = TARGETS * SERIES_PER_TARGET - replaced;
    // At most the generations of three hours and a quarter are in the head.
    assert!(series_most <= (living + 14 * replaced) as f64, "{series_most} series at a time");
    let created = metric("prometheus_tsdb_head_series_created_total");
    assert!(created >= (living + QUARTERS * replaced) as f64, "{created} series came to be");
    let (quarter_day, day) = (memory_bytes[QUARTERS / 4], memory_bytes[QUARTERS - 1]);
    println!("head: {quarter_day} bytes after six hours, {day} after the day");
    assert!(day <= quarter_day * 1.1, "{memory_bytes:?}");

    // Selects the pods of the last quarter by a query over the whole day.
    let now = day_start_ms + QUARTERS as i64 * QUARTER_MS;
    let matchers = vec![
        matcher(Type::Eq, "__name__", "metric_7"),
        matcher(Type::Re, "instance", &format!("pod-3-{}|pod-9-0", QUARTERS - 1)),
    ];
    let before = store.server.usage().expect("tidepool runs");
    let found = store.reader().streamed(&[query(day_start_ms, now, matchers)]).expect("an answer");
    let cost = store.server.usage().expect("tidepool runs").cpu - before.cpu;
    println!("narrow query over the day: {cost:?}");
    let per_quarter = (QUARTER_MS / SCRAPE_MS) as usize;
    let mut samples: Vec<usize> = found[0].iter().map(|series| series.samples.len()).collect();
    samples.sort_unstable();
    assert_eq!(samples, [per_quarter, QUARTERS * per_quarter]);
}
