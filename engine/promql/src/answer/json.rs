//! Answers in JSON, in the format of Prometheus' HTTP API.
//!
//! Source: prometheus/prometheus, `web/api/v1/json_codec.go`, `util/jsonutil`.

use super::AnswerKind;
use crate::model::{Histogram, Labels, Samples};

/// Writes the fields `resultType` and `result`, one series at a time.
#[derive(Clone, Copy, Debug)]
pub struct Json {
    kind: AnswerKind,
    is_first: bool,
}

impl Json {
    /// Writes the beginning of the fields. The caller has written an opening brace.
    pub fn begin(kind: AnswerKind, out: &mut Vec<u8>) -> Json {
        out.extend_from_slice(b"\"resultType\":\"");
        out.extend_from_slice(kind.name().as_bytes());
        out.extend_from_slice(b"\",\"result\":");
        if matches!(kind, AnswerKind::Vector | AnswerKind::Matrix) {
            out.push(b'[');
        }
        Json { kind, is_first: true }
    }

    /// Writes a series of a vector or matrix, or the only sample of a scalar.
    pub fn series(&mut self, labels: &Labels, samples: &Samples, out: &mut Vec<u8>) {
        if self.kind == AnswerKind::Scalar {
            if let Some(point) = samples.floats.first() {
                scalar(point.time_ms, &tidepool_model::number::plain(point.value), out);
            }
            return;
        }
        if !std::mem::take(&mut self.is_first) {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"metric\":{");
        for (i, (name, value)) in labels.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            string(name, out);
            out.push(b':');
            string(value, out);
        }
        out.push(b'}');
        match self.kind {
            AnswerKind::Matrix => matrix_samples(samples, out),
            _ => vector_sample(samples, out),
        }
        out.push(b'}');
    }

    /// Writes a string that is the whole answer.
    pub fn text(&mut self, time_ms: i64, text: &str, out: &mut Vec<u8>) {
        scalar(time_ms, text, out);
    }

    /// Writes the end of the fields; the caller closes the brace.
    pub fn end(self, out: &mut Vec<u8>) {
        if matches!(self.kind, AnswerKind::Vector | AnswerKind::Matrix) {
            out.push(b']');
        }
    }
}

/// Writes a comma and a list such as `warnings`, or nothing if there are no messages.
pub fn messages(name: &str, messages: &[String], out: &mut Vec<u8>) {
    if messages.is_empty() {
        return;
    }
    out.push(b',');
    string(name, out);
    out.extend_from_slice(b":[");
    for (i, text) in messages.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        string(text, out);
    }
    out.push(b']');
}

fn scalar(time_ms: i64, text: &str, out: &mut Vec<u8>) {
    out.push(b'[');
    // Upstream formats the time of a scalar as any float, unlike times of samples.
    out.extend_from_slice(tidepool_model::number::plain(time_ms as f64 / 1000.0).as_bytes());
    out.push(b',');
    string(text, out);
    out.push(b']');
}

fn vector_sample(samples: &Samples, out: &mut Vec<u8>) {
    if let Some(point) = samples.histograms.first() {
        out.extend_from_slice(b",\"histogram\":");
        histogram_point(point.time_ms, &point.histogram, out);
    } else if let Some(point) = samples.floats.first() {
        out.extend_from_slice(b",\"value\":");
        float_point(point.time_ms, point.value, out);
    }
}

fn matrix_samples(samples: &Samples, out: &mut Vec<u8>) {
    for (i, point) in samples.floats.iter().enumerate() {
        out.extend_from_slice(if i == 0 { b",\"values\":[" } else { b"," });
        float_point(point.time_ms, point.value, out);
    }
    if !samples.floats.is_empty() {
        out.push(b']');
    }
    for (i, point) in samples.histograms.iter().enumerate() {
        out.extend_from_slice(if i == 0 { b",\"histograms\":[" } else { b"," });
        histogram_point(point.time_ms, &point.histogram, out);
    }
    if !samples.histograms.is_empty() {
        out.push(b']');
    }
}

fn float_point(time_ms: i64, value: f64, out: &mut Vec<u8>) {
    out.push(b'[');
    tidepool_model::number::push_seconds(time_ms, out);
    out.push(b',');
    quoted(value, out);
    out.push(b']');
}

fn quoted(value: f64, out: &mut Vec<u8>) {
    out.push(b'"');
    tidepool_model::number::push_json(value, out);
    out.push(b'"');
}

fn histogram_point(time_ms: i64, histogram: &Histogram, out: &mut Vec<u8>) {
    out.push(b'[');
    tidepool_model::number::push_seconds(time_ms, out);
    out.extend_from_slice(b",{\"count\":");
    quoted(histogram.count, out);
    out.extend_from_slice(b",\"sum\":");
    quoted(histogram.sum, out);
    let mut is_first = true;
    for bucket in histogram.buckets().filter(|bucket| bucket.count != 0.0) {
        out.extend_from_slice(match std::mem::take(&mut is_first) {
            true => b",\"buckets\":[[",
            false => b",[",
        });
        // Upstream's codes of open and closed bounds, from `MarshalHistogram`.
        out.push(match (bucket.has_lower, bucket.has_upper) {
            (false, true) => b'0',
            (true, false) => b'1',
            (false, false) => b'2',
            (true, true) => b'3',
        });
        for number in [bucket.lower, bucket.upper, bucket.count] {
            out.push(b',');
            quoted(number, out);
        }
        out.push(b']');
    }
    if !is_first {
        out.push(b']');
    }
    out.extend_from_slice(b"}]");
}

pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            // Text is UTF-8 already, so bytes from 0x80 on pass.
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(DIGITS[usize::from(byte >> 4)]);
                out.push(DIGITS[usize::from(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FloatPoint, HistogramPoint, Span};

    fn written(kind: AnswerKind, all: &[(Labels, Samples)]) -> String {
        let mut out = Vec::new();
        let mut json = Json::begin(kind, &mut out);
        for (labels, samples) in all {
            json.series(labels, samples, &mut out);
        }
        json.end(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn floats(points: &[(i64, f64)]) -> Samples {
        let point = |(time_ms, value): &(i64, f64)| FloatPoint { time_ms: *time_ms, value: *value };
        Samples { floats: points.iter().map(point).collect(), ..Samples::default() }
    }

    fn histogram() -> Samples {
        // From the comment on upstream's `MarshalHistogram`: schema 0, zero bucket of 0.25.
        let histogram = Histogram {
            zero_threshold: 0.25,
            zero_count: 3.0,
            count: 42.0,
            sum: 34593.34,
            positive_spans: vec![Span { offset: -1, length: 2 }, Span { offset: 1, length: 2 }],
            positive_buckets: vec![12.0, 21.0, 6.0, 0.0],
            ..Histogram::default()
        };
        let point = HistogramPoint { time_ms: 1, histogram: histogram.into() };
        Samples { histograms: vec![point], ..Samples::default() }
    }

    #[test]
    fn a_vector_has_one_sample_a_series() {
        let labels = Labels::new([("__name__", "up"), ("job", "a\"\\\n\u{1}é")]);
        let all = [(labels, floats(&[(1435781451781, 1.234)])), (Labels::default(), histogram())];
        let expected = concat!(
            r#""resultType":"vector","result":["#,
            r#"{"metric":{"__name__":"up","job":"a\"\\\n\u0001é"},"#,
            r#""value":[1435781451.781,"1.234"]},"#,
            r#"{"metric":{},"histogram":[0.001,{"count":"42","sum":"34593.34","buckets":["#,
            r#"[3,"-0.25","0.25","3"],[0,"0.25","0.5","12"],[0,"0.5","1","21"],[0,"2","4","6"]"#,
            r#"]}]}]"#
        );
        assert_eq!(written(AnswerKind::Vector, &all), expected);
    }

    #[test]
    fn a_matrix_has_lists_of_both_kinds() {
        let points = [(0, 1.0), (1500, f64::NAN), (-1050, 1e21), (2000, -2.5e-7)];
        let mut samples = floats(&points);
        samples.histograms = histogram().histograms;
        samples.histograms[0].histogram = Histogram::default().into();
        let expected = concat!(
            r#""resultType":"matrix","result":[{"metric":{},"values":[[0,"1"],[1.500,"NaN"],"#,
            r#"[-1.050,"1e+21"],[2,"-2.5e-07"]],"histograms":[[0.001,{"count":"0","sum":"0"}]]}]"#
        );
        assert_eq!(written(AnswerKind::Matrix, &[(Labels::default(), samples)]), expected);
        assert_eq!(written(AnswerKind::Matrix, &[]), r#""resultType":"matrix","result":[]"#);
    }

    #[test]
    fn a_scalar_is_a_pair() {
        let all = [(Labels::default(), floats(&[(1500, 1e21)]))];
        let expected = r#""resultType":"scalar","result":[1.5,"1000000000000000000000"]"#;
        assert_eq!(written(AnswerKind::Scalar, &all), expected);
        let mut out = Vec::new();
        let mut json = Json::begin(AnswerKind::String, &mut out);
        json.text(2000, "a<b", &mut out);
        json.end(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#""resultType":"string","result":[2,"a<b"]"#);
    }

    #[test]
    fn messages_stand_behind_a_comma() {
        let mut out = Vec::new();
        messages("warnings", &[], &mut out);
        messages("infos", &["a".to_string(), "b".to_string()], &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#","infos":["a","b"]"#);
    }
}
