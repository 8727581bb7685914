//! Translates the exemplars of data points.

use super::attributes;
use super::proto::metrics::v1::Exemplar as OtlpExemplar;
use super::proto::metrics::v1::exemplar::Value;
use crate::prom::rows::Exemplar;

/// Maximum number of characters in an exemplar's labels. Beyond it, the attributes are left out
/// (OpenMetrics 1.0, section "Exemplars").
const LABELS_CHARS_MAX: usize = 128;

/// Translates the exemplars of a data point. Returns none for a stale point. Skips exemplars
/// without a value. An exemplar without a time gets the time of the point.
pub fn translate(exemplars: &[OtlpExemplar], flags: u32, point_ms: i64) -> Vec<Exemplar> {
    let exemplars = if super::is_stale(flags) { &[] } else { exemplars };
    exemplars.iter().filter_map(|exemplar| one(exemplar, point_ms)).collect()
}

fn one(exemplar: &OtlpExemplar, point_ms: i64) -> Option<Exemplar> {
    let value = match exemplar.value? {
        Value::AsDouble(value) => value,
        Value::AsInt(value) => value as f64,
    };
    let mut labels = Vec::new();
    for (name, id) in [("trace_id", &exemplar.trace_id), ("span_id", &exemplar.span_id)] {
        // OTLP defines an id of zeros as invalid.
        if id.iter().any(|byte| *byte != 0) {
            labels.push((name.to_owned(), hex(id)));
        }
    }
    let own = exemplar.filtered_attributes.iter();
    let own = own.map(|pair| (pair.key.clone(), attributes::text(pair.value.as_ref())));
    let own: Vec<(String, String)> = own.collect();
    let chars = |pairs: &[(String, String)]| -> usize {
        pairs.iter().map(|(name, value)| name.chars().count() + value.chars().count()).sum()
    };
    // The ids are always kept, because they identify the trace.
    if chars(&labels) + chars(&own) <= LABELS_CHARS_MAX {
        labels.extend(own);
    }
    labels.sort();
    let timestamp_ms = match super::millis(exemplar.time_unix_nano) {
        0 => point_ms,
        timestamp_ms => timestamp_ms,
    };
    Some(Exemplar { labels, value, timestamp_ms })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::attributes;
    use super::*;

    #[test]
    fn long_attributes_are_left_out_but_not_the_trace() {
        let with = |attribute: &str| OtlpExemplar {
            filtered_attributes: attributes(&[("user", attribute)]),
            time_unix_nano: 5_999_999,
            span_id: vec![0; 8],
            trace_id: vec![0xab; 16],
            value: Some(Value::AsInt(7)),
        };
        let trace = ("trace_id".to_owned(), "ab".repeat(16));
        let user = |text: &str| ("user".to_owned(), text.to_owned());
        let fits = "x".repeat(LABELS_CHARS_MAX - 8 - 32 - 4);
        let too_long = format!("{fits}x");
        let nothing = OtlpExemplar { value: None, ..with("") };
        let no_time = OtlpExemplar { time_unix_nano: 0, ..with("x") };
        let got = translate(&[with(&fits), with(&too_long), nothing, no_time], 0, 9);
        let wanted = [
            (vec![trace.clone(), user(&fits)], 5),
            (vec![trace.clone()], 5),
            (vec![trace, user("x")], 9),
        ];
        let wanted = wanted.map(|(labels, ms)| Exemplar { labels, value: 7.0, timestamp_ms: ms });
        assert_eq!(got, wanted);
        assert_eq!(translate(&[with("x")], 1, 9), []);
    }
}
