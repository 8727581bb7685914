//! Bodies and headers that templates make.

use super::*;
use tidepool_tests::receiver::Received;

const RULES: &str = "  - alert: Try\n    expr: vector(1)\n    \
                     labels: {severity: page, of: 'a \"b\" \\ ü'}\n    \
                     annotations: {summary: This is a try}\n";

/// The request of a notification at this path.
#[track_caller]
fn request(store: &Store, service: &Service, path: &str) -> Received {
    wait_for(store, path, || {
        service.receiver.received().into_iter().find(|request| request.path == path)
    })
}

#[test]
fn templates_make_bodies_and_headers() {
    let directory = tempfile::tempdir().expect("a directory");
    let service = Service::start();
    let address = service.receiver.address();
    // The first two are those of the documentation.
    let receivers = format!(
        r#"  - name: phone
    group_wait: 0s
    webhook:
      url: http://{address}/phone
      headers:
        Title: '{{{{ .Status | toUpper }}}} {{{{ .CommonLabels.alertname }}}}'
        Priority: '{{{{ if eq .Status "firing" }}}}high{{{{ else }}}}default{{{{ end }}}}'
        Click: '{{{{ .ExternalURL }}}}'
      body: |-
        {{{{ range .Alerts }}}}{{{{ .StartsAt.Format "2 Jan 15:04" }}}}{{{{ if .Late }}}} (late){{{{ end }}}}: {{{{ .Annotations.summary }}}}
        {{{{ end }}}}
  - name: chat
    group_wait: 0s
    group_by: [alertname]
    webhook:
      url: http://{address}/chat
      body: '{{"text": {{{{ printf "%s: %s (%d)" .Status .CommonLabels.alertname (len .Alerts) | toJson }}}}}}'
  - name: put
    group_wait: 0s
    webhook:
      url: http://{address}/put
      method: PUT
      headers: {{X-Lines: "a\nb{{{{ .GroupLabels.none }}}}", Content-Type: text/x-mine}}
      body: '{{{{ range .Alerts }}}}{{{{ .Labels.of | toJson }}}} {{{{ .ID }}}}{{{{ end }}}}'
"#
    );
    let flags = ["--external-url=http://node7:9201/"];
    let store = start_with(directory.path(), RULES, &receivers, &flags);
    let phone = request(&store, &service, "/phone");
    let event = log(&store).remove(0);
    let began: jiff::Timestamp = event["time"].as_str().expect("a time").parse().expect("a time");
    let began = began.strftime("%-d %b %H:%M");
    assert_eq!(String::from_utf8_lossy(&phone.body), format!("{began}: This is a try\n"));
    assert_eq!((phone.method.as_str(), phone.header("title")), ("POST", Some("FIRING Try")));
    assert_eq!(phone.header("priority"), Some("high"));
    assert_eq!(
        phone.header("click").map(|url| url.trim_end_matches('/')),
        Some("http://node7:9201")
    );
    let kind = phone.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/plain"), "{kind}");

    let chat = request(&store, &service, "/chat");
    let body: Value = serde_json::from_slice(&chat.body).expect("JSON");
    assert_eq!(body, serde_json::json!({"text": "firing: Try (1)"}));
    assert_eq!(chat.header("content-type"), Some("application/json"));

    let put = request(&store, &service, "/put");
    assert_eq!(put.method, "PUT");
    assert_eq!(put.header("content-type"), Some("text/x-mine"));
    // A label that a group lacks is empty, and a newline does not begin another header.
    assert_eq!(put.header("x-lines"), Some("a b"));
    let expected = format!(r#""a \"b\" \\ ü" {}"#, id(&event));
    assert_eq!(String::from_utf8_lossy(&put.body), expected);
}

/// A notification that cannot be made is told of, and holds no other receiver up.
#[test]
fn a_template_that_fails_names_its_key_and_is_felt_by_no_other() {
    use super::super::scrape::api;
    let directory = tempfile::tempdir().expect("a directory");
    let (service, well) = (Service::start(), Service::start());
    let address = service.receiver.address();
    let wrong = "body: '{{ (index .Alerts 7).ID }}'";
    let receivers = format!(
        "  - {{name: wrong, group_wait: 0s, webhook: {{url: 'http://{address}/', {wrong}}}}}\n{}",
        well.config("well")
    );
    let store = start_with(directory.path(), RULES, &receivers, &[]);
    let error = wait_for(&store, "the mistake", || {
        let receivers = api(&store.server, "alerts/receivers")["receivers"].clone();
        let of = receivers.as_array()?.iter().find(|one| one["name"] == "wrong")?.clone();
        of["lastError"].as_str().map(str::to_owned)
    });
    assert!(error.contains("body"), "{error}");
    wait_for(&store, "the other receiver", || (!well.told().is_empty()).then_some(()));
    assert!(service.receiver.received().is_empty());
}
