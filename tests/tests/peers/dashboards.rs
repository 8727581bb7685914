//! The dashboards of `examples/grafana`: every expression of every panel gives series, over what a
//! Prometheus agent scrapes from a tidepool and a node_exporter.

use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::node_exporter;
use tidepool_tests::peers::Release;
use tidepool_tests::prometheus::{Config, values};
use tidepool_tests::remote_write::Version;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(60);
/// The jobs of the agent, by the dashboard that shows them.
const DASHBOARDS: [&str; 2] = ["tidepool", "node"];
/// Scrapes come every second.
const RATE_INTERVAL: &str = "10s";

/// Title of the panel and expression, for each.
fn expressions(dashboard: &str) -> Vec<(String, String)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/grafana");
    let text = std::fs::read(file.join(format!("{dashboard}.json"))).expect("a dashboard");
    let dashboard: Value = serde_json::from_slice(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().into_iter().flatten();
        targets.map(|target| (panel["title"].to_string(), target["expr"].clone()))
    });
    targets.map(|(title, expr)| (title, expr.as_str().expect("a text").to_owned())).collect()
}

#[test]
fn every_panel_shows_series() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let centre = Store::start().expect("the centre starts");
    let forwards = format!("--remote-write-url={}/api/v1/write", centre.server.url());
    let store = Store::start_with(|config| config.flag(&forwards)).expect("tidepool starts");
    let exporter = node_exporter::launch(directory.path()).expect("node_exporter is there");
    let exporter = exporter.start().expect("node_exporter starts");
    let addresses = [store.server.address(), exporter.address()];
    let mut agent = Config::new(Release::V3, directory.path()).expect("a directory").agent();
    for (job, address) in DASHBOARDS.iter().zip(addresses) {
        agent = agent.scrape(job, address);
    }
    let agent = agent.remote_write(&store.server.url(), Version::V2).start();
    let agent = agent.expect("Prometheus starts");

    for (job, address) in DASHBOARDS.iter().zip(addresses) {
        let all = expressions(job);
        assert!(all.len() > 15, "{job}: {all:?}");
        for (title, expression) in all {
            let expression = expression
                .replace("$__rate_interval", RATE_INTERVAL)
                .replace("$job", job)
                .replace("$instance", &address.to_string());
            assert!(!expression.contains('$'), "{job}: {title}: {expression}");
            // Beside the series there are lists of warnings and infos.
            let shows = || {
                let answer = values(&store.server, &expression, now_ms()).expect("an answer");
                let notes = |name: &str| answer.get(name).map_or("", String::as_str);
                assert_eq!([notes("warnings"), notes("infos")], [""; 2], "{expression}");
                (answer.len() > 2).then_some(())
            };
            wait::until("a series", TIMEOUT, shows).unwrap_or_else(|error| {
                panic!("{error}: {job}: {title}: {expression}\n{}", agent.log())
            });
        }
    }
}
