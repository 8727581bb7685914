//! Prometheus scrapes a known page and writes it to tidepool.

use super::{TIMEOUT, of_job, samples_of};
use std::path::Path;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::Config;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{STALE_MARKER_BITS, Sample, Series};
use tidepool_tests::target::{self, COUNTER, Target};
use tidepool_tests::tidepool::{self, Store};
use tidepool_tests::wait;

const JOB: &str = "page";
/// Number of scrapes, one each second.
const SCRAPES: usize = 8;
/// Length of an outage in scrapes.
const OUTAGE: u64 = 4;

/// Prefixes of the series that a scraper adds to a target's own.
const OF_SCRAPER: [&str; 2] = ["up", "scrape_"];

/// Waits for some scrapes, ends the scraper, and compares: no sample is missing or doubled.
///
/// A scraper may end inside a scrape, which it then does not send.
#[track_caller]
pub fn assert_all_arrives(store: &Store, target: &Target, scraper: Server) {
    let enough = || {
        let found = of_job(store, JOB);
        let counter = samples_of(&found, COUNTER);
        let newest = counter.last()?.value as u64;
        // All scrapes but the last, however long a backlog was. A request that broke off may wait
        // for its retry while newer scrapes arrive: a scraper that ends then keeps it for its next
        // start.
        let is_whole = missing(&counter, newest).len() <= timed_out(&found);
        let is_current = counter.len() as u64 + 2 >= target.scrapes();
        (counter.len() >= SCRAPES && is_current && is_whole).then_some(())
    };
    wait::until("scrapes to arrive", TIMEOUT, enough)
        .unwrap_or_else(|e| panic!("{e}\n{}\n{}", scraper.log(), store.server.log()));
    let log = format!("{}\n{}", scraper.log(), store.server.log());
    scraper.terminate().expect("the scraper ends");

    let mut found = of_job(store, JOB);
    let timed_out = timed_out(&found);
    found.retain(|series| {
        let name = series.labels.value("__name__");
        !OF_SCRAPER.iter().any(|own| name.starts_with(own))
    });
    // A scraper that ends cleanly may mark all series as stale.
    for series in &mut found {
        let is_end = |sample: &Sample| sample.value.to_bits() == STALE_MARKER_BITS;
        series.samples.pop_if(|sample| is_end(sample));
    }
    let counter = samples_of(&found, COUNTER);
    let numbers: Vec<f64> = counter.iter().map(|sample| sample.value).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "scrapes came twice: {numbers:?}\n{log}");
    let missing = missing(&counter, target.scrapes());
    assert!(
        missing.len() <= timed_out,
        "scrapes {missing:?} of {} never came, {timed_out} timed out\n{log}",
        target.scrapes()
    );
    let address = target.address().to_string();
    let expected: Vec<Series> = target::expected(&[("job", JOB), ("instance", &address)], &counter);
    assert_same("the page", &expected, &found);
}

/// Returns the missing scrapes before this one.
fn missing(counter: &[Sample], before: u64) -> Vec<u64> {
    let is_there = |number: u64| counter.iter().any(|sample| sample.value == number as f64);
    (1..before).filter(|number| !is_there(*number)).collect()
}

/// Returns the number of failed scrapes: on a busy machine a scrape may take longer than its
/// second, but the page has counted it.
fn timed_out(found: &[Series]) -> usize {
    samples_of(found, "up").iter().filter(|sample| sample.value == 0.0).count()
}

/// Kills tidepool after the first scrapes, and restarts it while they continue.
#[track_caller]
pub fn break_off(store: Store, target: &Target, scraper: &Server) -> Store {
    let some = || (samples_of(&of_job(&store, JOB), COUNTER).len() >= 2).then_some(());
    wait::until("scrapes to arrive", TIMEOUT, some)
        .unwrap_or_else(|e| panic!("{e}\n{}\n{}", scraper.log(), store.server.log()));
    let first = target.scrapes();
    let missed = || (target.scrapes() >= first + OUTAGE).then_some(());
    let pause = || wait::until("scrapes meanwhile", TIMEOUT, missed).expect("it goes on");
    store.outage(pause).expect("tidepool starts again").0
}

fn start(
    release: Release,
    version: Version,
    as_agent: bool,
    directory: &Path,
    store: &Store,
    target: &Target,
) -> Server {
    let config = Config::new(release, directory)
        .expect("the directory can be used")
        .scrape(JOB, target.address())
        .remote_write(&store.server.url(), version);
    let config = if as_agent { config.agent() } else { config };
    config.start().expect("Prometheus starts")
}

fn prometheus_writes(release: Release, version: Version, as_agent: bool) {
    let store = Store::start().expect("tidepool starts");
    let target = Target::start().expect("the target starts");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let scraper = start(release, version, as_agent, directory.path(), &store, &target);
    assert_all_arrives(&store, &target, scraper);
}

/// An agent has only its log for samples that could not be sent.
#[test]
fn an_outage_costs_an_agent_nothing() {
    for (release, version) in [(Release::V2, Version::V1), (Release::V3, Version::V2)] {
        let store = Store::start_with(tidepool::Config::keeps_address).expect("tidepool starts");
        let target = Target::start().expect("the target starts");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let scraper = start(release, version, true, directory.path(), &store, &target);
        let store = break_off(store, &target, &scraper);
        assert_all_arrives(&store, &target, scraper);
    }
}

#[test]
fn prometheus_2_as_a_server_by_1_0() {
    prometheus_writes(Release::V2, Version::V1, false);
}

#[test]
fn prometheus_2_as_an_agent_by_1_0() {
    prometheus_writes(Release::V2, Version::V1, true);
}

#[test]
fn prometheus_3_as_a_server_by_1_0() {
    prometheus_writes(Release::V3, Version::V1, false);
}

#[test]
fn prometheus_3_as_a_server_by_2_0() {
    prometheus_writes(Release::V3, Version::V2, false);
}

#[test]
fn prometheus_3_as_an_agent_by_1_0() {
    prometheus_writes(Release::V3, Version::V1, true);
}

#[test]
fn prometheus_3_as_an_agent_by_2_0() {
    prometheus_writes(Release::V3, Version::V2, true);
}
