//! vmagent scrapes a known page, accepts remote writes, and writes both to tidepool.
//!
//! By default it first tries its own protocol, which differs from 1.0 in its encoding (zstd): the
//! answer 415 makes it use Snappy.

use super::TIMEOUT;
use super::scrapers::{assert_all_arrives, break_off};
use std::path::Path;
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::sender::{assert_holds, recent_data};
use tidepool_tests::target::{COUNTER, COUNTER_HELP, Target};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::vmagent;
use tidepool_tests::wait;

fn start(directory: &Path, store: &Store, flags: &[&str]) -> Server {
    let mut launch = vmagent::launch(directory).unwrap_or_else(|e| panic!("{e}"));
    launch.arguments.push(format!("-remoteWrite.url={}/api/v1/write", store.server.url()).into());
    launch.arguments.extend(flags.iter().map(Into::into));
    launch.start().unwrap_or_else(|e| panic!("{e}"))
}

/// Starts a vmagent that scrapes the page each second.
fn start_scraper(directory: &Path, store: &Store, target: &Target) -> Server {
    let file = directory.join("scrape.yml");
    let yaml = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: page\n    \
         static_configs:\n      - targets: ['{}']\n",
        target.address()
    );
    std::fs::write(&file, yaml).expect("the configuration is written");
    start(directory, store, &[&format!("-promscrape.config={}", file.display())])
}

#[test]
fn what_vmagent_scrapes_arrives() {
    let store = Store::start().expect("tidepool starts");
    let target = Target::start().expect("the target starts");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let scraper = start_scraper(directory.path(), &store, &target);
    let metadata = || {
        let url = format!("{}/api/v1/metadata", store.server.url());
        let text = Client::default().get(&url).ok()?.text();
        (text.contains(COUNTER) && text.contains(COUNTER_HELP)).then_some(())
    };
    wait::until("metadata", TIMEOUT, metadata)
        .unwrap_or_else(|e| panic!("{e}\n{}\n{}", scraper.log(), store.server.log()));
    assert_all_arrives(&store, &target, scraper);
}

/// Its workers repeat a request that broke off while others continue: those rows come out of order.
#[test]
fn an_outage_costs_vmagent_nothing() {
    let store = Store::start_with(Config::keeps_address).expect("tidepool starts");
    let target = Target::start().expect("the target starts");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let scraper = start_scraper(directory.path(), &store, &target);
    let store = break_off(store, &target, &scraper);
    assert_all_arrives(&store, &target, scraper);
}

/// Its queue has several workers, so requests of one series may come in any order, and several may
/// be under way when it learns that its own protocol is not accepted.
#[test]
fn what_vmagent_is_sent_is_handed_on() {
    for flags in [&[][..], &["-remoteWrite.forcePromProto=true"]] {
        let store = Store::start().expect("tidepool starts");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let agent = start(directory.path(), &store, flags);
        let mut data = recent_data(71, 400, 60);
        data.clear_negative_zeros();
        let writer = Writer::new(&agent.url());
        for rows in data.requests(2_000) {
            let response = writer.send(Version::V1, &rows).expect("an answer");
            assert_eq!(response.status, 204, "{}", response.text());
        }
        // vmagent has sent everything when it ends.
        agent.terminate().expect("vmagent ends");
        // Refused requests are repeated as Snappy.
        let foreign = "tidepool_http_requests_refused_total{reason=\"unsupported_type\"}";
        let refused = store.metric(foreign).expect("the metric");
        assert_eq!(refused > 0.0, flags.is_empty(), "{refused} refused with {flags:?}");
        assert_holds(&store, &data);
    }
}
