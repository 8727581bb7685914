//! The dashboards of `examples/grafana`: every expression of every panel returns series, over the
//! metrics that tidepool records without configuration, requested as by Prometheus' clients.

use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::prometheus::values;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(60);
/// Dashboards, and the built-in jobs that they show.
const DASHBOARDS: [(&str, &str); 3] =
    [("tidepool", "tidepool"), ("node", "node"), ("fleet", "tidepool")];
/// Rate interval for scrapes that come every second.
const RATE_INTERVAL: &str = "10s";

/// Returns title of the panel and expression, for each target.
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
    let centre = Store::start().expect("the centre starts");
    let forwards = format!("--remote-write-url={}/api/v1/write", centre.server.url());
    let store = Store::start_with(|config| {
        let flags = ["--host-metrics-interval=1s", "--host-metrics-instance=edge-7", &forwards];
        flags.into_iter().fold(config.with_builtin_metrics(), |config, flag| config.flag(flag))
    });
    let store = store.expect("tidepool starts");

    for (dashboard, job) in DASHBOARDS {
        let all = expressions(dashboard);
        assert!(all.len() > 15, "{dashboard}: {all:?}");
        for (title, expression) in all {
            let expression = expression
                .replace("$__rate_interval", RATE_INTERVAL)
                .replace("$job", job)
                .replace("$node_job", "node")
                .replace("$instance", "edge-7");
            assert!(!expression.contains('$'), "{dashboard}: {title}: {expression}");
            // The answer also has lists of warnings and infos.
            let shows = || {
                let answer = values(&store.server, &expression, now_ms()).expect("an answer");
                let notes = |name: &str| answer.get(name).map_or("", String::as_str);
                assert_eq!([notes("warnings"), notes("infos")], [""; 2], "{expression}");
                (answer.len() > 2).then_some(())
            };
            wait::until("a series", TIMEOUT, shows).unwrap_or_else(|error| {
                panic!("{error}: {dashboard}: {title}: {expression}\n{}", store.server.log())
            });
        }
    }
}
