//! Cost of the built-in jobs: memory, and the CPU time of a round of the machine's metrics in the
//! whole program, from reading the machine's files to the log, compared with a scrape of
//! node_exporter.

use serde_json::Value;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use tidepool_tests::http::Client;
use tidepool_tests::node_exporter;
use tidepool_tests::process::Usage;
use tidepool_tests::sender::read_all;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

/// Number of rounds in a measurement, and number of measurements. The least counts, since other
/// work on the machine makes caches cold.
const ROUNDS: usize = 10;
const TIMES: usize = 4;
const NO_RULES: &str = "--no-default-rules";
const INTERVAL: &str = "--host-metrics-interval=1s";
/// Number of rounds before that, in which series are new.
const WARM_UP: usize = 5;
/// Largest ratio of CPU times. A round reads the machine and stores some 340 samples; its time
/// depends on the machine and on how cold its caches are after a second, as does node_exporter's
/// time for one page, which another program must then parse and store.
const ROUND_TO_EXPORTER_MAX: f64 = 0.6;
/// Time of a group's last evaluation before its first one.
const NEVER: &str = "0001-01-01T00:00:00Z";
const APPENDED: &str = "prometheus_tsdb_head_samples_appended_total";
const TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum resident memory of a node that records its machine and itself, and its maximum anonymous
/// part: most pages are of the program's file.
const RESIDENT_BYTES_MAX: u64 = 30_000_000;
const ANONYMOUS_BYTES_MAX: u64 = 8_000_000;

fn start(configure: impl FnOnce(Config) -> Config) -> Store {
    Store::start_with(configure).expect("tidepool starts")
}

/// Returns the number of rounds that were recorded.
fn rounds(store: &Store) -> usize {
    let read = store.reader().streamed(&[read_all()]).expect("an answer");
    let all = read.into_iter().flatten();
    let mut up =
        all.filter(|one| one.labels.value("__name__") == "up" && one.labels.value("job") == "node");
    up.next().map_or(0, |series| series.samples.len())
}

fn usage(store: &Store) -> Usage {
    store.server.usage().expect("it runs")
}

/// Waits for some rounds by the number of stored samples, and returns their number. Looks seldom,
/// because an answer costs the program more than a round.
fn wait_for_rounds(store: &Store, before: f64, per_round: f64, rounds: usize) -> f64 {
    let enough = before + per_round * rounds as f64;
    let found = wait::until_every(Duration::from_secs(5), "rounds", TIMEOUT, || {
        store.metric(APPENDED).filter(|appended| *appended >= enough)
    });
    (found.unwrap_or_else(|error| panic!("{error}\n{}", store.server.log())) - before) / per_round
}

/// Gets a page once a second until `is_over` ends; returns the number of pages.
fn scrape(url: &str, is_over: &mpsc::Receiver<()>) -> usize {
    let client = Client::default();
    let mut pages = 0;
    loop {
        let page = client.get(url).expect("a page");
        assert!(page.is_success(), "{}", page.text());
        pages += 1;
        match is_over.recv_timeout(Duration::from_secs(1)) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return pages,
        }
    }
}

#[test]
fn a_round_of_host_metrics_costs_less_than_a_scrape_of_node_exporter() {
    let recording = start(|config| {
        config.with_builtin_metrics().flag("--no-own-metrics").flag(INTERVAL).flag(NO_RULES)
    });
    let idle = start(|config| config);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let exporter = node_exporter::launch(directory.path()).expect("node_exporter is built");
    let url = format!("http://{}/metrics", exporter.address);
    let exporter = exporter.start().expect("node_exporter starts");
    let warm = || (rounds(&recording) >= WARM_UP).then_some(());
    wait::until("the first rounds", TIMEOUT, warm).unwrap_or_else(|error| panic!("{error}"));
    let per_round = {
        let read = recording.reader().streamed(&[read_all()]).expect("an answer");
        read.into_iter().flatten().count() as f64
    };
    let cpu = |store: &Store| usage(store).cpu;
    let exporter_cpu = || exporter.usage().expect("it runs").cpu;
    let (mut least, mut least_of_exporter) = (Duration::MAX, Duration::MAX);
    for _ in 0..TIMES {
        let (over, is_over) = mpsc::channel();
        let url = url.clone();
        let appended = recording.metric(APPENDED).expect("the metric");
        let (before, idle_before, exporter_before) = (cpu(&recording), cpu(&idle), exporter_cpu());
        let scraping = thread::spawn(move || scrape(&url, &is_over));
        let rounds = wait_for_rounds(&recording, appended, per_round, ROUNDS);
        let (after, idle_after) = (cpu(&recording), cpu(&idle));
        drop(over);
        let pages = scraping.join().expect("pages");
        // Cost of timers and threads that run in any case.
        let base = idle_after - idle_before;
        let cost = (after - before).saturating_sub(base).div_f64(rounds);
        let of_exporter = (exporter_cpu() - exporter_before).div_f64(pages as f64);
        println!(
            "{per_round} samples a round, {rounds:.0} rounds: {cost:?} a round, idle {base:?}; \
             node_exporter: {of_exporter:?} a page, {pages} pages"
        );
        assert!(rounds >= ROUNDS as f64 && pages >= ROUNDS / 2);
        least = least.min(cost);
        least_of_exporter = least_of_exporter.min(of_exporter);
    }
    let ratio = least.div_duration_f64(least_of_exporter);
    assert!(ratio <= ROUND_TO_EXPORTER_MAX, "{least:?} and {least_of_exporter:?}: {ratio}");
}

#[test]
fn a_node_that_records_its_machine_takes_little_memory() {
    check_memory(|config| config.flag(NO_RULES), RESIDENT_BYTES_MAX);
}

/// Checks the memory of a node once it has stored some rounds and evaluated all of its rules.
pub fn check_memory(configure: impl FnOnce(Config) -> Config, resident_bytes_max: u64) {
    // More often than by default, so that some rounds count. No other request is sent, because it
    // would take memory of its own.
    let store = start(|config| configure(config.with_builtin_metrics().flag(INTERVAL)));
    let warm = || {
        let series = store.metric("prometheus_tsdb_head_series").filter(|series| *series > 0.0)?;
        (store.metric(APPENDED)? >= series * WARM_UP as f64).then_some(())
    };
    wait::until("rounds", TIMEOUT, warm).unwrap_or_else(|error| panic!("{error}"));
    // Each group has its first slot within a minute.
    let evaluated = || {
        let answer = Client::default().get(&(store.server.url() + "/api/v1/rules")).ok()?;
        let answer: Value = serde_json::from_slice(&answer.body).ok()?;
        let mut groups = answer["data"]["groups"].as_array()?.iter();
        groups.all(|group| group["lastEvaluation"] != NEVER).then_some(())
    };
    wait::until("evaluations", TIMEOUT, evaluated).unwrap_or_else(|error| panic!("{error}"));
    let settled = || {
        let Usage { memory_bytes, anonymous_memory_bytes, .. } = usage(&store);
        println!("{} KiB, {} KiB of its own", memory_bytes >> 10, anonymous_memory_bytes >> 10);
        let is_little =
            memory_bytes <= resident_bytes_max && anonymous_memory_bytes <= ANONYMOUS_BYTES_MAX;
        is_little.then_some(())
    };
    wait::until("little memory", Duration::from_secs(30), settled).expect("it is within bounds");
}
