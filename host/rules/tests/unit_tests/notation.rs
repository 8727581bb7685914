//! Texts are read as `ParseSeriesDesc` reads them: `notation.json` has what that says.

use serde_json::Value;
use std::collections::BTreeMap;
use tidepool_model::number::general;
use tidepool_rules::unit_test::notation::{Item, series};

/// Texts that we refuse and upstream accepts.
const STRICTER: [&str; 3] = [
    // Upstream takes its last 32 bits.
    "m {{schema:99999999999}}",
    r#"foo{a="1",b="2",a="3"} 1 2"#,
    r#"foo{a="1",b="2",a="3"}"#,
];

#[test]
fn texts_are_read_as_upstream_reads_them() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("notation.json")).expect("cases");
    assert!(cases.len() > 300);
    let mut wrong = Vec::new();
    for case in &cases {
        let text = case["text"].as_str().expect("a text");
        let found = series(text);
        let expected = case["valid"].as_bool().expect("a verdict");
        let is_right = match &found {
            Err(_) => STRICTER.contains(&text) == expected,
            Ok(_) if !expected => false,
            Ok((labels, values)) => {
                let expected: BTreeMap<String, String> =
                    serde_json::from_value(case["labels"].clone()).unwrap_or_default();
                let items: Vec<String> = values.items().map(|item| shown(&item)).collect();
                let values: Vec<String> =
                    serde_json::from_value(case["values"].clone()).unwrap_or_default();
                *labels == expected && items == values
            }
        };
        if !is_right {
            let found = found.map(|(labels, values)| {
                let items: Vec<String> = values.items().map(|item| shown(&item)).collect();
                format!("{labels:?} {items:?}")
            });
            wrong.push(format!("{text:?}: {found:?}, upstream: {case}"));
        }
    }
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

fn shown(item: &Item) -> String {
    match item {
        Item::Omitted => "_".to_owned(),
        Item::Float(value) => general(*value),
        Item::Histogram(histogram) => histogram.to_string(),
    }
}
