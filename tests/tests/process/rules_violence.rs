//! Rules under violence: kills at any moment, and rules that ask for too much.

use super::configuration::start;
use super::rules::{import, is_mark, of};
use super::scrape::api;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};
use tidepool_tests::clock::now_ms;
use tidepool_tests::process::Server;
use tidepool_tests::series::{Random, Sample};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(120);

const KILLS: usize = 5;

/// Longest time that a server runs before it is killed.
const LIFE_MS_MAX: u64 = 1200;

/// Evaluated often, so that kills meet evaluations.
const CONFIG: &str = "global: {evaluation_interval: 50ms}\nrule_files: ['rules.yml']\n";

/// Samples of `ALERTS` or `ALERTS_FOR_STATE` of an alert, in a state or in any.
fn samples(store: &Store, name: &str, alert: &str, state: &str) -> Vec<Sample> {
    let series = of(store, name).into_iter().filter(|series| {
        (series.labels.value("alertname"), series.labels.value("alertstate")) == (alert, state)
    });
    series.flat_map(|series| series.samples).collect()
}

#[test]
fn kills_at_any_moment_fire_resolve_and_forget_nothing() {
    const RULES: &str = "groups:\n- name: g\n  rules:\n  \
                         - {alert: Now, expr: vector(1)}\n  \
                         - {alert: Later, expr: vector(1), for: 1500ms}\n";
    // Any moment: each run has other ones.
    let seed = now_ms().unsigned_abs();
    println!("seed {seed}");
    let mut random = Random::new(seed, 0);
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("rules.yml"), RULES).expect("a file");
    let (mut store, _) = start(directory.path(), CONFIG, &[]);
    let fires = |store: &Store, alert: &str| {
        wait::until("an alert that fires", TIMEOUT, || {
            samples(store, "ALERTS", alert, "firing").first().copied()
        })
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()))
    };
    let first = fires(&store, "Now");
    let mut fired = None;
    for _ in 0..KILLS {
        thread::sleep(Duration::from_millis(random.next_u64() % LIFE_MS_MAX));
        // Not asked for again once it was seen to fire.
        fired = fired.or_else(|| samples(&store, "ALERTS", "Later", "firing").first().copied());
        store = store.restart(Server::kill).expect("tidepool starts again");
    }
    let fired = fired.unwrap_or_else(|| fires(&store, "Later"));
    for (alert, first) in [("Now", first), ("Later", fired)] {
        wait::until("later samples", TIMEOUT, || {
            let firing = samples(&store, "ALERTS", alert, "firing");
            let last = firing.last()?.timestamp_ms;
            (last > first.timestamp_ms + 2000).then_some(())
        })
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
        let firing = samples(&store, "ALERTS", alert, "firing");
        assert_eq!(firing[0], first, "{alert} fired once");
        assert!(!firing.iter().any(is_mark), "{alert} did not end: {firing:?}");
        let pending = samples(&store, "ALERTS", alert, "pending");
        let after = pending.iter().filter(|sample| sample.timestamp_ms > first.timestamp_ms);
        assert_eq!(after.count(), 0, "{alert} was not pending again: {pending:?}");
        let active = samples(&store, "ALERTS_FOR_STATE", alert, "");
        let since: Vec<f64> = active.iter().map(|sample| sample.value).collect();
        assert!(since.windows(2).all(|pair| pair[0] == pair[1]), "{alert}: {since:?}");
    }
}

/// Longest time that a sample may take to be stored while rules ask for too much: far below what
/// they would take.
const APPEND_MAX: Duration = Duration::from_secs(3);

/// Stores samples until `is_over`; returns the longest time that one took.
fn longest_append(store: &Store, mut is_over: impl FnMut() -> bool) -> Duration {
    let mut longest = Duration::ZERO;
    let mut sent = 0;
    while !is_over() {
        sent += 1;
        let begun = Instant::now();
        import(store, &format!("alive {sent}\n"));
        longest = longest.max(begun.elapsed());
        thread::sleep(Duration::from_millis(50));
    }
    longest
}

fn rules(store: &Store) -> Vec<Value> {
    let groups = api(&store.server, "rules")["groups"].clone();
    let groups = groups.as_array().expect("groups").iter();
    groups.flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
}

#[test]
fn rules_that_ask_for_too_much_fail_alone() {
    const RULES: &str = r#"
groups:
- name: alerts
  rules:
  - {alert: Many, expr: many}
- name: loops
  rules:
  - alert: Loop
    expr: many{of="loop"}
    annotations:
      a: '{{ range query "many{of=\"loop\"}" }}{{ range query "many{of=\"loop\"}" }}{{ end }}{{ end }}'
- name: memory
  rules:
  - {record: product, expr: 'count by (i, j) (label_replace(many, "j", "$1", "i", "(.*)") * on () group_right () sum(many))'}
- name: queries
  rules:
  - alert: Queries
    expr: many{of="loop"}
    annotations: {a: '{{ query "count(many)" | len }}{{ query "sum(many)" | len }}'}
- name: well
  rules:
  - {record: well, expr: vector(1)}
"#;
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("rules.yml"), RULES).expect("a file");
    let config = "global: {evaluation_interval: 1s}\nrule_files: ['rules.yml']\n";
    let (store, _) = start(directory.path(), config, &["--query-timeout=3s"]);
    let mut text = String::new();
    for i in 0..50_000 {
        let of = if i < 1000 { "loop" } else { "no" };
        writeln!(text, "many{{i=\"{i}\",of=\"{of}\"}} 1").expect("a string");
    }
    import(&store, &text);
    let error = |name: &str| -> Option<String> {
        let rule = rules(&store).into_iter().find(|rule| rule["name"] == name)?;
        Some(rule["lastError"].as_str()?.to_owned())
    };
    // Steps and time are bounded; which bound comes first depends on the machine.
    let expected: [(&str, &[&str]); 2] =
        [("Many", &["--alerts-max"]), ("Loop", &["--query-timeout", "take too long"])];
    let deadline = Instant::now() + TIMEOUT;
    let longest = longest_append(&store, || {
        assert!(Instant::now() < deadline, "{:?}", rules(&store));
        expected.iter().all(|(name, parts)| {
            error(name).is_some_and(|text| parts.iter().any(|part| text.contains(part)))
        })
    });
    assert!(longest < APPEND_MAX, "{longest:?}");
    let well = || rules(&store).into_iter().find(|rule| rule["name"] == "well");
    assert_eq!(well().expect("the rule")["health"], "ok");
    // The evaluation of a rule does not hold up the end of the server.
    let begun = Instant::now();
    store.server.terminate().expect("it ends");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn a_hundred_thousand_rules_are_refused_by_their_number() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut text = "groups:\n- name: g\n  rules:\n".to_owned();
    for number in 0..100_000 {
        writeln!(text, "  - {{record: r{number}, expr: up}}").expect("a string");
    }
    let path = directory.path().join("rules.yml");
    fs::write(&path, text).expect("a file");
    let config = directory.path().join("tidepool.yml");
    fs::write(&config, "rule_files: ['rules.yml']\n").expect("a file");
    let flag = format!("--config={}", config.display());
    let begun = Instant::now();
    let started = Store::start_with(|config| config.flag(&flag));
    let Err(failed) = started else { panic!("it starts") };
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let said = failed.to_string();
    assert!(said.contains("--rules-max") && said.contains("rules.yml"), "{said}");
}
