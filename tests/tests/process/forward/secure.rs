//! Connections with access control: TLS with an authority of its own, client certificates,
//! passwords and tokens from files.

use tidepool_tests::clock::now_ms;
use tidepool_tests::forwarding::{Files, figure, wait_for_delivery};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Config;

#[test]
fn a_tidepool_asks_for_a_certificate_and_a_token_that_changes() {
    let files = Files::of_new_authority();
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
    // The file is read for each request, so a new token needs no restart.
    files.write("writers", "bearer second-token\n");
    files.write("token", "second-token\n");
    centre.signal(rustix::process::Signal::HUP).expect("the signal is sent");
    write(2.0);
    wait_for_delivery(&node, 2);
    assert_eq!(figure(&node, "prometheus_remote_storage_samples_failed_total", ""), 0.0);
}
