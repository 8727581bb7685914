//! A Prometheus with access control: TLS with an authority of its own, client certificates and
//! passwords.

use std::path::Path;
use tidepool_tests::clock::now_ms;
use tidepool_tests::forwarding::{Files, TIMEOUT, figure, wait_for_delivery};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::send_all;
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::wait;

/// Starts a Prometheus that demands a certificate and a password.
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
    let files = Files::of_new_authority();
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
    // The receiver refuses clients without a certificate, and all samples stay pending.
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
