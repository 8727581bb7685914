//! Store and forward: what one tidepool stores arrives at other receivers, whatever happens to the
//! way there or to either end.

mod answers;
mod conformance;
mod faults;
mod lag;
mod loading;
mod outage;
mod peers;
mod receivers;
mod reload;
mod secure;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::checksum::{Checksum, differences};
use tidepool_tests::remote_read::Reader;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::read_all;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

/// For all to arrive.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A configuration file that forwards to an address, with further lines of YAML.
fn forwards_to(directory: &Path, address: SocketAddr, version: Version, lines: &str) -> String {
    let message = match version {
        Version::V1 => "prometheus.WriteRequest",
        Version::V2 => "io.prometheus.write.v2.Request",
    };
    let yaml = format!(
        "remote_write:\n  - url: http://{address}/api/v1/write\n    name: centre\n    \
         protobuf_message: {message}\n{lines}"
    );
    let path = directory.join("tidepool.yml");
    std::fs::write(&path, yaml).expect("a file");
    path.to_string_lossy().into_owned()
}

/// A node that forwards to an address. Its configuration outlives it.
fn node(
    address: SocketAddr,
    version: Version,
    lines: &str,
    configure: impl FnOnce(Config) -> Config,
) -> Store {
    let files = tempfile::tempdir().expect("a directory").keep();
    let config = forwards_to(&files, address, version, lines);
    Store::start_with(|node| configure(node).flag(&format!("--config={config}")))
        .expect("the node starts")
}

/// Waits until a receiver has exactly this.
#[track_caller]
fn wait_for(what: &str, node: &Store, url: &str, expected: &[Series]) {
    let reader = Reader::new(url);
    let wanted = Checksum::of(expected);
    let mut got = Vec::new();
    let arrived = wait::until(what, TIMEOUT, || {
        got = reader.streamed(&[read_all()]).ok()?.remove(0);
        (Checksum::of(&got) == wanted).then_some(())
    });
    if let Err(error) = arrived {
        let log = node.server.log();
        panic!("{error}: {}; the log says:\n{log}", differences(expected, &got));
    }
}

/// Waits until a node has delivered so many samples.
#[track_caller]
fn wait_for_delivery(node: &Store, samples: u64) {
    let name = "prometheus_remote_storage_samples_total";
    let delivered = wait::until("all to be delivered", TIMEOUT, || {
        (figure(node, name, "") as u64 == samples).then_some(())
    });
    if let Err(error) = delivered {
        let sent = figure(node, name, "");
        panic!("{error}: {sent} of {samples}; the log says:\n{}", node.server.log());
    }
}

/// A figure of the destination.
fn figure(node: &Store, name: &str, more: &str) -> f64 {
    let page = tidepool_tests::http::Client::default();
    let page = page.get(&format!("{}/metrics", node.server.url())).expect("a page").text();
    let begins = format!("{name}{{remote_name=\"centre\"");
    let found = page.lines().find(|line| line.starts_with(&begins) && line.contains(more));
    let value = found.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.unwrap_or_else(|| panic!("{name} is not in\n{page}"))
}
