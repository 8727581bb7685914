//! A real node_exporter, scraped by both: over HTTP with all of its collectors, and over TLS with a
//! password.

use super::exposer::Scripts;
use super::{Pair, Side, TIMEOUT, configuration};
use std::collections::BTreeSet;
use std::fs;
use tidepool_tests::forwarding::Files;
use tidepool_tests::node_exporter;
use tidepool_tests::wait;

/// Metrics that do not change while a machine runs.
const CONSTANT: [&str; 6] = [
    "node_boot_time_seconds",
    "node_exporter_build_info",
    "node_filesystem_size_bytes",
    "node_memory_MemTotal_bytes",
    "node_os_info",
    "node_uname_info",
];

/// Returns a job that scrapes a target other than the exposer.
fn elsewhere(name: &str, address: &str, lines: &str) -> String {
    format!(
        "  - job_name: {name}\n{lines}    static_configs: [{{targets: ['{address}'], labels: \
         {{which: {name}}}}}]\n"
    )
}

#[test]
fn node_exporter_is_scraped_as_prometheus_scrapes_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let launch = node_exporter::launch(directory.path()).expect("node_exporter is built");
    let exporter = launch.start().expect("node_exporter starts");
    let job = elsewhere("exporter", &exporter.address().to_string(), "");
    let pair = Pair::start(&configuration(&[job]), |_| Scripts::new());
    let names = |side: &Side| side.collapsed().into_keys().collect::<BTreeSet<_>>();
    // Mounts and devices of other programs come and go: one server may see one that the other does
    // not, so both continue until they have the same.
    let same = wait::until("the same series", TIMEOUT, || {
        let (theirs, ours) = (names(&pair.theirs), names(&pair.ours));
        (theirs.len() > 400 && theirs == ours).then_some(())
    });
    if let Err(error) = same {
        let (theirs, ours) = (names(&pair.theirs), names(&pair.ours));
        let differences: Vec<_> = theirs.symmetric_difference(&ours).collect();
        panic!("{error}: {} series, {differences:#?}", theirs.len());
    }
    let constant = |side: &Side| {
        let mut all = side.collapsed();
        let is_constant = |name: &str| {
            CONSTANT.iter().any(|constant| name.contains(&format!("__name__=\"{constant}\"")))
        };
        all.retain(|name, _| is_constant(name));
        all
    };
    let (theirs, ours) = (constant(&pair.theirs), constant(&pair.ours));
    assert!(theirs.len() >= CONSTANT.len(), "{theirs:?}");
    assert_eq!(ours, theirs);
}

#[test]
fn tls_and_passwords_are_those_of_prometheus() {
    let files = Files::of_new_authority();
    let hash = bcrypt::hash_with_result("s3cret", 4).expect("a hash");
    let hash = hash.format_for_version(bcrypt::Version::TwoY);
    let path = |name: &str| files.path(name).display().to_string();
    let web = format!(
        "tls_server_config:\n  cert_file: {}\n  key_file: {}\nbasic_auth_users:\n  edge: {hash}\n",
        path("127.0.0.1.pem"),
        path("127.0.0.1.key"),
    );
    let web = files.write("web.yml", &web);
    let directory = tempfile::tempdir().expect("a directory");
    let text = "# HELP lines How many.\n# TYPE lines gauge\nlines{file=\"a\"} 7\nlines 0.1\n";
    fs::write(directory.path().join("made.prom"), text).expect("a file");
    let mut launch = node_exporter::launch(directory.path()).expect("node_exporter is built");
    launch.arguments.extend([
        "--web.disable-exporter-metrics".into(),
        "--collector.disable-defaults".into(),
        "--collector.textfile".into(),
        format!("--collector.textfile.directory={}", directory.path().display()).into(),
        format!("--web.config.file={web}").into(),
    ]);
    let exporter = launch.spawn().expect("node_exporter starts");
    let page = format!("https://{}/metrics", exporter.address());
    let is_ready = || (files.curl(&page, &["--user", "edge:s3cret"]).0 == 200).then_some(());
    wait::until("readiness", TIMEOUT, is_ready)
        .unwrap_or_else(|error| panic!("{error}\n{}", exporter.log()));

    let password = files.write("password", "s3cret\n");
    let of = |name: &str, tls: &str, password: &str| {
        let lines = format!(
            "    scheme: https\n    tls_config: {{{tls}}}\n    \
             basic_auth: {{username: edge, {password}}}\n"
        );
        let lines = format!(
            "{lines}    metric_relabel_configs: [{{source_labels: [__name__], \
             regex: node_scrape_collector_duration_seconds, action: drop}}]\n"
        );
        elsewhere(name, &exporter.address().to_string(), &lines)
    };
    let ca = format!("ca_file: {}", path("ca.pem"));
    let right = format!("password_file: {password}");
    let jobs = [
        of("secure", &ca, &right),
        of("unchecked", "insecure_skip_verify: true", &right),
        of("stranger", "", &right),
        of("misnamed", &format!("{ca}, server_name: elsewhere"), &right),
        of("too_old", &format!("{ca}, max_version: TLS12"), "password: s3cret"),
        of("wrong_password", &ca, "password: guess"),
    ];
    let pair = Pair::start(&configuration(&jobs), |_| Scripts::new());
    for side in pair.sides() {
        let has_all = || (side.series().len() == jobs.len()).then_some(());
        wait::until("all targets", TIMEOUT, has_all)
            .unwrap_or_else(|error| panic!("{error}\n{}", side.server.log()));
    }
    pair.assert_becomes_same();
    let up = |which: &str| {
        let all = pair.ours.collapsed();
        let is_up = |name: &str| {
            name.contains("__name__=\"up\"") && name.contains(&format!("which=\"{which}\""))
        };
        let found = all.iter().find(|(name, _)| is_up(name)).expect("it was scraped");
        found.1.values().next().expect("a sample").starts_with('1')
    };
    let are_up =
        ["secure", "unchecked", "stranger", "misnamed", "too_old", "wrong_password"].map(up);
    assert_eq!(are_up, [true, true, false, false, true, false]);
}
