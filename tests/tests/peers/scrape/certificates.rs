//! Certificates made as in exporters' guides, served by OpenSSL: Prometheus 3.15 and tidepool
//! accept and refuse the same ones.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::tidepool::Config;
use tidepool_tests::{prometheus, wait};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Name of a target, arguments of `openssl req -x509`, and settings of its scrape; `CERTIFICATE`
/// stands for the file of its certificate.
const KINDS: [(&str, &[&str], &str); 9] = [
    ("an authority of its own", &[NAME], TRUSTED),
    ("no authority", &[NAME, "-addext", "basicConstraints=critical,CA:FALSE"], TRUSTED),
    ("another name", &["-addext", "subjectAltName=DNS:other.example"], TRUSTED),
    ("another name, as told", &["-addext", "subjectAltName=DNS:other.example"], AS_TOLD),
    ("no name", &["-subj", "/CN=127.0.0.1"], TRUSTED),
    ("not trusted", &[NAME], "{}"),
    ("not trusted, skipped", &[NAME], SKIPPED),
    ("a weak key, skipped", &[NAME, "-newkey", "rsa:1024"], SKIPPED),
    ("a long curve, skipped", &[NAME, "-newkey", "ec", "-pkeyopt", CURVE], SKIPPED),
];
/// Certificates from `openssl x509 -req`: of version 1, and one that has expired.
const SIGNED: [(&str, &[&str], &str); 3] = [
    ("version 1, skipped", &["-days", "30"], SKIPPED),
    ("version 1", &["-days", "30"], TRUSTED),
    ("expired", &["-days", "-1", "-extfile", "extensions"], TRUSTED),
];
const NAME: &str = "-addext=subjectAltName=IP:127.0.0.1";
const CURVE: &str = "ec_paramgen_curve:P-521";
const TRUSTED: &str = "{ca_file: CERTIFICATE}";
const AS_TOLD: &str = "{ca_file: CERTIFICATE, server_name: other.example}";
const SKIPPED: &str = "{insecure_skip_verify: true}";

/// OpenSSL's server of the files in its directory, killed when dropped.
struct Served {
    process: Child,
    address: String,
}

impl Served {
    fn start(folder: &Path, name: &str) -> Served {
        let mut process = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-WWW", "-cipher", "DEFAULT@SECLEVEL=0"])
            .args(["-cert", &format!("{name}.crt"), "-key", &format!("{name}.key")])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let mut lines = lines.map(|line| line.expect("a line"));
        let accepts = lines.find_map(|line| Some(line.strip_prefix("ACCEPT ")?.to_owned()));
        // The server must not end because its output is not read.
        std::thread::spawn(move || lines.for_each(drop));
        Served { process, address: accepts.expect("an address") }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).current_dir(folder).output();
    let output = output.expect("openssl");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments:?}: {text}");
}

/// Makes a self-signed certificate and its key, as `NAME.crt` and `NAME.key`.
fn self_signed(folder: &Path, name: &str, arguments: &[&str]) {
    let (key, certificate) = (format!("{name}.key"), format!("{name}.crt"));
    let mut all = vec!["req", "-x509", "-nodes", "-days", "30"];
    if !arguments.contains(&"-newkey") {
        all.extend(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    }
    if !arguments.contains(&"-subj") {
        all.extend(["-subj", "/CN=exporter"]);
    }
    for argument in arguments {
        // One word in the table, two on the command line.
        match argument.split_once("addext=") {
            Some((_, extension)) => all.extend(["-addext", extension]),
            None => all.push(argument),
        }
    }
    all.extend(["-keyout", &key, "-out", &certificate]);
    openssl(folder, &all);
}

/// Makes them by a request instead, so that the certificate can be of version 1 or expired.
fn by_request(folder: &Path, name: &str, arguments: &[&str]) {
    let [key, request, certificate] = ["key", "csr", "crt"].map(|it| format!("{name}.{it}"));
    let ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let subject = ["-subj", "/CN=127.0.0.1"];
    let files = ["-keyout", &key, "-out", &request];
    openssl(folder, &[&["req"][..], &ec, &subject, &files].concat());
    let files = ["-in", &request, "-signkey", &key, "-out", &certificate];
    openssl(folder, &[&["x509", "-req"][..], &files, arguments].concat());
}

/// Starts Prometheus and tidepool with the same configuration, each in a folder of its own.
fn scrapers(folder: &Path, yaml: &str) -> [Server; 2] {
    let [theirs, ours] = ["theirs", "ours"].map(|name| folder.join(name));
    for folder in [&theirs, &ours] {
        std::fs::create_dir(folder).expect("a directory");
    }
    let launch = prometheus::Config::new(Release::V3, &theirs).expect("a directory").launch();
    std::fs::write(theirs.join("prometheus.yml"), yaml).expect("a file");
    std::fs::write(ours.join("tidepool.yml"), yaml).expect("a file");
    let config = format!("--config={}", ours.join("tidepool.yml").display());
    let ours = Config::new(&ours).flag(&config).start().expect("tidepool starts");
    [launch.expect("Prometheus is built").start().expect("Prometheus starts"), ours]
}

/// Returns the error of each target, which is empty if the target is up.
fn targets(server: &Server, count: usize) -> BTreeMap<String, String> {
    let url = format!("{}/api/v1/targets?state=active", server.url());
    let look = || {
        let answer: Value = serde_json::from_slice(&Client::default().get(&url).ok()?.body).ok()?;
        let targets = answer["data"]["activeTargets"].as_array()?.clone();
        let jobs = targets.iter().filter(|target| target["labels"]["kind"].is_string());
        let jobs = jobs.filter(|target| target["health"] != "unknown");
        let error = |target: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&target["labels"]["kind"]), text(&target["lastError"]))
        };
        let all: BTreeMap<String, String> = jobs.map(error).collect();
        (all.len() == count).then_some(all)
    };
    wait::until("all targets", TIMEOUT, look).unwrap_or_else(|e| panic!("{e}\n{}", server.log()))
}

#[test]
fn certificates_are_taken_as_by_prometheus() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    std::fs::write(folder.join("metrics"), "one 1\n").expect("a file");
    std::fs::write(folder.join("extensions"), "subjectAltName=IP:127.0.0.1\n").expect("a file");
    let mut yaml = "scrape_configs:\n".to_owned();
    let mut served = Vec::new();
    let all = KINDS.iter().map(|kind| (kind, true)).chain(SIGNED.iter().map(|kind| (kind, false)));
    for (number, ((kind, arguments, tls), is_self_signed)) in all.enumerate() {
        let name = format!("c{number}");
        match is_self_signed {
            true => self_signed(folder, &name, arguments),
            false => by_request(folder, &name, arguments),
        }
        let server = Served::start(folder, &name);
        let certificate = folder.join(format!("{name}.crt")).display().to_string();
        yaml += &format!(
            "- job_name: {name}\n  scheme: https\n  scrape_interval: 1h\n  scrape_timeout: 20s\n  \
             tls_config: {}\n  static_configs: [{{targets: [\"{}\"], labels: {{kind: \"{kind}\"}}}}]\n",
            tls.replace("CERTIFICATE", &certificate),
            server.address,
        );
        served.push(server);
    }
    // The first scrape comes at a time that depends on the target's hash.
    let yaml = yaml.replace("scrape_interval: 1h\n  scrape_timeout: 20s", "scrape_interval: 2s");
    let servers = scrapers(folder, &yaml);
    let [theirs, ours] = servers.each_ref().map(|server| targets(server, served.len()));
    let is_up = |targets: &BTreeMap<String, String>| -> BTreeMap<String, bool> {
        targets.iter().map(|(kind, error)| (kind.clone(), error.is_empty())).collect()
    };
    assert_eq!(is_up(&ours), is_up(&theirs), "ours: {ours:#?}\ntheirs: {theirs:#?}");
    let up: Vec<bool> = is_up(&theirs).into_values().collect();
    assert!(up.contains(&true) && up.contains(&false), "{theirs:?}");
}

/// A client presents a certificate that it has signed itself, and the server trusts it.
#[test]
fn certificates_of_clients_are_taken_as_by_prometheus() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    for name in ["server", "client", "stranger"] {
        self_signed(folder, name, &[NAME]);
    }
    let path = |name: &str| folder.join(name).display().to_string();
    let config = Config::new(folder)
        .flag(&format!("--tls-cert-file={}", path("server.crt")))
        .flag(&format!("--tls-key-file={}", path("server.key")))
        .flag(&format!("--tls-client-ca-file={}", path("client.crt")));
    let node = config.launch().expect("a program").spawn().expect("tidepool starts");
    let mut yaml = "scrape_configs:\n".to_owned();
    for name in ["client", "stranger"] {
        yaml += &format!(
            "- job_name: {name}\n  scheme: https\n  scrape_interval: 2s\n  tls_config: \
             {{ca_file: {}, cert_file: {}, key_file: {}}}\n  static_configs: [{{targets: \
             [\"{}\"], labels: {{kind: {name}}}}}]\n",
            path("server.crt"),
            path(&format!("{name}.crt")),
            path(&format!("{name}.key")),
            node.url().trim_start_matches("http://"),
        );
    }
    for server in &scrapers(folder, &yaml) {
        let targets = targets(server, 2);
        assert_eq!(targets["client"], "", "{targets:?}");
        assert_ne!(targets["stranger"], "", "{targets:?}");
    }
}
