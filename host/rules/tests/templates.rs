//! Templates of alerts against upstream's `template`, whose results `cases/templates.tsv` holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidepool_rules::template::{
    Data, Limits, Sample, SampleValue, Source, Template, TemplateError,
};

/// The server of `tests/peers/templates`.
struct Peer;

fn map(pairs: &[(&str, &str)]) -> Arc<BTreeMap<String, String>> {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Arc::new(pairs.collect())
}

fn histogram() -> SampleValue {
    SampleValue::Histogram("{count:3, sum:10}".into())
}

impl Source for Peer {
    fn query(&self, expression: &str) -> Result<Vec<Sample>, String> {
        let sample = |value, labels: &[(&str, &str)]| Sample { labels: map(labels), value };
        Ok(match expression {
            "none" => Vec::new(),
            "one" => vec![sample(SampleValue::Float(1.5), &[])],
            "histogram" => vec![sample(histogram(), &[])],
            "up" => {
                let b = [("__name__", "up"), ("instance", "b"), ("__value__", "text")];
                let a = [("__name__", "up"), ("instance", "a")];
                vec![
                    sample(SampleValue::Float(21.0), &b),
                    sample(SampleValue::Float(1e7), &a),
                    sample(SampleValue::Float(0.0), &[("__name__", "up"), ("job", "x")]),
                ]
            }
            _ => return Err("no such query".into()),
        })
    }

    fn time_ms(&self) -> i64 {
        1_353_755_652_000
    }
}

fn expanded(value: &str, text: &str) -> Result<String, TemplateError> {
    let data = Data {
        labels: map(&[
            ("alertname", "Test"),
            ("instance", "web-1.example.com:9100"),
            ("job", "node"),
            ("device", "/dev/sda1"),
            ("quoted", "a \"b\" <c> & 'd'"),
            ("unicode", "h\u{e9}llo w\u{f6}rld"),
            ("number", "0.25"),
            ("blank", ""),
        ]),
        external_labels: map(&[("region", "eu")]),
        external_url: "http://testhost:9090/path/prefix".into(),
        value: match value {
            "histogram" => histogram(),
            _ => SampleValue::Float(value.parse().expect("a float")),
        },
    };
    Template::of_alert("Test", text)?.expand(&data, &Peer, &Limits::default())
}

#[test]
fn templates_expand_as_upstreams() {
    let (mut cases, mut failures) = (0, Vec::new());
    let table = include_str!("cases/templates.tsv");
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [value, text, expected] = fields[..] else { panic!("{line}") };
        let text: String = serde_json::from_str(text).expect("a text");
        let (sign, expected) = expected.split_at(1);
        let expected: String = serde_json::from_str(expected).expect("a text");
        let found = match expanded(value, &text) {
            Ok(output) => format!("={output}"),
            // Upstream parses when it expands.
            Err(error @ TemplateError::Expansion(_)) => format!("!{error}"),
            Err(error) => format!("!error parsing template __alert_Test: {error}"),
        };
        cases += 1;
        if found != format!("{sign}{expected}") {
            failures.push(format!("{value} {text}\n  ours {found}\n  Go   {sign}{expected}"));
        }
    }
    assert!(cases > 300, "{cases} cases");
    assert!(failures.is_empty(), "{} of {cases}:\n{}", failures.len(), failures.join("\n"));
}
