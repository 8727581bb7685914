//! Large range queries on several threads: their answers equal those of one thread, byte for byte.

use super::repeated::{PANELS, Range, ask, fleet, write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::histogram::stored::{rows, send};
use tidepool_tests::process::Server;
use tidepool_tests::promql::{Expressions, data};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Random;
use tidepool_tests::soak;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the number of split queries.
fn split(server: &Server) -> f64 {
    server.metric("tidepool_queries_split_total").expect("a metric")
}

fn wait_for_blocks(directory: &Path, count: usize) {
    let blocks = || {
        let blocks = data_dir::blocks(directory).expect("blocks");
        (blocks.len() >= count).then_some(())
    };
    wait::until("blocks", TIMEOUT, blocks).expect("they are cut");
}

/// Expressions of dashboards and random ones over random ranges, most of which are in blocks.
#[test]
fn several_threads_answer_as_one() {
    let seed = 4_711;
    let end_ms = now_ms() / 60_000 * 60_000 - 60_000;
    let all = data(seed, 480, end_ms);
    let begin_ms = end_ms - 480 * 15_000;
    let store = |threads: &str| {
        let store = Store::start_with(|config| {
            let config = config.block_duration("20m").flag("--out-of-order-window=3h");
            let config = config.flag("--query-cache-size=0").flag("--query-thread-samples=1");
            config.flag("--enable-feature=promql-experimental-functions").flag(threads)
        });
        let store = store.expect("tidepool starts");
        send(&store.server, Version::V2, &rows(&all.series));
        send(&store.server, Version::V2, &rows(&all.out_of_order));
        wait_for_blocks(store.config.data_dir(), 4);
        store
    };
    let (one, several) = (store("--query-max-threads=1"), store("--query-max-threads=3"));
    let mut expressions = Expressions::new(seed, (begin_ms / 1000, end_ms / 1000));
    let mut panels: Vec<String> = PANELS.map(str::to_owned).into();
    panels.extend((0..soak::count(150, 3000)).map(|_| expressions.next_expression()));
    let mut random = Random::new(seed, 7);
    let mut differences = Vec::new();
    for expression in &panels {
        let step_ms = random.pick(&[15_000, 60_000, 77_777]);
        let length_ms = random.pick(&[3_600_000, 7_200_000]);
        let start_ms = begin_ms + random.below(3_600_000) as i64;
        let range = Range { start_ms, end_ms: start_ms + length_ms, step_ms };
        let found = ask(&several.server, expression, range, "");
        if found != ask(&one.server, expression, range, "") {
            differences.push(format!("{expression} {range:?}"));
        }
    }
    assert!(differences.is_empty(), "seed {seed}: {}", differences.join("\n"));
    println!("{} of {} queries were split", split(&several.server), panels.len());
    // Most random expressions look ahead, or depend on the query's range.
    assert!(split(&several.server) >= 15.0, "{}", split(&several.server));
    assert_eq!(split(&one.server), 0.0);
}

/// A query is split if it reads enough samples for two threads; its results may be cached, too.
#[test]
fn large_queries_are_split_beside_writes() {
    let end_ms = now_ms() / 60_000 * 60_000 - 600_000;
    let store = Store::start_with(|config| {
        let config = config.block_duration("20m").flag("--out-of-order-window=3h");
        config.flag("--query-max-threads=2").flag("--query-thread-samples=20000")
    });
    let store = store.expect("tidepool starts");
    write(&store, &fleet("requests_total", 300, end_ms));
    wait_for_blocks(store.config.data_dir(), 4);
    let range = Range { start_ms: end_ms - 6_600_000, end_ms: end_ms - 60_000, step_ms: 30_000 };
    let large = "sum by (job) (rate(requests_total[2m]))";
    let small = "sum by (job) (rate(requests_total{instance=\"i000\"}[2m]))";
    assert_eq!(ask(&store.server, small, range, "").0, 200);
    assert_eq!(split(&store.server), 0.0, "a small query");
    let (status, expected) = ask(&store.server, large, range, "&nocache=1");
    assert_eq!(status, 200, "{expected}");

    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // In order, after the requested range.
        scope.spawn(|| {
            let mut time_ms = end_ms;
            while !is_done.load(Relaxed) {
                time_ms += 1;
                let newer = fleet("requests_total", 10, time_ms);
                let newer: Vec<_> = newer.iter().map(|it| it.between(time_ms, time_ms)).collect();
                write(&store, &newer);
            }
        });
        for _ in 0..20 {
            assert_eq!(ask(&store.server, large, range, "&nocache=1").1, expected);
        }
        is_done.store(true, Relaxed);
    });
    // A merge that ends while the selections are opened leaves a query to one thread.
    assert!(split(&store.server) >= 11.0, "{}", split(&store.server));
    let is_known = || {
        assert_eq!(ask(&store.server, large, range, "").1, expected);
        let hits = store.metric("tidepool_query_cache_hits_total")?;
        (hits > 0.0).then_some(())
    };
    wait::until("an answer that was kept", TIMEOUT, is_known).expect("it is used");
}
