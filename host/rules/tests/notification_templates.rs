//! Templates of notifications against Alertmanager's `template`, whose results
//! `cases/notifications.tsv` holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidepool_rules::template::{
    AlertData, Limits, NotificationData, NotificationView, Reason, Template, TemplateError,
};

fn map(pairs: &[(&str, &str)]) -> Arc<BTreeMap<String, String>> {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Arc::new(pairs.collect())
}

/// 2020-02-29T23:59:58.5Z
const START_MS: i64 = 1_583_020_798_500;
/// 2020-03-01T01:02:03Z
const END_MS: i64 = 1_583_024_523_000;

fn alert(labels: &[(&str, &str)], annotations: &[(&str, &str)], fingerprint: &str) -> AlertData {
    AlertData {
        status: "firing",
        labels: map(labels),
        annotations: map(annotations),
        starts_at_ms: START_MS,
        ends_at_ms: None,
        generator_url: "http://testhost:9090/graph?g0.expr=x&g0.tab=1".into(),
        fingerprint: fingerprint.into(),
        id: "0123456789abcdef".into(),
        is_late: false,
        value: 1.5,
    }
}

/// The notification of `tests/peers/notifications`.
fn view() -> NotificationView {
    let runbook = ("runbook", "http://wiki/x");
    let first = alert(
        &[("alertname", "DiskFull"), ("job", "node"), ("instance", "a:9100"), ("severity", "page")],
        &[("summary", "\"a\" <is> full & more\nsecond\u{2028}line \u{e9}\u{1}"), runbook],
        "a562641751a2cf03",
    );
    let second = AlertData {
        status: "resolved",
        ends_at_ms: Some(END_MS),
        is_late: true,
        value: f64::NAN,
        ..alert(
            &[
                ("alertname", "DiskFull"),
                ("job", "node"),
                ("instance", "b:9100"),
                ("severity", "ticket"),
            ],
            &[("summary", "b is full"), runbook],
            "9bbafd7a7c4a1909",
        )
    };
    let third = AlertData {
        starts_at_ms: END_MS,
        ..alert(
            &[("alertname", "DiskFull"), ("job", "node"), ("Zone", "eu"), ("instance", "c:9100")],
            &[runbook],
            "8e7b1b4d06e89f03",
        )
    };
    let common = map(&[("alertname", "DiskFull"), ("job", "node")]);
    NotificationView::new(NotificationData {
        receiver: "phone".into(),
        status: "firing",
        reason: "first notification",
        group_labels: common.clone(),
        common_labels: common,
        common_annotations: map(&[runbook]),
        external_url: "http://testhost:9093/path".into(),
        alerts: vec![first, second, third],
        now_ms: END_MS + 90_000,
    })
}

fn expanded(text: &str) -> Result<String, TemplateError> {
    Template::of_notification("", text)?.expand_notification(&view(), &Limits::default())
}

#[test]
fn templates_expand_as_alertmanagers() {
    let (mut cases, mut failures) = (0, Vec::new());
    let table = include_str!("cases/notifications.tsv");
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (text, expected) = line.split_once('\t').expect("two fields");
        let text: String = serde_json::from_str(text).expect("a text");
        let (sign, expected) = expected.split_at(1);
        let expected: String = serde_json::from_str(expected).expect("a text");
        let found = match expanded(&text) {
            Ok(output) => format!("={output}"),
            // What the whole error says before it is Prometheus' text.
            Err(TemplateError::Expansion(error)) => format!("!{error}"),
            Err(error) => format!("!{error}"),
        };
        cases += 1;
        if found != format!("{sign}{expected}") {
            failures.push(format!("{text}\n  ours {found}\n  Go   {sign}{expected}"));
        }
    }
    assert!(cases > 80, "{cases} cases");
    assert!(failures.is_empty(), "{} of {cases}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn alerts_have_fields_of_our_own() {
    for (text, expected) in [
        ("{{ range .Alerts }}{{ .ID }} {{ .Late }} {{ .Value }};{{ end }}", {
            "0123456789abcdef false 1.5;0123456789abcdef true NaN;0123456789abcdef false 1.5;"
        }),
        (
            "{{ with index .Alerts 0 }}{{ .Value | humanize }} {{ printf \"%.2f\" .Value }}{{ end }}",
            { "1.5 1.50" },
        ),
        ("{{ externalURL }} {{ pathPrefix }}", "http://testhost:9093/path /path"),
        ("{{ since (index .Alerts 2).StartsAt }} {{ now | date \"15:04:05\" }}", "1m30s 01:03:33"),
        // A value is a text, as JSON has no NaN.
        ("{{ toJson (index (slice .Alerts 1 2) 0) }}", {
            "{\"status\":\"resolved\",\"labels\":{\"alertname\":\"DiskFull\",\"instance\":\"b:9100\",\
             \"job\":\"node\",\"severity\":\"ticket\"},\"annotations\":{\"runbook\":\
             \"http://wiki/x\",\"summary\":\"b is full\"},\"startsAt\":\
             \"2020-02-29T23:59:58.5Z\",\"endsAt\":\"2020-03-01T01:02:03Z\",\"generatorURL\":\
             \"http://testhost:9090/graph?g0.expr=x\\u0026g0.tab=1\",\"fingerprint\":\
             \"9bbafd7a7c4a1909\",\"id\":\"0123456789abcdef\",\"late\":true,\"value\":\"NaN\"}"
        }),
    ] {
        assert_eq!(expanded(text).as_deref(), Ok(expected), "{text}");
    }
    let error = expanded("{{ toJson (index .Alerts 1).Value }}").expect_err("no number");
    assert!(error.to_string().ends_with("json: unsupported value: NaN"), "{error}");
}

/// The functions of one kind of template are unknown to the other.
#[test]
fn dialects_differ() {
    for text in ["{{ toJson 1 }}", "{{ join \",\" nil }}", "{{ dict }}", "{{ stringSlice }}"] {
        assert!(Template::of_notification("", text).is_ok(), "{text}");
        let error = Template::of_alert("a", text).expect_err(text).to_string();
        assert!(error.contains("not defined"), "{error}");
    }
    for text in ["{{ query \"up\" }}", "{{ args 1 }}", "{{ first nil }}"] {
        assert!(Template::of_alert("a", text).is_ok(), "{text}");
        assert!(Template::of_notification("", text).is_err(), "{text}");
    }
}

#[test]
fn expansions_are_bounded() {
    let steps = Reason::Steps { steps_max: 1_000_000 };
    let output = Reason::Output { bytes_max: 256 * 1024 };
    let nesting = Reason::Nesting { nesting_max: 50 };
    for (text, expected) in [
        ("{{ $l := list }}{{ range 1000000 }}{{ $l = append $l 1 }}{{ end }}", &steps),
        ("{{ range 1000000 }}{{ $x := $.CommonLabels.SortedPairs }}{{ end }}", &steps),
        ("{{ $l := list }}{{ range 1000 }}{{ $l = list $l }}{{ end }}", &nesting),
        ("{{ $l := list }}{{ range 1000 }}{{ $l = append nil $l }}{{ end }}", &nesting),
        ("{{ $l := dict }}{{ range 1000 }}{{ $l = dict \"a\" $l }}{{ end }}", &nesting),
        ("{{ $l := list 1 }}{{ range 45 }}{{ $l = list $l $l }}{{ end }}{{ $l }}", &output),
        ("{{ $l := list 1 }}{{ range 45 }}{{ $l = list $l $l }}{{ end }}{{ toJson $l }}", &output),
        ("{{ $x := printf \"%200000s\" \"\" }}{{ join $x (stringSlice \"\" \"\" \"\") }}", &output),
        ("{{ toJson (printf \"%0250000d\" 1 | reReplaceAll \"0\" \"<\") }}", &output),
    ] {
        match expanded(text) {
            Err(TemplateError::Expansion(error)) => assert_eq!(error.reason, *expected, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
