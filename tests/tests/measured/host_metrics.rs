//! What the built-in jobs cost: CPU time of a round of the machine's metrics in the whole program,
//! from reading the machine's files to the log, and memory.

use std::time::Duration;
use tidepool_tests::process::Usage;
use tidepool_tests::sender::read_all;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

/// Rounds that are measured at a time, and how often: the least counts, since what else runs on a
/// machine makes caches cold.
const ROUNDS: usize = 10;
const TIMES: usize = 4;
const INTERVAL: &str = "--host-metrics-interval=1s";
/// Rounds before that, in which series are new.
const WARM_UP: usize = 5;
/// A round reads the machine, for which the collectors have a bar of 1 ms, and stores some 340
/// samples: 2 ms on a quiet machine. A busy one, whose caches are cold each second, takes twice
/// that.
const ROUND_CPU_MAX: Duration = Duration::from_millis(5);
const APPENDED: &str = "prometheus_tsdb_head_samples_appended_total";
const TIMEOUT: Duration = Duration::from_secs(120);

/// All that a node takes that records its machine and itself, and what of it no page cache could
/// give back: most are pages of the program's file.
const RESIDENT_BYTES_MAX: u64 = 30_000_000;
const ANONYMOUS_BYTES_MAX: u64 = 8_000_000;

fn start(configure: impl FnOnce(Config) -> Config) -> Store {
    Store::start_with(configure).expect("tidepool starts")
}

/// How often the machine was recorded.
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

/// Waits for so many rounds by the number of samples stored, and tells how many there were. It is
/// asked for seldom: an answer costs the program more than a round.
fn wait_for_rounds(store: &Store, before: f64, per_round: f64, rounds: usize) -> f64 {
    let enough = before + per_round * rounds as f64;
    let found = wait::until_every(Duration::from_secs(5), "rounds", TIMEOUT, || {
        store.metric(APPENDED).filter(|appended| *appended >= enough)
    });
    (found.unwrap_or_else(|error| panic!("{error}\n{}", store.server.log())) - before) / per_round
}

#[test]
fn a_round_of_host_metrics_costs_little() {
    let recording =
        start(|config| config.with_builtin_metrics().flag("--no-own-metrics").flag(INTERVAL));
    let idle = start(|config| config);
    let warm = || (rounds(&recording) >= WARM_UP).then_some(());
    wait::until("the first rounds", TIMEOUT, warm).unwrap_or_else(|error| panic!("{error}"));
    let per_round = {
        let read = recording.reader().streamed(&[read_all()]).expect("an answer");
        read.into_iter().flatten().count() as f64
    };
    let mut least = Duration::MAX;
    for _ in 0..TIMES {
        let appended = recording.metric(APPENDED);
        let (before, idle_before) = (usage(&recording), usage(&idle));
        let rounds = wait_for_rounds(&recording, appended.expect("the metric"), per_round, ROUNDS);
        let (after, idle_after) = (usage(&recording), usage(&idle));
        // Timers and threads that run in any case.
        let base = idle_after.cpu - idle_before.cpu;
        let cost = (after.cpu - before.cpu).saturating_sub(base).div_f64(rounds);
        println!(
            "{per_round} samples a round, {rounds:.0} rounds: {cost:?} a round, idle {base:?}"
        );
        assert!(rounds >= ROUNDS as f64);
        least = least.min(cost);
    }
    assert!(least <= ROUND_CPU_MAX, "{least:?}");
}

#[test]
fn a_node_that_records_its_machine_takes_little_memory() {
    // More often than by default, so that some rounds count. Nothing else is asked, which would
    // take memory of its own.
    let store = start(|config| config.with_builtin_metrics().flag(INTERVAL));
    let warm = || {
        let series = store.metric("prometheus_tsdb_head_series").filter(|series| *series > 0.0)?;
        (store.metric(APPENDED)? >= series * WARM_UP as f64).then_some(())
    };
    wait::until("rounds", TIMEOUT, warm).unwrap_or_else(|error| panic!("{error}"));
    let settled = || {
        let Usage { memory_bytes, anonymous_memory_bytes, .. } = usage(&store);
        println!("{} KiB, {} KiB of its own", memory_bytes >> 10, anonymous_memory_bytes >> 10);
        let is_little =
            memory_bytes <= RESIDENT_BYTES_MAX && anonymous_memory_bytes <= ANONYMOUS_BYTES_MAX;
        is_little.then_some(())
    };
    wait::until("little memory", Duration::from_secs(30), settled).expect("it is within bounds");
}
