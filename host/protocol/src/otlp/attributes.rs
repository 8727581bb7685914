//! Formats values of attributes as text, as upstream does.

use super::proto::common::v1::AnyValue;
use super::proto::common::v1::any_value::Value;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;

/// Formats an attribute value for a label; an absent value becomes an empty text.
pub fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        None => String::new(),
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::BoolValue(is)) => is.to_string(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number_text(*number),
        Some(Value::BytesValue(bytes)) => STANDARD.encode(bytes),
        // JSON has neither NaN nor infinities; for these, upstream makes the whole value empty.
        Some(inside) => json(inside).unwrap_or_default(),
    }
}

/// Formats a bound or a quantile with the fewest digits that identify it, without an exponent.
pub fn bound_text(number: f64) -> String {
    match number {
        f64::INFINITY => "+Inf".into(),
        f64::NEG_INFINITY => "-Inf".into(),
        _ => number.to_string(),
    }
}

/// Formats a number as JavaScript does, except for the sign of zero.
fn number_text(number: f64) -> String {
    match number {
        f64::INFINITY => return "Infinity".into(),
        f64::NEG_INFINITY => return "-Infinity".into(),
        _ => {}
    }
    let size = number.abs();
    // JavaScript writes exponents outside of this range.
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        return if text.contains("e-") { text } else { text.replace('e', "e+") };
    }
    number.to_string()
}

/// Formats lists and nested attributes as JSON with sorted keys.
fn json(value: &Value) -> Option<String> {
    Some(match value {
        Value::StringValue(text) => quoted(text),
        Value::BoolValue(is) => is.to_string(),
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => number.is_finite().then(|| number_text(*number))?,
        Value::BytesValue(bytes) => quoted(&STANDARD.encode(bytes)),
        Value::ArrayValue(list) => {
            let parts: Option<Vec<String>> = list.values.iter().map(json_of).collect();
            format!("[{}]", parts?.join(","))
        }
        Value::KvlistValue(list) => {
            let mut sorted = BTreeMap::new();
            for pair in &list.values {
                sorted.insert(&pair.key, pair.value.as_ref());
            }
            let part = |(key, value): (&String, Option<&AnyValue>)| {
                let value = value.map_or(Some("null".into()), json_of)?;
                Some(format!("{}:{value}", quoted(key)))
            };
            let parts: Option<Vec<String>> = sorted.into_iter().map(part).collect();
            format!("{{{}}}", parts?.join(","))
        }
    })
}

fn json_of(value: &AnyValue) -> Option<String> {
    value.value.as_ref().map_or(Some("null".into()), json)
}

fn quoted(text: &str) -> String {
    // Upstream's encoder escapes these characters, which old JavaScript took for line ends.
    let quoted = serde_json::Value::from(text).to_string();
    quoted.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::super::proto::common::v1::{ArrayValue, KeyValue, KeyValueList};
    use super::*;

    fn any(value: Value) -> AnyValue {
        AnyValue { value: Some(value) }
    }

    #[test]
    fn values_are_written_as_upstream_writes_them() {
        for (value, wanted) in [
            (Value::StringValue("a<b".into()), "a<b"),
            (Value::BoolValue(true), "true"),
            (Value::IntValue(-7), "-7"),
            (Value::DoubleValue(1.0), "1"),
            (Value::DoubleValue(-0.0), "-0"),
            (Value::DoubleValue(0.1), "0.1"),
            (Value::DoubleValue(1e20), "100000000000000000000"),
            (Value::DoubleValue(1.5e21), "1.5e+21"),
            (Value::DoubleValue(1e-7), "1e-7"),
            (Value::DoubleValue(1e-6), "0.000001"),
            (Value::DoubleValue(f64::NAN), "NaN"),
            (Value::DoubleValue(f64::INFINITY), "Infinity"),
            (Value::BytesValue(vec![1, 2, 255]), "AQL/"),
            (Value::ArrayValue(ArrayValue { values: vec![] }), "[]"),
        ] {
            assert_eq!(text(Some(&any(value.clone()))), wanted, "{value:?}");
        }
        assert_eq!(text(None), "");
        assert_eq!(text(Some(&AnyValue { value: None })), "");
    }

    #[test]
    fn what_is_inside_is_json_with_sorted_keys() {
        let pair = |key: &str, value| KeyValue { key: key.into(), value };
        let list = ArrayValue {
            values: vec![
                any(Value::StringValue("a\"<\n".into())),
                any(Value::DoubleValue(2.0)),
                AnyValue { value: None },
            ],
        };
        let nested = Value::KvlistValue(KeyValueList {
            values: vec![
                pair("z", Some(any(Value::IntValue(1)))),
                pair("b", Some(any(Value::ArrayValue(list)))),
                pair("a", None),
            ],
        });
        assert_eq!(text(Some(&any(nested))), r#"{"a":null,"b":["a\"<\n",2,null],"z":1}"#);
        let lost = ArrayValue { values: vec![any(Value::DoubleValue(f64::NAN))] };
        assert_eq!(text(Some(&any(Value::ArrayValue(lost)))), "");
    }

    #[test]
    fn bounds_have_no_exponent() {
        for (bound, wanted) in
            [(0.005, "0.005"), (10.0, "10"), (1e21, "1000000000000000000000"), (1e-7, "0.0000001")]
        {
            assert_eq!(bound_text(bound), wanted);
        }
        assert_eq!(bound_text(f64::INFINITY), "+Inf");
    }
}
