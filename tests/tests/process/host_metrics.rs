//! The built-in jobs, which need no configuration: the machine's metrics and the program's own.

use super::configuration::reload;
use super::scrape::api;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::target::Target;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);
const OFTEN: &str = "--host-metrics-interval=1s";

fn store(flags: &[&str]) -> Store {
    let config = |config: tidepool_tests::tidepool::Config| {
        let config = config.with_builtin_metrics().keeps_address();
        flags.iter().fold(config, |config, flag| config.flag(flag))
    };
    Store::start_with(config).expect("tidepool starts")
}

/// Returns the values of an instant query by the labels of the result.
fn ask(store: &Store, query: &str) -> BTreeMap<String, f64> {
    let answer = api(&store.server, &format!("query?query={}", percent_encode(query)));
    let vector = answer["result"].as_array().expect("a vector").clone();
    let entries = vector.iter().map(|one| {
        let value = one["value"][1].as_str().expect("a text").parse().expect("a number");
        (one["metric"].to_string(), value)
    });
    entries.collect()
}

/// Waits until a query has a result.
#[track_caller]
fn wait_for(store: &Store, query: &str) -> BTreeMap<String, f64> {
    let result = wait::until(query, TIMEOUT, || {
        let result = ask(store, query);
        (!result.is_empty()).then_some(result)
    });
    result.unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()))
}

#[track_caller]
fn one(result: &BTreeMap<String, f64>) -> f64 {
    assert_eq!(result.len(), 1, "{result:?}");
    result.values().copied().next().unwrap_or_default()
}

fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    name.trim().to_owned()
}

#[test]
fn the_machine_and_the_program_are_recorded_without_any_configuration() {
    let store = store(&[OFTEN]);
    let host = host_name();
    let up = wait_for(&store, "count(up) == 2 and on() sum(up) == 2");
    assert_eq!(one(&up), 2.0);
    for job in ["node", "tidepool"] {
        let query = format!("up{{job=\"{job}\",instance=\"{host}\"}}");
        assert_eq!(one(&ask(&store, &query)), 1.0, "{job}");
    }
    // Compared with other sources of this machine.
    let memory = fs::read_to_string("/proc/meminfo").expect("a text");
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|rest| rest.split_whitespace().next()).expect("a number");
    let kilobytes: f64 = total.parse().expect("a number");
    assert_eq!(one(&ask(&store, "node_memory_MemTotal_bytes")), kilobytes * 1024.0);
    let uptime = fs::read_to_string("/proc/stat").expect("a text");
    let boot = uptime.lines().find_map(|line| line.strip_prefix("btime ")).expect("a line");
    let boot: f64 = boot.parse().expect("a number");
    assert_eq!(one(&ask(&store, "node_boot_time_seconds")), boot);
    let version = ask(&store, "tidepool_build_info{job=\"tidepool\"}");
    assert!(one(&version) == 1.0 && version.keys().all(|labels| labels.contains("version")));
    // The metric's help text is stored, too.
    let metadata = api(&store.server, "metadata?metric=node_load1");
    assert_eq!(metadata["node_load1"][0]["help"], "1m load average.");
    // A counter grows with the rounds of its job.
    wait_for(
        &store,
        "resets(node_context_switches_total[1m]) == 0 and changes(node_context_switches_total[1m]) > 1",
    );
    let targets = api(&store.server, "targets");
    let pools = targets["activeTargets"].as_array().expect("targets").iter();
    let text = |target: &Value, key: &str| target[key].as_str().map(str::to_owned);
    let mut pools: Vec<_> =
        pools.map(|one| (text(one, "scrapePool"), text(one, "scrapeUrl"))).collect();
    pools.sort_unstable();
    let expected = [("node", "builtin://node/"), ("tidepool", "builtin://tidepool/")];
    assert_eq!(pools, expected.map(|(pool, url)| (Some(pool.into()), Some(url.into()))));
}

#[test]
fn both_can_be_turned_off() {
    for (flag, left) in [("--no-host-metrics", "tidepool"), ("--no-own-metrics", "node")] {
        let store = store(&[OFTEN, flag, "--host-metrics-instance=edge-1"]);
        let up = wait_for(&store, "up");
        assert_eq!(one(&up), 1.0, "{flag}");
        let labels = format!("\"instance\":\"edge-1\",\"job\":\"{left}\"");
        assert!(up.keys().all(|key| key.contains(&labels)), "{up:?}");
        assert_eq!(api(&store.server, "scrape_pools")["scrapePools"], serde_json::json!([left]));
    }
}

#[test]
fn a_configured_job_takes_the_place_of_a_built_in_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start().expect("a target");
    let path = directory.path().join("tidepool.yml");
    let lifecycle = "enable-lifecycle: true\nno-own-metrics: true\n";
    fs::write(&path, lifecycle).expect("a file");
    let flag = format!("--config={}", path.display());
    let store = store(&[OFTEN, &flag]);
    wait_for(&store, "node_load1");
    let job = format!(
        "{lifecycle}scrape_configs:\n  - job_name: node\n    scrape_interval: 500ms\n    \
         scrape_timeout: 500ms\n    static_configs: [{{targets: ['{}']}}]\n",
        target.address()
    );
    fs::write(&path, job).expect("a file");
    assert_eq!(reload(&store).0, 200);
    let instance = format!("up{{job=\"node\",instance=\"{}\"}} == 1", target.address());
    wait_for(&store, &instance);
    // The other job ends with a marker after two intervals.
    wait::until("the end of the built-in job", TIMEOUT, || {
        ask(&store, "node_load1").is_empty().then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    fs::write(&path, lifecycle).expect("a file");
    assert_eq!(reload(&store).0, 200);
    wait_for(&store, "node_load1");
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(path, text).expect("a file");
}

/// As in a container that has the machine's files in another directory.
#[test]
fn files_may_lie_elsewhere_and_text_files_are_read() {
    let machine = tempfile::tempdir().expect("a directory");
    let root = machine.path();
    write(root, "proc/loadavg", "0.25 0.5 0.75 1/719 19737\n");
    write(root, "sys/class/thermal/thermal_zone0/type", "bcm2835\n");
    write(root, "sys/class/thermal/thermal_zone0/temp", "48312\n");
    write(
        root,
        "text/backup.prom",
        "# HELP backup_age_seconds Age.\nbackup_age_seconds{a=\"\\\"\"} 7\n",
    );
    write(root, "text/bad.prom", "no metric\n");
    let flag = |name: &str, path: &str| format!("--{name}={}", root.join(path).display());
    let flags = [
        flag("path.procfs", "proc"),
        flag("path.sysfs", "sys"),
        flag("path.rootfs", ""),
        flag("collector.textfile.directory", "text"),
    ];
    let flags: Vec<&str> =
        [OFTEN, "--no-own-metrics"].into_iter().chain(flags.iter().map(String::as_str)).collect();
    let store = store(&flags);
    let text = wait_for(&store, "backup_age_seconds");
    assert_eq!(one(&text), 7.0);
    assert!(text.keys().all(|labels| labels.contains("\"a\":\"\\\"\"")), "{text:?}");
    assert_eq!(one(&ask(&store, "node_load5")), 0.5);
    assert_eq!(one(&ask(&store, "node_thermal_zone_temp")), 48.312);
    assert_eq!(one(&ask(&store, "node_textfile_scrape_error")), 1.0);
    assert_eq!(one(&ask(&store, "count(node_textfile_mtime_seconds)")), 1.0);
    let failed = ask(&store, "node_scrape_collector_success{collector=\"meminfo\"}");
    assert_eq!(one(&failed), 0.0);
    assert!(store.server.log().contains("bad.prom"), "{}", store.server.log());
    // A corrected file is accepted.
    write(root, "text/bad.prom", "mended 1\n");
    wait_for(&store, "mended");
    wait_for(&store, "node_textfile_scrape_error == 0");
}
