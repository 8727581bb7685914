//! Prometheus' text format 0.0.4: untyped samples, and histograms with custom bounds.
//!
//! Source: `expfmt/text_create.go` and `model/metric.go` in prometheus/common.

use super::{escaped, is_legacy};
use std::borrow::Cow;
use tidepool_exposition::NameEscaping;
use tidepool_protocol::prom::newest::{FloatHistogram, Newest, NewestValue};

/// Formats series sorted by name. Exponential histograms are left out, as the format has none.
pub fn text(series: &[Newest], external: &[(String, String)], escaping: NameEscaping) -> String {
    let mut out = String::new();
    let mut family = None;
    for one in series {
        let histogram = match &one.value {
            NewestValue::Float(_) => None,
            NewestValue::Histogram(histogram) if histogram.is_custom() => Some(histogram),
            NewestValue::Histogram(_) => continue,
        };
        let kind = if histogram.is_some() { "histogram" } else { "untyped" };
        let name = escaped(escaping, &one.name);
        // Prometheus' parser needs the type once, before the first line of a family.
        if family.replace((one.name.as_str(), kind)) != Some((one.name.as_str(), kind)) {
            let name = if is_legacy(&name) { name.to_string() } else { quoted(&name) };
            out += &format!("# TYPE {name} {kind}\n");
        }
        let labels: Vec<(Cow<'_, str>, &str)> = super::labels(&one.labels, external)
            .map(|(name, value)| (escaped(escaping, name), value))
            .collect();
        let line = Line { name: &name, labels: &labels, time_ms: one.time_ms };
        match (&one.value, histogram) {
            (_, Some(histogram)) => line.put_histogram(histogram, &mut out),
            (NewestValue::Float(value), _) => line.put("", None, *value, &mut out),
            _ => {}
        }
    }
    out
}

/// Fields common to all lines of a series.
struct Line<'a> {
    name: &'a str,
    labels: &'a [(Cow<'a, str>, &'a str)],
    time_ms: i64,
}

impl Line<'_> {
    fn put_histogram(&self, histogram: &FloatHistogram, out: &mut String) {
        let buckets = histogram.classic_buckets();
        // The text format needs the bucket `+Inf`, which native histograms do not store.
        for (bound, below) in buckets.into_iter().chain([(f64::INFINITY, histogram.count)]) {
            self.put("_bucket", Some(bound), below, out);
        }
        self.put("_sum", None, histogram.sum, out);
        self.put("_count", None, histogram.count, out);
    }

    fn put(&self, suffix: &str, bound: Option<f64>, value: f64, out: &mut String) {
        let name = format!("{}{suffix}", self.name);
        let mut pairs = Vec::with_capacity(self.labels.len() + 2);
        let is_legacy_name = is_legacy(&name);
        // Such a name is written in quotes among the labels (UTF-8 syntax of Prometheus 3).
        if !is_legacy_name {
            pairs.push(quoted(&name));
        }
        for (name, value) in self.labels {
            let name = if is_legacy(name) { name.to_string() } else { quoted(name) };
            pairs.push(format!("{name}={}", quoted(value)));
        }
        if let Some(bound) = bound {
            pairs.push(format!("le=\"{}\"", number(bound)));
        }
        if is_legacy_name {
            *out += &name;
        }
        if !pairs.is_empty() {
            *out += &format!("{{{}}}", pairs.join(","));
        }
        *out += &format!(" {} {}\n", number(value), self.time_ms);
    }
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
    format!("\"{text}\"")
}

/// Formats a number like Go's verb `g`: with an exponent of two digits below 1e-4 and from 1e6 on.
fn number(value: f64) -> String {
    let text = format!("{value:e}");
    match text.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i32>())) {
        _ if value.is_nan() => "NaN".to_owned(),
        _ if value == f64::INFINITY => "+Inf".to_owned(),
        _ if value == f64::NEG_INFINITY => "-Inf".to_owned(),
        _ if value == 0.0 => "0".to_owned(),
        Some((digits, Ok(exponent))) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_go() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (-1.0, "-1"),
            (100_000.0, "100000"),
            (999_999.0, "999999"),
            (1e6, "1e+06"),
            (12_345_678.0, "1.2345678e+07"),
            (1e21, "1e+21"),
            (0.000_123_45, "0.00012345"),
            (1e-5, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (1.5e300, "1.5e+300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    fn one(name: &str, labels: &[(&str, &str)], value: NewestValue) -> Newest {
        let labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Newest { name: name.into(), labels: labels.collect(), time_ms: 7, value }
    }

    #[test]
    fn families_have_one_type_each_and_names_are_escaped() {
        let custom = FloatHistogram {
            count: 6.5,
            sum: 3.25,
            schema: -53,
            positive_spans: vec![tidepool_protocol::prom::native::BucketSpan {
                offset: 0,
                length: 3,
            }],
            positive_counts: vec![1.0, 2.0, 3.5],
            custom_values: vec![0.25, 4.0],
            ..FloatHistogram::default()
        };
        let exponential = FloatHistogram { schema: 3, ..custom.clone() };
        let histogram = |histogram| NewestValue::Histogram(Box::new(histogram));
        let series = [
            one("a.b", &[("x y", "1")], NewestValue::Float(1.5)),
            one("h", &[], histogram(custom)),
            one("n", &[], histogram(exponential)),
            one("up", &[("instance", "a"), ("job", "\"\\\n")], NewestValue::Float(1.0)),
            one("up", &[("instance", "b")], NewestValue::Float(f64::NAN)),
        ];
        let external =
            [("instance".to_owned(), String::new()), ("node".to_owned(), "e".to_owned())];
        let rest = "# TYPE h histogram\n\
            h_bucket{instance=\"\",node=\"e\",le=\"0.25\"} 1 7\n\
            h_bucket{instance=\"\",node=\"e\",le=\"4\"} 3 7\n\
            h_bucket{instance=\"\",node=\"e\",le=\"+Inf\"} 6.5 7\n\
            h_sum{instance=\"\",node=\"e\"} 3.25 7\n\
            h_count{instance=\"\",node=\"e\"} 6.5 7\n\
            # TYPE up untyped\n\
            up{instance=\"a\",job=\"\\\"\\\\\\n\",node=\"e\"} 1 7\n\
            up{instance=\"b\",node=\"e\"} NaN 7\n";
        let escaped = "# TYPE a_b untyped\na_b{x_y=\"1\",instance=\"\",node=\"e\"} 1.5 7\n";
        assert_eq!(text(&series, &external, NameEscaping::Underscores), format!("{escaped}{rest}"));
        let as_is = "# TYPE \"a.b\" untyped\n\
            {\"a.b\",\"x y\"=\"1\",instance=\"\",node=\"e\"} 1.5 7\n";
        assert_eq!(text(&series, &external, NameEscaping::AllowUtf8), format!("{as_is}{rest}"));
    }
}
