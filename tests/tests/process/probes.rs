//! Probes of addresses: this program's own port, a closed one, and a server with TLS.

use super::configuration::reload;
use super::scrape::api;
use serde_json::Value;
use std::fs;
use std::time::Duration;
use tidepool_tests::authority::Authority;
use tidepool_tests::guarded::Node;
use tidepool_tests::process::free_address;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The certificates of the tests' authority expire on 4096-01-01 (rcgen's default).
const EXPIRY: f64 = 67_090_118_400.0;

/// Returns the value of the only series that a query finds.
fn ask(store: &Store, query: &str) -> Option<f64> {
    let answer = api(&store.server, &format!("query?query={}", percent_encode(query)));
    match answer["result"].as_array().map(Vec::as_slice) {
        Some([one]) => one["value"][1].as_str()?.parse().ok(),
        _ => None,
    }
}

#[track_caller]
fn wait_for(store: &Store, query: &str, expected: f64) {
    wait::until(query, TIMEOUT, || (ask(store, query) == Some(expected)).then_some(()))
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
}

#[test]
fn addresses_are_probed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tidepool.yml");
    let lifecycle = "enable-lifecycle: true\n";
    fs::write(&path, lifecycle).expect("a file");
    let flag = format!("--config={}", path.display());
    let store = Store::start_with(|config| config.keeps_address().flag(&flag));
    let store = store.expect("tidepool starts");

    let authority = Authority::new();
    let node = Node::open_to_all().with_tls(&authority);
    let ca = node.file("probe-ca.pem", &authority.certificate);
    let secure = node.start_secure(&ca);
    let secure = format!("https://127.0.0.1:{}/-/ready", secure.address().port());
    let own = store.server.address();
    let ready = format!("http://{own}/-/ready");
    let missing = format!("http://{own}/none");
    // A port that no other test gets meanwhile.
    let closed = free_address().expect("an address").to_string();
    let text = format!(
        "{lifecycle}global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         probe_modules:\n  \
           trusting: {{prober: http, http: {{tls_config: {{ca_file: {ca}}}}}}}\n\
         probe_configs:\n  \
           - job_name: pages\n    static_configs: [{{targets: ['{ready}', '{missing}']}}]\n  \
           - job_name: secure\n    module: trusting\n    static_configs: [{{targets: ['{secure}']}}]\n  \
           - job_name: ports\n    module: tcp_connect\n    \
             static_configs: [{{targets: ['{own}', '{closed}']}}]\n"
    );
    fs::write(&path, text).expect("a file");
    assert_eq!(reload(&store).0, 200, "{}", store.server.log());

    for (instance, success, status) in
        [(&ready, 1.0, 200.0), (&missing, 0.0, 404.0), (&secure, 1.0, 200.0)]
    {
        wait_for(&store, &format!("probe_success{{instance=\"{instance}\"}}"), success);
        wait_for(&store, &format!("probe_http_status_code{{instance=\"{instance}\"}}"), status);
    }
    wait_for(&store, "probe_ssl_earliest_cert_expiry", EXPIRY);
    wait_for(&store, &format!("probe_success{{job=\"ports\",instance=\"{own}\"}}"), 1.0);
    wait_for(&store, &format!("probe_success{{job=\"ports\",instance=\"{closed}\"}}"), 0.0);
    // All probes ran, whatever their results.
    wait_for(&store, "count(up == 1)", 5.0);
    let phases = format!("count(probe_http_duration_seconds{{instance=\"{ready}\"}})");
    wait_for(&store, &phases, 5.0);

    let targets = api(&store.server, "targets");
    let targets = targets["activeTargets"].as_array().expect("targets").clone();
    let of_job = |job: &str| -> Vec<&Value> {
        targets.iter().filter(|target| target["scrapePool"] == job).collect()
    };
    assert_eq!(of_job("secure")[0]["scrapeUrl"], secure.as_str());
    assert!(of_job("ports").iter().all(|target| target["health"] == "up"), "{targets:?}");

    // A changed module is used at once, and a removed job ends.
    let text = format!(
        "{lifecycle}global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         probe_modules: {{http_2xx: {{prober: http, http: {{valid_status_codes: [404]}}}}}}\n\
         probe_configs:\n  \
           - job_name: pages\n    static_configs: [{{targets: ['{ready}', '{missing}']}}]\n"
    );
    fs::write(&path, text).expect("a file");
    assert_eq!(reload(&store).0, 200, "{}", store.server.log());
    wait_for(&store, &format!("probe_success{{instance=\"{ready}\"}}"), 0.0);
    wait_for(&store, &format!("probe_success{{instance=\"{missing}\"}}"), 1.0);
    wait_for(&store, "count(up)", 2.0);

    let wrong = format!("{lifecycle}probe_configs: [{{job_name: a, module: none}}]\n");
    fs::write(&path, wrong).expect("a file");
    let (status, what) = reload(&store);
    assert_ne!(status, 200);
    assert!(format!("{what:?}").contains("probe_modules"), "{what:?}");
}
