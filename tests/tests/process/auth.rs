//! Access rights of users, with curl as the client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use tidepool_tests::authority::Authority;
use tidepool_tests::guarded::{Node, TIMEOUT, curl};
use tidepool_tests::process::Server;
use tidepool_tests::wait;

const WRITE: &str = "/api/v1/write";
const READ: &str = "/api/v1/read";
const METADATA: &str = "/api/v1/metadata";
const SNAPSHOT: &str = "/api/v1/admin/tsdb/snapshot";

fn status(server: &Server, path: &str, arguments: &[&str]) -> u16 {
    curl(server, "http", path, arguments).0
}

const POST: [&str; 2] = ["--data-binary", "x"];

fn bearer(token: &str) -> [String; 2] {
    ["--header".to_string(), format!("Authorization: Bearer {token}")]
}

/// Returns the statuses of four endpoints for a client: write, read, metadata, snapshot.
fn rights(server: &Server, who: &[&str]) -> [u16; 4] {
    let post = [who, &POST].concat();
    [
        status(server, WRITE, &post),
        status(server, READ, &post),
        status(server, METADATA, who),
        status(server, SNAPSHOT, &post),
    ]
}

#[test]
fn everyone_may_do_what_their_file_says() {
    let mut node = Node::open_to_all().with_credentials();
    node.flags.push("--enable-admin-api".to_string());
    let server = node.start();
    // The type and content of the bodies are wrong: such an error shows that the client got access.
    let writer = ["--user", "writer:wr1te-secret"];
    assert_eq!(rights(&server, &writer), [415, 401, 401, 401]);
    let [header, token] = bearer("wr1te-token");
    assert_eq!(rights(&server, &[&header, &token]), [415, 401, 401, 401]);
    assert_eq!(rights(&server, &["--user", "reader:re4d:secret"]), [401, 400, 200, 401]);
    let [header, token] = bearer("adm1n-token");
    assert_eq!(rights(&server, &[&header, &token]), [401, 401, 401, 200]);
    for nobody in [&["--user", "writer:re4d:secret"][..], &["--user", "reader:"], &[]] {
        assert_eq!(rights(&server, nobody), [401; 4], "{nobody:?}");
    }
    assert_eq!(status(&server, "/metrics", &[]), 401);
    assert_eq!(status(&server, "/metrics", &["--user", "reader:re4d:secret"]), 200);
    assert_eq!((status(&server, "/-/ready", &[]), status(&server, "/-/healthy", &[])), (200, 200));
    assert_eq!((status(&server, "/", &[]), status(&server, "/nowhere", &[])), (200, 404));

    let (_, head) = curl(&server, "http", WRITE, &POST);
    assert!(head.contains("www-authenticate: basic realm=\"tidepool\""), "{head}");
    assert!(head.contains("www-authenticate: bearer realm=\"tidepool\""), "{head}");

    let output = Command::new("curl")
        .args(["--silent", "--user", "reader:re4d:secret"])
        .arg(format!("{}/metrics", server.url()))
        .output()
        .expect("curl is installed");
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(page.contains("requests_refused_total{reason=\"unauthorized\"} "), "{page}");
    for secret in ["secret", "token", "$2y$"] {
        assert!(!server.log().contains(secret) && !page.contains(secret), "{secret} is shown");
    }
}

/// Returns a metric of `/metrics` for a client with these arguments.
fn figure(server: &Server, scheme: &str, name: &str, arguments: &[&str]) -> f64 {
    let url = format!("{scheme}://{}/metrics", server.address());
    let output = Command::new("curl").arg("--silent").args(arguments).arg(url).output();
    let page = String::from_utf8(output.expect("curl is installed").stdout).expect("UTF-8");
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("{name} is not in\n{page}"))
}

/// The name of a user stays the same while its password changes; an invalid file changes nothing.
#[test]
fn changed_credentials_are_read_again() {
    let node = Node::open_to_all().with_credentials();
    let server = node.start();
    let is_let_in = |password: &str| {
        let user = format!("reader:{password}");
        status(&server, METADATA, &["--user", &user]) == 200
    };
    assert!(is_let_in("re4d:secret") && !is_let_in("new"));
    node.file("readers", "basic reader:new\n");
    wait::until("the new password", TIMEOUT, || is_let_in("new").then_some(()))
        .expect("it is read");
    assert!(!is_let_in("re4d:secret"));
    node.file("readers", "basic reader\n");
    let missing = "line 1: the colon between user and password is missing";
    let told = || server.log().contains(missing).then_some(());
    wait::until("an error", TIMEOUT, told).expect("it is logged");
    assert!(is_let_in("new"));
    // Unused flags used to be reported in the log only.
    let is_used = |flag: &str| {
        let name = "tidepool_access_file_last_reload_successful";
        let name = format!("{name}{{flag=\"{flag}\"}}");
        figure(&server, "http", &name, &["--user", "reader:new"])
    };
    assert_eq!((is_used("read-credentials-file"), is_used("write-credentials-file")), (0.0, 1.0));
    std::fs::remove_file(node.path("readers")).expect("it can be removed");
    let told = || server.log().contains("cannot be read").then_some(());
    wait::until("an error", TIMEOUT, told).expect("it is logged");
    assert!(is_let_in("new"));
}

#[test]
fn files_that_cannot_be_used_end_the_start() {
    let missing = Node::open_to_all().flag("--write-credentials-file", "/nowhere/writers");
    let node = Node::open_to_all();
    let empty = node.file("empty", "# nobody\n");
    let empty = node.flag("--read-credentials-file", &empty);
    let mut open_admin = Node::open_to_all().with_credentials();
    open_admin.flags.retain(|flag| !flag.starts_with("--admin"));
    open_admin.flags.push("--enable-admin-api".to_string());
    let node = Node::open_to_all();
    let text = node.file("text", "no PEM");
    let no_certificate = node.flag("--tls-cert-file", &text).flag("--tls-key-file", &text);
    let no_key = Node::open_to_all().flag("--tls-cert-file", "server.crt");
    for (node, problem) in [
        (missing, "/nowhere/writers cannot be read"),
        (empty, "holds no credential"),
        (open_admin, "--admin-credentials-file"),
        (no_certificate, "it holds no certificate in PEM"),
        (no_key, "--tls-key-file"),
    ] {
        let error = node.launch().start().expect_err(problem).to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn others_on_the_network_are_told_of() {
    let loopback = Node::open_to_all();
    assert!(!loopback.start().log().contains("WARN"));
    let node = Node::open_to_all().flag("--listen", "0.0.0.0:0");
    // The later flag counts; the log has the address.
    let mut launch = node.launch();
    let at = launch.arguments.iter().position(|a| a == "--listen").expect("the flag");
    launch.arguments.drain(at..at + 2);
    let server = launch.spawn().expect("tidepool starts");
    let told = || server.log().contains("without credentials").then_some(());
    wait::until("a warning", TIMEOUT, told).unwrap_or_else(|e| panic!("{e}\n{}", server.log()));
}

/// Over TLS the protocol is negotiated by ALPN (RFC 7301), from the client's offer.
#[test]
fn tls_clients_choose_the_version_of_http() {
    let authority = Authority::new();
    let node = Node::open_to_all();
    let ca = node.file("ca.crt", &authority.certificate);
    let node = node.with_tls(&authority);
    let server = node.start_secure(&ca);
    for (offer, version) in
        [("--http2", "2 200"), ("--http1.1", "1.1 200"), ("--no-alpn", "1.1 200")]
    {
        let (status, head) = curl(&server, "https", "/-/ready", &["--cacert", &ca, offer]);
        assert!(status == 200 && head.starts_with(version), "{offer}: {head}");
    }
}

/// Certificates are replaced while the server runs: certificate and key one after the other, as
/// tools do.
#[test]
fn changed_certificates_serve_the_next_connections() {
    let (old, new) = (Authority::new(), Authority::new());
    let node = Node::open_to_all();
    let (old_ca, new_ca) =
        (node.file("old.crt", &old.certificate), node.file("new.crt", &new.certificate));
    let node = node.with_tls(&old);
    let server = node.start_secure(&old_ca);
    let is_served = |ca: &str| curl(&server, "https", "/-/ready", &["--cacert", ca]).0 == 200;
    assert!(is_served(&old_ca) && !is_served(&new_ca));

    let (certificate, key) = new.issue("127.0.0.1");
    node.file("server.crt", &certificate);
    let told = || server.log().contains("cannot be used").then_some(());
    wait::until("an error", TIMEOUT, told).expect("it is logged");
    assert!(is_served(&old_ca));
    node.file("server.key", &key);
    let figure = |name: &str, ca: &str| {
        figure(&server, "https", &format!("{name}{{flag=\"tls-cert-file\"}}"), &["--cacert", ca])
    };
    wait::until("the new one", TIMEOUT, || is_served(&new_ca).then_some(())).expect("it is read");
    assert!(!is_served(&old_ca));
    assert_eq!(figure("tidepool_access_file_last_reload_successful", &new_ca), 1.0);
    // The first second of 4096, as `openssl x509 -enddate` prints it.
    let expiry = figure("tidepool_tls_certificate_expiry_timestamp_seconds", &new_ca);
    assert_eq!(expiry, 67_090_118_400.0);
}

#[test]
fn what_is_no_tls_is_closed() {
    let authority = Authority::new();
    let node = Node::open_to_all().flag("--request-timeout", "3s");
    let ca = node.file("ca.crt", &authority.certificate);
    let node = node.with_tls(&authority);
    let server = node.start_secure(&ca);
    // `network::lenient` tests clients that speak HTTP.
    for bytes in [b"SSH-2.0-x\r\n\r\n".as_slice(), b"", b"\x16\x03\x01"] {
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.write_all(bytes).expect("the server takes it");
        let mut answer = Vec::new();
        let closed = stream.read_to_end(&mut answer);
        let is_reset = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
        assert!(closed.is_ok() || closed.is_err_and(|error| is_reset(&error)));
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
    let is_served =
        || (curl(&server, "https", "/-/ready", &["--cacert", &ca]).0 == 200).then_some(());
    wait::until("an honest client", TIMEOUT, is_served).expect("it is served");
}

/// With HTTP/2 the answer must not overtake the body: curl then fails instead of showing it.
#[test]
fn a_refused_body_is_answered_by_http_2() {
    let authority = Authority::new();
    let node = Node::open_to_all();
    let ca = node.file("ca.crt", &authority.certificate);
    let node = node.with_tls(&authority);
    let server = node.start_secure(&ca);
    let arguments = [&["--cacert", ca.as_str(), "--http2"], &POST[..]].concat();
    for _ in 0..50 {
        let (status, head) = curl(&server, "https", WRITE, &arguments);
        assert!(status == 415 && head.starts_with("2 415"), "{status} {head}");
    }
}

/// Prometheus' web configuration: TLS, then users for all endpoints, then headers and HTTP/1.1
/// only, each as soon as the file has it.
#[test]
fn the_web_configuration_guards_everything_and_is_read_again() {
    let authority = Authority::new();
    let node = Node::open_to_all();
    let ca = node.file("ca.crt", &authority.certificate);
    let (certificate, key) = authority.issue("127.0.0.1");
    node.file("server.crt", &certificate);
    node.file("server.key", &key);
    let mut text = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n".to_owned();
    let file = node.file("web.yml", &text);
    let node = node.flag("--web.config.file", &file);
    let server = node.start_secure(&ca);
    let ask = |path: &str, with: &[&str]| {
        curl(&server, "https", path, &[&["--cacert", ca.as_str()], with].concat())
    };
    assert_eq!(ask("/metrics", &[]).0, 200);

    let hash = bcrypt::hash_with_result("s3cret", 4).expect("a hash");
    let hash = hash.format_for_version(bcrypt::Version::TwoY);
    text += &format!("basic_auth_users: {{anna: {hash}}}\n");
    node.file("web.yml", &text);
    let is_guarded = || (ask("/metrics", &[]).0 == 401).then_some(());
    wait::until("a guard", TIMEOUT, is_guarded).unwrap_or_else(|e| panic!("{e}\n{}", server.log()));
    let anna = ["--user", "anna:s3cret"];
    for path in ["/metrics", "/-/ready", "/", METADATA] {
        assert_eq!((ask(path, &[]).0, ask(path, &anna).0), (401, 200), "{path}");
    }
    assert_eq!(ask(WRITE, &[&anna[..], &POST].concat()).0, 415);
    assert_eq!(ask("/", &["--user", "anna:S3cret"]).0, 401);

    text += "http_server_config: {http2: false, headers: {X-Frame-Options: deny}}\n";
    node.file("web.yml", &text);
    let has_header = || ask("/", &anna).1.contains("x-frame-options: deny").then_some(());
    wait::until("a header", TIMEOUT, has_header)
        .unwrap_or_else(|e| panic!("{e}\n{}", server.log()));
    let (answered, head) = ask("/", &[&anna[..], &["--http2"]].concat());
    assert!(answered == 200 && head.starts_with("1.1 200"), "{head}");

    // A file that is just being written must not open the server.
    node.file("web.yml", "");
    let told = || server.log().contains("no longer has tls_server_config").then_some(());
    wait::until("an error", TIMEOUT, told).unwrap_or_else(|e| panic!("{e}\n{}", server.log()));
    let is_used = "tidepool_access_file_last_reload_successful{flag=\"web-config-file\"}";
    assert_eq!(figure(&server, "https", is_used, &[&anna[..], &["--cacert", &ca]].concat()), 0.0);
    assert_eq!((ask("/", &[]).0, ask("/", &anna).0), (401, 200));
    server.signal(rustix::process::Signal::HUP).expect("it runs");
    let is_open = || (status(&server, "/metrics", &[]) == 200).then_some(());
    wait::until("the end of it", TIMEOUT, is_open)
        .unwrap_or_else(|e| panic!("{e}\n{}", server.log()));
}

#[test]
fn what_the_web_configuration_and_flags_both_say_is_refused() {
    let authority = Authority::new();
    let node = Node::open_to_all();
    let (certificate, key) = authority.issue("127.0.0.1");
    let (certificate, key) = (node.file("a.crt", &certificate), node.file("a.key", &key));
    let tls = format!("tls_server_config: {{cert_file: {certificate}, key_file: {key}}}\n");
    for (text, flags, said) in [
        (
            tls.as_str(),
            vec![("--tls-cert-file", &certificate), ("--tls-key-file", &key)],
            ["tls_server_config in ", "--tls-cert-file"],
        ),
        (
            "basic_auth_users: {anna: s3cret}\n",
            vec![],
            ["web.yml:1:26: basic_auth_users.anna", "bcrypt"],
        ),
    ] {
        let node = Node::open_to_all();
        let file = node.file("web.yml", text);
        let node = node.flag("--web.config.file", &file);
        let node = flags.into_iter().fold(node, |node, (flag, value)| node.flag(flag, value));
        let error = node.launch().start().expect_err(text).to_string();
        assert!(
            said.iter().all(|part| error.contains(part)) && !error.contains("s3cret"),
            "{error}"
        );
    }
}
