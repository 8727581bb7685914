//! A node that forwards its samples, and checks of their arrival at the destination.
//!
//! The functions here are assertions: they panic if the server under test fails.

use crate::authority::Authority;
use crate::checksum::{Checksum, differences};
use crate::process::Server;
use crate::remote_read::Reader;
use crate::remote_write::Version;
use crate::sender::read_all;
use crate::series::Series;
use crate::tidepool::{Config, Store};
use crate::wait;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Timeout for the arrival of all samples.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// Queue settings that send each request as soon as rows are pending.
pub const AT_ONCE: &str = "    queue_config: {batch_send_deadline: 200ms}\n";

/// Returns the flag of a configuration file that forwards to an address, with further lines of
/// YAML.
pub fn forwards_to(directory: &Path, address: SocketAddr, version: Version, lines: &str) -> String {
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

/// Starts a node that forwards to an address. The configuration outlives the node.
pub fn node(
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

/// Waits until a receiver has exactly these series.
#[track_caller]
pub fn wait_for(what: &str, node: &Store, url: &str, expected: &[Series]) {
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

/// Waits until a node has delivered exactly this number of samples, and has written its position
/// behind them, so that a kill does not repeat them.
///
/// A sample counts as delivered once its answer has arrived, and is recorded after that. Waiting
/// rows are shown as pending until they are recorded.
#[track_caller]
pub fn wait_for_delivery(node: &Store, samples: u64) {
    let (sent, pending) =
        ("prometheus_remote_storage_samples_total", "prometheus_remote_storage_samples_pending");
    let delivered = wait::until("all to be delivered", TIMEOUT, || {
        // In this order, because sent rows were pending before.
        let is_sent = figure(node, sent, "") as u64 == samples;
        (is_sent && figure(node, pending, "") == 0.0).then_some(())
    });
    if let Err(error) = delivered {
        let (sent, pending) = (figure(node, sent, ""), figure(node, pending, ""));
        let log = node.server.log();
        panic!("{error}: {sent} of {samples}, {pending} are pending; the log says:\n{log}");
    }
}

/// Returns a metric of the destination.
pub fn figure(node: &Store, name: &str, more: &str) -> f64 {
    let page = crate::http::Client::default();
    let page = page.get(&format!("{}/metrics", node.server.url())).expect("a page").text();
    let begins = format!("{name}{{remote_name=\"centre\"");
    let found = page.lines().find(|line| line.starts_with(&begins) && line.contains(more));
    let value = found.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.unwrap_or_else(|| panic!("{name} is not in\n{page}"))
}

/// Files of one authority: its certificate, and certificate and key of server and client.
pub struct Files {
    directory: tempfile::TempDir,
    authority: Authority,
}

impl Files {
    /// Makes the files with a new authority.
    pub fn of_new_authority() -> Files {
        let directory = tempfile::tempdir().expect("a directory");
        let files = Files { directory, authority: Authority::new() };
        files.write("ca.pem", &files.authority.certificate);
        for name in ["127.0.0.1", "client"] {
            let (certificate, key) = files.authority.issue(name);
            files.write(&format!("{name}.pem"), &certificate);
            files.write(&format!("{name}.key"), &key);
        }
        files
    }

    /// Returns the path of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file in the directory and returns its path.
    pub fn write(&self, name: &str, content: &str) -> String {
        std::fs::write(self.path(name), content).expect("a file");
        self.path(name).display().to_string()
    }

    /// Starts a node that forwards to a URL, with these lines.
    pub fn node(&self, url: &str, lines: &str) -> Store {
        let yaml = format!(
            "remote_write:\n  - url: {url}\n    name: centre\n    \
             queue_config: {{batch_send_deadline: 100ms, max_backoff: 200ms}}\n{lines}"
        );
        let config = self.write("tidepool.yml", &yaml);
        Store::start_with(|node| node.flag(&format!("--config={config}"))).expect("the node starts")
    }

    /// Returns a client's `tls_config`, on request with the client's certificate.
    pub fn tls_config(&self, with_client: bool) -> String {
        let ca = self.path("ca.pem");
        let client = match with_client {
            true => format!(
                ", cert_file: {}, key_file: {}",
                self.path("client.pem").display(),
                self.path("client.key").display()
            ),
            false => String::new(),
        };
        format!("    tls_config: {{ca_file: {}{client}}}\n", ca.display())
    }

    /// Returns the status that curl gets, and the output.
    pub fn curl(&self, url: &str, arguments: &[&str]) -> (u16, String) {
        let path = |name: &str| self.path(name).display().to_string();
        let output = Command::new("curl")
            .args(["--silent", "--max-time", "20", "--write-out", "\n%{http_code}"])
            .args(["--cacert", &path("ca.pem"), "--cert", &path("client.pem")])
            .args(["--key", &path("client.key")])
            .args(arguments)
            .arg(url)
            .output()
            .expect("curl is installed");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, status) = text.rsplit_once('\n').unwrap_or_default();
        (status.parse().unwrap_or(0), body.to_owned())
    }

    /// Waits until a server that demands client certificates is ready.
    pub fn wait_ready(&self, server: &Server, arguments: &[&str]) {
        let url = format!("https://{}/-/ready", server.address());
        wait::until("readiness", TIMEOUT, || (self.curl(&url, arguments).0 == 200).then_some(()))
            .unwrap_or_else(|error| panic!("{error}\n{}", server.log()));
    }
}
