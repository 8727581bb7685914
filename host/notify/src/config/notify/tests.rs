//! Values that the section may have, and those that it may not have.

use super::*;
use hyper::header::HeaderValue;
use proptest::prelude::*;

fn read(text: &str) -> Result<NotifySection, yaml::Error> {
    yaml::load(text).and_then(|node| NotifySection::read(&node))
}

fn one(text: &str) -> ReceiverConfig {
    let section = read(text).expect(text);
    section.receivers.into_iter().next().expect("a receiver")
}

const SECOND: Duration = Duration::from_secs(1);

const ALL: &str = r#"
receivers:
- name: phone
  matchers: ['severity="page"', 'job="node"']
  send_resolved: false
  group_by: [alertname, job]
  group_wait: 0s
  group_interval: 1m
  repeat_interval: 1h
  webhook:
    url: https://me:hunter2@ntfy.example/hunter2?auth=hunter2
    method: PUT
    timeout: 3s
    max_alerts: 5
    headers: {X-Title: '{{ .CommonLabels.alertname }}', X-Token: hunter2, Content-Type: text/plain}
    body: '{{ .Status }}'
    authorization: {credentials: hunter2}
    tls_config: {ca_file: ca.pem}
    follow_redirects: true
- name: siren
  group_by: ['...']
  command: {path: /usr/local/bin/siren, arguments: [--loud, ''], timeout: 5s}
- name: watchdog
  heartbeat: {url_file: hc, interval: 30s, timeout: 2s, method: HEAD, http_headers: {X-A: {values: [b]}}}
"#;

#[test]
fn all_of_a_section_is_read() {
    let mut section = read(ALL).expect("a section");
    section.set_directory(Path::new("/etc/tidepool"));
    let [phone, siren, watchdog] = section.receivers.as_slice() else { panic!("{section:?}") };
    assert_eq!((phone.name.as_str(), phone.send_resolved), ("phone", false));
    let both = LabelSet::new([("severity", "page"), ("job", "node")]);
    assert!(phone.matches(&both) && !phone.matches(&both.without("job")));
    let grouping = Grouping {
        by: GroupBy::Labels(vec!["alertname".into(), "job".into()]),
        wait: Duration::ZERO,
        interval: 60 * SECOND,
        repeat: 3600 * SECOND,
    };
    assert_eq!(phone.grouping, grouping);
    let ReceiverKind::Webhook(webhook) = &phone.kind else { panic!("{phone:?}") };
    assert_eq!((&webhook.method, webhook.timeout), (&Method::PUT, 3 * SECOND));
    assert_eq!((webhook.alerts_max, webhook.http.follow_redirects), (5, Some(true)));
    let names: Vec<&str> = webhook.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x-title", "x-token", "content-type"]);
    let url = webhook.url.read().expect("a URL");
    assert_eq!(url.as_str(), "https://me:hunter2@ntfy.example/hunter2?auth=hunter2");
    assert!(format!("{:?}", webhook.http).contains("/etc/tidepool/ca.pem"));

    assert_eq!(siren.grouping.by, GroupBy::EachAlert);
    let command = CommandConfig {
        path: "/usr/local/bin/siren".into(),
        arguments: vec!["--loud".into(), String::new()],
        timeout: 5 * SECOND,
    };
    assert_eq!(siren.kind, ReceiverKind::Command(command));

    let ReceiverKind::Heartbeat(heartbeat) = &watchdog.kind else { panic!("{watchdog:?}") };
    assert_eq!((&heartbeat.method, heartbeat.interval), (&Method::HEAD, 30 * SECOND));
    assert_eq!(heartbeat.timeout, 2 * SECOND);
    assert_eq!(format!("{:?}", heartbeat.url), "/etc/tidepool/hc");
    let headers = &heartbeat.http.headers;
    assert_eq!(headers[0].1.values, [HeaderValue::from_static("b")]);
    assert!(!format!("{section:?}").contains("hunter2"));
}

/// As the server shows its configuration.
#[test]
fn the_shown_configuration_has_no_secret() {
    let text = "notify: {receivers: [{name: a, webhook: {url: 'https://a/hunter2', headers: {X-A: \
                hunter2}, body: hunter2}}, {name: b, heartbeat: {url: 'https://a/hunter2'}}]}";
    let node = yaml::load(text).expect("YAML");
    let yaml::Data::Map(entries) = &node.data else { panic!("no mapping") };
    let shown = tidepool_settings::shown::shown_entries(&**entries, 0);
    assert!(shown.contains("url: <secret>") && !shown.contains("hunter2"), "{shown}");
}

/// Defaults of Alertmanager's `DefaultRouteOpts` and of its webhooks, but for the timeout.
#[test]
fn what_is_absent_has_its_default() {
    let phone = one("receivers: [{name: a, webhook: {url: 'http://a/'}}]");
    assert!(phone.send_resolved && phone.matches(&LabelSet::default()));
    let Grouping { by, wait, interval, repeat } = &phone.grouping;
    assert_eq!(*by, GroupBy::Labels(vec![]));
    assert_eq!([*wait, *interval, *repeat], [30 * SECOND, 300 * SECOND, 14_400 * SECOND]);
    let ReceiverKind::Webhook(webhook) = phone.kind else { panic!("no webhook") };
    assert_eq!((webhook.method, webhook.timeout, webhook.alerts_max), {
        (Method::POST, 10 * SECOND, 0)
    });
    assert_eq!((webhook.body, webhook.headers.len()), (None, 0));
    assert_eq!(webhook.http.follow_redirects, Some(false));
    let heartbeat = one("receivers: [{name: a, heartbeat: {url: 'http://a/'}}]");
    let ReceiverKind::Heartbeat(heartbeat) = heartbeat.kind else { panic!("no heartbeat") };
    assert_eq!((heartbeat.interval, heartbeat.timeout), (60 * SECOND, 10 * SECOND));
    assert_eq!(heartbeat.method, Method::GET);
    assert_eq!(read("").expect("nothing"), NotifySection::default());
    assert_eq!(read("receivers:").expect("nothing"), NotifySection::default());
}

#[test]
fn changes_are_seen() {
    let base = one(ALL);
    for (from, to, is_shown) in [
        ("severity=\"page\"", "severity=\"x\"", true),
        ("send_resolved: false", "send_resolved: true", true),
        ("group_wait: 0s", "group_wait: 1s", true),
        ("max_alerts: 5", "max_alerts: 6", true),
        ("{{ .Status }}", "{{ .Receiver }}", true),
        ("method: PUT", "method: POST", true),
        // Secrets are compared, but change no text that is shown.
        ("auth=hunter2", "auth=hunter3", false),
        ("credentials: hunter2", "credentials: hunter3", false),
    ] {
        let changed = one(&ALL.replace(from, to));
        assert_ne!(changed, base, "{to}");
        assert_eq!(changed.fingerprint() != base.fingerprint(), is_shown, "{to}");
    }
    assert_eq!((one(ALL), one(ALL).fingerprint()), (base.clone(), base.fingerprint()));
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let webhook =
        |rest: &str| format!("receivers:\n- name: a\n  webhook:\n    url: http://a/\n{rest}");
    let command = |rest: &str| format!("receivers:\n- name: a\n  command:\n    path: /a\n{rest}");
    for (text, said) in [
        (
            "receivers: [{webhook: {url: 'http://a/'}}]",
            "1:13: notify.receivers[0]: name is missing",
        ),
        ("receivers: [{name: a}]", "1:13: notify.receivers[0]: give exactly one of webhook"),
        (
            "receivers: [{name: a, command: {path: /a}, heartbeat: {url: 'http://a'}}]",
            "1:13: notify.receivers[0]: give exactly one of webhook",
        ),
        (
            "receivers: [{name: a/b, command: {path: /a}}]",
            "1:20: notify.receivers[0].name: expected up to 64 letters",
        ),
        (
            "receivers: [{name: .., command: {path: /a}}]",
            "1:20: notify.receivers[0].name: expected up to 64 letters",
        ),
        (
            "receivers:\n- {name: a, command: {path: /a}}\n- {name: a, command: {path: /a}}\n",
            "3:3: notify.receivers[1].name: another receiver has this name",
        ),
        (
            "receivers: [{name: a, group_by: [a], heartbeat: {url: 'http://a'}}]",
            "1:13: notify.receivers[0]: a heartbeat is sent while all is well",
        ),
        (
            "receivers: [{name: a, matchers: ['a=\"b\"'], heartbeat: {url: 'http://a'}}]",
            "1:13: notify.receivers[0]: a heartbeat is sent while all is well",
        ),
        (
            "receivers: [{name: a, matchers: [page], command: {path: /a}}]",
            "1:34: notify.receivers[0].matchers[0]: ",
        ),
        (
            "receivers: [{name: a, group_by: [a, a], command: {path: /a}}]",
            "1:33: notify.receivers[0].group_by: expected names of labels, each once",
        ),
        (
            "receivers: [{name: a, group_by: ['...', a], command: {path: /a}}]",
            "1:33: notify.receivers[0].group_by: '...' makes each alert a group",
        ),
        (
            "receivers: [{name: a, group_interval: 0s, command: {path: /a}}]",
            "1:39: notify.receivers[0].group_interval: \"0s\" is zero",
        ),
        (
            "receivers: [{name: a, repeat: 1h, command: {path: /a}}]",
            "1:23: notify.receivers[0].repeat: there is no such key; there are name, matchers, ",
        ),
        (
            "receivers: [{name: a, webhook: {}}]",
            "1:32: notify.receivers[0].webhook: give either url or url_file",
        ),
        (
            &webhook("    url_file: a\n"),
            "4:5: notify.receivers[0].webhook: give either url or url_file",
        ),
        (
            "receivers: [{name: a, webhook: {url: 'ftp://secret/'}}]",
            "1:38: notify.receivers[0].webhook.url: expected a URL such as https://HOST/PATH",
        ),
        (&webhook("    method: GET\n"), "5:13: notify.receivers[0].webhook.method: expected POST"),
        (&webhook("    timeout: 11m\n"), "5:14: notify.receivers[0].webhook.timeout: expected at"),
        (
            &webhook("    timeout: 0s\n"),
            "5:14: notify.receivers[0].webhook.timeout: \"0s\" is zero",
        ),
        (
            &webhook("    max_alerts: -1\n"),
            "5:17: notify.receivers[0].webhook.max_alerts: expected a whole number from 0 to",
        ),
        (
            &webhook("    body: '{{ .Status'\n"),
            "5:11: notify.receivers[0].webhook.body: template: :1: unclosed action",
        ),
        (
            &webhook("    body: '{{ query \"up\" }}'\n"),
            "5:11: notify.receivers[0].webhook.body: template: :1: function \"query\" not defined",
        ),
        (
            &webhook("    headers: {X-A: '{{ end }}'}\n"),
            "5:20: notify.receivers[0].webhook.headers.X-A: template: :1: unexpected {{end}}",
        ),
        (
            &webhook("    headers: {Host: a}\n"),
            "5:15: notify.receivers[0].webhook.headers.Host: this header cannot be set here",
        ),
        (
            &webhook("    headers: {'a b': a}\n"),
            "5:15: notify.receivers[0].webhook.headers.a b: expected the name of a header",
        ),
        (
            &webhook("    boddy: a\n"),
            "5:5: notify.receivers[0].webhook.boddy: there is no such key; there are url, url_file",
        ),
        (
            &webhook("    basic_auth: {password: secret, password_file: a}\n"),
            "5:17: notify.receivers[0].webhook.basic_auth: password and password_file: only one",
        ),
        (
            "receivers: [{name: a, command: {path: siren}}]",
            "1:39: notify.receivers[0].command.path: expected an absolute path",
        ),
        (
            "receivers: [{name: a, command: {arguments: []}}]",
            "1:32: notify.receivers[0].command: path is missing",
        ),
        (
            &command("    arguments: [\"a\\0\"]\n"),
            "5:16: notify.receivers[0].command.arguments: an argument cannot have a NUL",
        ),
        (
            "receivers: [{name: a, heartbeat: {url: 'http://a', method: PUT}}]",
            "1:60: notify.receivers[0].heartbeat.method: expected GET, HEAD or POST",
        ),
        (
            "receivers: [{name: a, heartbeat: {url: 'http://a', interval: 0s}}]",
            "1:62: notify.receivers[0].heartbeat.interval: \"0s\" is zero",
        ),
        ("receiver: []", "1:1: notify.receiver: there is no such key; there are receivers"),
    ] {
        let error = read(text).expect_err(text).to_string();
        assert!(error.starts_with(said) && !error.contains("secret"), "{text}:\n{error}");
    }
}

#[test]
fn receivers_are_bounded() {
    let list = |count: usize| {
        let receiver = |number| format!("- {{name: r{number}, command: {{path: /a}}}}\n");
        format!("receivers:\n{}", (0..count).map(receiver).collect::<String>())
    };
    assert_eq!(read(&list(64)).map(|section| section.receivers.len()), Ok(64));
    let error = read(&list(65)).expect_err("too many").to_string();
    assert_eq!(error, "66:3: notify.receivers: there are at most 64 receivers");
}

#[test]
fn a_file_has_a_url() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut section = read("receivers: [{name: a, webhook: {url_file: url}}]").expect("a section");
    section.set_directory(folder.path());
    let ReceiverKind::Webhook(webhook) = &section.receivers[0].kind else { panic!("no webhook") };
    let missing = webhook.url.read().expect_err("no file").to_string();
    assert!(missing.starts_with("url_file "), "{missing}");
    std::fs::write(folder.path().join("url"), " http://a/b\n").expect("a file");
    assert_eq!(webhook.url.read().expect("a URL").as_str(), "http://a/b");
    std::fs::write(folder.path().join("url"), "secret").expect("a file");
    let wrong = webhook.url.read().expect_err("no URL").to_string();
    assert_eq!(wrong, "expected a URL such as https://HOST/PATH");
}

proptest! {
    #[test]
    fn hostile_sections_do_no_harm(
        key in "(name|matchers|group_by|group_wait|webhook|command|heartbeat|[a-z]{1,5})",
        value in ".{0,30}",
    ) {
        let _ = read(&format!("receivers:\n- name: a\n  {key}: {value}\n"));
        let _ = read(&format!("receivers:\n- name: a\n  webhook: {{url: 'http://a', {key}: {value}}}\n"));
    }
}
