//! Ways that are not open to everyone: TLS with an authority of its own, certificates of clients,
//! passwords and tokens from files.

use super::{TIMEOUT, figure, wait_for_delivery};
use std::path::{Path, PathBuf};
use std::process::Command;
use tidepool_tests::authority::Authority;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::send_all;
use tidepool_tests::series::{Dataset, Series, Shape, Texture};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait::{self, now_ms};

/// Files of one authority: its certificate, and certificate and key of server and client.
struct Files {
    directory: tempfile::TempDir,
    authority: Authority,
}

impl Files {
    fn new() -> Files {
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

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, content: &str) -> String {
        std::fs::write(self.path(name), content).expect("a file");
        self.path(name).display().to_string()
    }

    /// A node that forwards to a URL, with these lines.
    fn node(&self, url: &str, lines: &str) -> Store {
        let yaml = format!(
            "remote_write:\n  - url: {url}\n    name: centre\n    \
             queue_config: {{batch_send_deadline: 100ms, max_backoff: 200ms}}\n{lines}"
        );
        let config = self.write("tidepool.yml", &yaml);
        Store::start_with(|node| node.flag(&format!("--config={config}"))).expect("the node starts")
    }

    /// What `tls_config` says of a client.
    fn tls_config(&self, with_client: bool) -> String {
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

    /// The status that curl gets.
    fn curl(&self, url: &str, arguments: &[&str]) -> (u16, String) {
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

    fn wait_ready(&self, server: &Server, arguments: &[&str]) {
        let url = format!("https://{}/-/ready", server.address());
        wait::until("readiness", TIMEOUT, || (self.curl(&url, arguments).0 == 200).then_some(()))
            .unwrap_or_else(|error| panic!("{error}\n{}", server.log()));
    }
}

/// A Prometheus that lets in only who has a certificate and a password.
fn guarded_prometheus(files: &Files, directory: &Path) -> Server {
    let hash = bcrypt::hash_with_result("s3cret", 4).expect("a hash");
    let hash = hash.format_for_version(bcrypt::Version::TwoY);
    let web = format!(
        "tls_server_config:\n  cert_file: {}\n  key_file: {}\n  client_ca_file: {}\n  \
         client_auth_type: RequireAndVerifyClientCert\nbasic_auth_users:\n  edge: {hash}\n",
        files.path("127.0.0.1.pem").display(),
        files.path("127.0.0.1.key").display(),
        files.path("ca.pem").display(),
    );
    let web = files.write("web.yml", &web);
    let config = prometheus::Config::new(Release::V3, directory).expect("a directory");
    let config = config.receiver().flag(&format!("--web.config.file={web}"));
    let server = config.launch().expect("its configuration").spawn().expect("Prometheus starts");
    files.wait_ready(&server, &["--user", "edge:s3cret"]);
    server
}

#[test]
fn a_prometheus_asks_for_a_certificate_and_a_password() {
    let files = Files::new();
    let directory = tempfile::tempdir().expect("a directory");
    let prometheus = guarded_prometheus(&files, directory.path());
    let base = format!("https://{}", prometheus.address());
    let url = format!("{base}/api/v1/write");
    let password = files.write("password", "s3cret\n");
    // Without stale markers, which no query counts.
    let (scrapes, interval_ms, texture) = (30, 1_000, Texture::Regular);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let data =
        Dataset::generate(Shape { seed: 111, series: 20, scrapes, start_ms, interval_ms, texture });
    let count = data.sample_count();
    let credentials = format!("    basic_auth: {{username: edge, password_file: {password}}}\n");
    // Without a certificate nobody comes in, and everything waits.
    let lines = format!("{credentials}{}", files.tls_config(false));
    let node = files.node(&url, &lines);
    send_all(&node, Version::V2, &data);
    wait::until("failures", TIMEOUT, || {
        let retried = figure(&node, "prometheus_remote_storage_samples_retried_total", "");
        (retried > 0.0).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}\n{}", node.server.log()));
    assert_eq!(figure(&node, "prometheus_remote_storage_samples_total", ""), 0.0);
    let yaml = std::fs::read_to_string(files.path("tidepool.yml")).expect("a file");
    let changed = yaml.replace(&files.tls_config(false), &files.tls_config(true));
    files.write("tidepool.yml", &changed);
    node.server.signal(rustix::process::Signal::HUP).expect("the signal is sent");
    wait_for_delivery(&node, count);
    let query = "query=sum(count_over_time({__name__=~\".%2B\"}[1h]))";
    let (status, answer) =
        files.curl(&format!("{base}/api/v1/query"), &["--user", "edge:s3cret", "--data", query]);
    assert!(status == 200 && answer.contains(&format!("\"{count}\"")), "{status} {answer}");
}

#[test]
fn a_tidepool_asks_for_a_certificate_and_a_token_that_changes() {
    let files = Files::new();
    let writers = files.write("writers", "bearer first-token\nbearer second-token\n");
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| files.path(name).display().to_string();
    let centre = Config::new(directory.path())
        .flag(&format!("--write-credentials-file={writers}"))
        .flag(&format!("--tls-cert-file={}", path("127.0.0.1.pem")))
        .flag(&format!("--tls-key-file={}", path("127.0.0.1.key")))
        .flag(&format!("--tls-client-ca-file={}", path("ca.pem")))
        .launch()
        .expect("an address")
        .spawn()
        .expect("the centre starts");
    files.wait_ready(&centre, &[]);
    let token = files.write("token", "first-token\n");
    let url = format!("https://{}/api/v1/write", centre.address());
    let credentials = format!("    authorization: {{credentials_file: {token}}}\n");
    let node = files.node(&url, &format!("{credentials}{}", files.tls_config(true)));
    let write = |value: f64| {
        let series = Series::new(&[("__name__", "up")], &[(now_ms(), value)]);
        let answer = node.writer().send(Version::V1, &[series.row()]).expect("an answer");
        assert_eq!(answer.status, 204);
    };
    write(1.0);
    wait_for_delivery(&node, 1);
    // The file is read for each request: who changes the token restarts nobody.
    files.write("writers", "bearer second-token\n");
    files.write("token", "second-token\n");
    centre.signal(rustix::process::Signal::HUP).expect("the signal is sent");
    write(2.0);
    wait_for_delivery(&node, 2);
    assert_eq!(figure(&node, "prometheus_remote_storage_samples_failed_total", ""), 0.0);
}
