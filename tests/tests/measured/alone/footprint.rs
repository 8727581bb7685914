//! tidepool's footprint, and the end of the addresses of an engine instance.

use std::time::Duration;
use tidepool_tests::process::Ending;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const MIB: u64 = 1 << 20;

/// Maximum memory of an idle node.
const IDLE_BYTES_MAX: u64 = 20_000_000;

#[test]
fn an_idle_store_takes_little_memory() {
    let store = Store::start().expect("tidepool starts");
    // The node scrapes its own page at least.
    assert_eq!(store.metric("prometheus_tsdb_head_series"), Some(0.0));
    let settled = || {
        let bytes = store.server.usage().expect("it runs").memory_bytes;
        println!("{} KiB", bytes >> 10);
        (bytes <= IDLE_BYTES_MAX).then_some(())
    };
    wait::until("little memory", Duration::from_secs(60), settled).expect("it is idle");
}

#[test]
fn more_memory_than_an_instance_can_address_is_told_and_not_used() {
    let store = Store::start_with(|config| {
        config.flag("--memory-limit=64GiB").flag("--head-memory-limit=8GiB")
    })
    .expect("tidepool starts");
    let page = tidepool_tests::http::Client::default();
    let page = page.get(&format!("{}/metrics", store.server.url())).expect("an answer").text();
    let part = |part: &str| {
        let key = format!("tidepool_memory_limit_bytes{{part=\"{part}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&key));
        line.and_then(|bytes| bytes.parse::<u64>().ok())
    };
    assert_eq!(part("head"), Some(4095 * MIB));
    assert_eq!(part("compactor"), Some(4095 * MIB / 3));
    assert_eq!(part("all"), Some(64 << 30));
    let log = store.server.log();
    for (flag, given, used) in [
        ("--head-memory-limit", 8 << 30, 4095 * MIB),
        ("--memory-limit", 64 << 30, part("head").map_or(0, |head| head + 4095 * MIB / 3)),
    ] {
        let line = log.lines().find(|line| line.contains(&format!("flag=\"{flag}\"")));
        let line = line.unwrap_or_else(|| panic!("nothing of {flag}:\n{log}"));
        assert!(line.contains("32-bit") && line.contains(&format!("given_bytes={given}")));
        let used_bytes = line.split("used_bytes=").nth(1).and_then(|rest| rest.split(' ').next());
        let used_bytes = used_bytes.and_then(|bytes| bytes.parse::<u64>().ok());
        assert!(used_bytes.is_some_and(|bytes| (used..given).contains(&bytes)), "{line}");
    }
    let Ending { status, .. } = store.server.terminate().expect("it ends");
    assert!(status.success());
}
