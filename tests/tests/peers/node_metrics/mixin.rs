//! The rules and alerts of node-mixin, from node_exporter's module, over the metrics that tidepool
//! records without configuration: they select the same series as with a real node_exporter in
//! Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::node_exporter;
use tidepool_tests::peers::{Release, go_module_of};
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::{self, values};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(60);
const MODULE: &str = "github.com/prometheus/node_exporter";
const INSTANCE: &str = "edge-7";

/// Returns names and expressions of a file of the mixin. Only texts are parsed: `%(name)s` stands
/// for a setting of the configuration, and `%%` for a percent sign.
fn rules(mixin: &Path, file: &str, key: &str) -> Vec<(String, String)> {
    let read = |file: &str| fs::read_to_string(mixin.join(file)).expect("a file of the mixin");
    let settings = settings(&read("config.libsonnet"));
    let filled = |text: &str| {
        let mut text = text.to_owned();
        for (name, value) in &settings {
            for form in ["s", "d"] {
                text = text.replace(&format!("%({name}){form}"), value);
            }
        }
        assert!(!text.contains("%("), "not in the configuration: {text}");
        text.replace("%%", "%")
    };
    let text = read(file);
    let begins = format!("{key}: '");
    let named = text.split(&begins).skip(1).map(|rest| {
        let (name, rest) = rest.split_once('\'').expect("the end of a name");
        let (_, rest) = rest.split_once("expr: |||\n").expect("an expression");
        let (expression, _) = rest.split_once("|||").expect("its end");
        (filled(name), filled(expression))
    });
    named.collect()
}

/// Returns texts and numbers of the configuration.
fn settings(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let pairs = lines.filter_map(|line| line.trim_end_matches(',').split_once(": "));
    let value = |value: &str| value.trim_matches('\'').to_owned();
    pairs.map(|(name, text)| (name.to_owned(), value(text))).collect()
}

/// Returns the label sets of an answer without warnings.
fn selected(server: &Server, expression: &str) -> Result<BTreeSet<String>, String> {
    let answer = values(server, expression, now_ms()).map_err(|error| format!("{error:?}"))?;
    let notes = answer.get("warnings").map_or("", String::as_str);
    match notes {
        "" => Ok(answer.into_keys().filter(|key| key != "warnings" && key != "infos").collect()),
        notes => Err(notes.to_owned()),
    }
}

#[test]
fn rules_of_the_mixin_select_what_they_select_of_node_exporter() {
    let directory = tempfile::tempdir().expect("a directory");
    let exporter = node_exporter::launch(directory.path()).expect("node_exporter is built");
    let exporter = exporter.start().expect("node_exporter starts");
    let config = prometheus::Config::new(Release::V3, directory.path()).expect("a directory");
    let peer = config.scrape("node", exporter.address()).start().expect("Prometheus starts");
    let store = Store::start_with(|config| {
        let flags = ["--host-metrics-interval=1s", "--host-metrics-instance=edge-7"];
        flags.into_iter().fold(config.with_builtin_metrics(), |config, flag| config.flag(flag))
    });
    let store = store.expect("tidepool starts");

    let module = go_module_of("node", MODULE).unwrap_or_else(|error| panic!("{error}"));
    let mixin = module.join("docs/node-mixin");
    let records = rules(&mixin, "rules/rules.libsonnet", "record");
    let alerts = rules(&mixin, "alerts/alerts.libsonnet", "alert");
    assert!(records.len() >= 10 && alerts.len() >= 20, "{records:?} {alerts:?}");

    let mut known: Vec<(String, String)> = Vec::new();
    let mut shown = 0;
    for (name, expression) in records {
        // Nothing evaluates rules here, so a recorded name is replaced by its expression.
        let expression = known.iter().fold(expression, |expression, (record, of_record)| {
            expression.replace(&format!("{record}{{job=\"node\"}}"), &format!("({of_record})"))
        });
        let address = exporter.address().to_string();
        let theirs = || -> Result<BTreeSet<String>, String> {
            let found = selected(&peer, &expression)?;
            Ok(found.into_iter().map(|labels| labels.replace(&address, INSTANCE)).collect())
        };
        let same = wait::until(&name, TIMEOUT, || {
            let (theirs, ours) = (theirs().ok()?, selected(&store.server, &expression).ok()?);
            // A rate needs two scrapes.
            (theirs == ours && (!theirs.is_empty() || is_absent(&peer, &name))).then_some(ours)
        });
        let ours = same.unwrap_or_else(|error| {
            let ours = selected(&store.server, &expression);
            panic!("{error}: {expression}\n{:#?}\n{ours:#?}", theirs())
        });
        shown += usize::from(!ours.is_empty());
        known.push((name, expression));
    }
    assert!(shown >= 8, "only {shown} rules select anything");
    for (name, expression) in alerts {
        let ours = selected(&store.server, &expression);
        assert!(ours.is_ok(), "{name}: {expression}: {ours:?}");
    }
}

/// Returns whether the machine lacks the series of a rule, such as those of disks, or of network
/// devices other than the loopback.
fn is_absent(peer: &Server, record: &str) -> bool {
    let of = |metric: &str| selected(peer, metric).is_ok_and(|found| found.is_empty());
    (record.contains("disk") && of("node_disk_io_time_seconds_total"))
        || (record.contains("network")
            && of("node_network_receive_bytes_total{device!~\"lo|veth.+\"}"))
        || (record.contains("vmstat") && of("node_vmstat_pgmajfault"))
}
