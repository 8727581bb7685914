//! Prints results like promtool: as text (`String` in `model` of prometheus/common) or as JSON.

use super::go::escaped_json;
use super::value::{Bucket, Histogram, Metric, Number, Sample, Stream, TimeMs, Value};
use clap::ValueEnum;
use serde_json::json;
use std::collections::BTreeMap;
use tidepool_exposition::quoted;
use tidepool_model::number::{fixed, general, plain};

/// Name of the label whose value is the metric's name.
pub const NAME: &str = "__name__";

/// How answers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines of text
    Promql,
    /// One line of JSON
    Json,
}

impl Format {
    /// Formats a query's result, followed by a line feed.
    pub fn value(self, value: &mut Value) -> String {
        match self {
            Format::Promql => value_text(value) + "\n",
            Format::Json => json_line(&value_json(value)),
        }
    }

    pub fn series(self, series: &[Metric]) -> String {
        match self {
            Format::Promql => lines(series.iter().map(|labels| label_set(&labels.0))),
            Format::Json => {
                json_line(&json!(series.iter().map(|labels| &labels.0).collect::<Vec<_>>()))
            }
        }
    }

    pub fn label_values(self, values: &[String]) -> String {
        match self {
            Format::Promql => lines(values.iter().cloned()),
            Format::Json => json_line(&json!(values)),
        }
    }
}

fn lines(rows: impl Iterator<Item = String>) -> String {
    rows.map(|row| row + "\n").collect()
}

fn json_line(json: &serde_json::Value) -> String {
    escaped_json(&json.to_string()) + "\n"
}

fn joined(rows: impl Iterator<Item = String>, between: &str) -> String {
    rows.collect::<Vec<_>>().join(between)
}

fn value_text(value: &mut Value) -> String {
    match value {
        Value::Scalar((time, number)) => format!("scalar: {}", point(*time, plain(number.0))),
        Value::String((_, text)) => text.clone(),
        Value::Vector(vector) => joined(vector.iter().map(sample_text), "\n"),
        Value::Matrix(matrix) => {
            // promtool prints the series of a range in another order than the response.
            matrix.sort_by(|one, other| one.metric.printed_before(&other.metric));
            joined(matrix.iter().map(stream_text), "\n")
        }
    }
}

fn sample_text(sample: &Sample) -> String {
    let point = match (&sample.histogram, &sample.value) {
        (Some((time, histogram)), _) => point(*time, histogram_text(histogram)),
        (None, Some((time, number))) => point(*time, plain(number.0)),
        (None, None) => point(TimeMs(0), plain(0.0)),
    };
    format!("{} => {point}", metric(&sample.metric))
}

fn stream_text(stream: &Stream) -> String {
    let values = stream.values.iter().map(|(time, number)| point(*time, plain(number.0)));
    let histograms = stream.histograms.iter();
    let histograms = histograms.map(|(time, histogram)| point(*time, histogram_text(histogram)));
    format!("{} =>\n{}", metric(&stream.metric), joined(values.chain(histograms), "\n"))
}

fn point(time: TimeMs, value: String) -> String {
    format!("{value} @[{}]", seconds(time))
}

fn seconds(time: TimeMs) -> String {
    plain(time.0 as f64 / 1000.0)
}

fn histogram_text(histogram: &Histogram) -> String {
    let buckets = histogram.buckets.iter().flatten().map(bucket_text);
    let (count, sum) = (fixed(histogram.count.0, 6), fixed(histogram.sum.0, 6));
    format!("Count: {count}, Sum: {sum}, Buckets: [{}]", joined(buckets, " "))
}

fn bucket_text(Bucket(bounds, lower, upper, count): &Bucket) -> String {
    let begin = if matches!(bounds, 1 | 3) { '[' } else { '(' };
    let end = if matches!(bounds, 0 | 3) { ']' } else { ')' };
    format!("{begin}{},{}{end}:{}", general(lower.0), general(upper.0), plain(count.0))
}

/// Formats a metric as in an expression: its name, then its labels in braces.
pub fn metric(Metric(labels): &Metric) -> String {
    let name = labels.get(NAME);
    let others = labels.iter().filter(|(label, _)| label.as_str() != NAME);
    let mut pairs: Vec<String> = others.map(|(label, value)| pair(label, value)).collect();
    // Sorted by the whole text, so that `a1="…"` is before `a="…"`.
    pairs.sort();
    match (name, pairs.is_empty()) {
        (Some(name), true) => name.clone(),
        (name, _) => format!("{}{{{}}}", name.map_or("", |name| name), pairs.join(", ")),
    }
}

/// Formats all labels in braces, including the metric's name.
pub fn label_set(labels: &BTreeMap<String, String>) -> String {
    let pairs = labels.iter().map(|(label, value)| pair(label, value));
    format!("{{{}}}", joined(pairs, ", "))
}

fn pair(label: &str, value: &str) -> String {
    format!("{label}={}", quoted(value.as_bytes()))
}

fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Scalar((time, number)) => json!([time_json(*time), plain(number.0)]),
        Value::String((time, text)) => json!([time_json(*time), text]),
        Value::Vector(vector) => vector.iter().map(sample_json).collect(),
        Value::Matrix(matrix) => matrix.iter().map(stream_json).collect(),
    }
}

fn sample_json(sample: &Sample) -> serde_json::Value {
    let metric = &sample.metric.0;
    match (&sample.histogram, sample.value) {
        (Some(point), _) => json!({ "metric": metric, "histogram": histogram_json(point) }),
        (None, value) => {
            let (time, number) = value.unwrap_or((TimeMs(0), Number(0.0)));
            json!({ "metric": metric, "value": [time_json(time), plain(number.0)] })
        }
    }
}

fn stream_json(stream: &Stream) -> serde_json::Value {
    let values = || {
        let point = |(time, number): &(TimeMs, Number)| json!([time_json(*time), plain(number.0)]);
        stream.values.iter().map(point).collect::<serde_json::Value>()
    };
    let histograms = || stream.histograms.iter().map(histogram_json).collect::<serde_json::Value>();
    let metric = &stream.metric.0;
    // As in upstream, an empty list is omitted, but `values` is kept if both are empty.
    match (stream.histograms.is_empty(), stream.values.is_empty()) {
        (false, false) => {
            json!({ "metric": metric, "values": values(), "histograms": histograms() })
        }
        (false, true) => json!({ "metric": metric, "histograms": histograms() }),
        (true, _) => json!({ "metric": metric, "values": values() }),
    }
}

fn histogram_json((time, histogram): &(TimeMs, Histogram)) -> serde_json::Value {
    let bucket = |Bucket(bounds, lower, upper, count): &Bucket| {
        json!([bounds, plain(lower.0), plain(upper.0), plain(count.0)])
    };
    let buckets = histogram.buckets.as_ref();
    let buckets = buckets.map(|buckets| buckets.iter().map(bucket).collect::<serde_json::Value>());
    let (count, sum) = (plain(histogram.count.0), plain(histogram.sum.0));
    json!([time_json(*time), { "count": count, "sum": sum, "buckets": buckets }])
}

/// Formats a time in seconds, with a fraction only if it is needed.
fn time_json(TimeMs(ms): TimeMs) -> serde_json::Value {
    match ms % 1000 {
        0 => json!(ms / 1000),
        _ => json!(ms as f64 / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(data: &str, format: Format) -> String {
        let read = serde_json::from_str::<Value>(data);
        read.map_or_else(|error| panic!("{data}: {error}"), |mut value| format.value(&mut value))
    }

    /// The expectations are those of `String` and `MarshalJSON` in upstream's `model`.
    #[test]
    fn values_are_printed_as_upstream_prints_them() {
        let vector = r#"{"resultType":"vector","result":[
            {"metric":{"__name__":"up","a":"1","a1":"<\"é\n>"},"value":[1.5,"1e-7"]},
            {"metric":{"__name__":"up"},"value":[2,"NaN"]},
            {"metric":{},"histogram":[3,{"count":"2","sum":"0.5","buckets":
                [[3,"-0.001","0.001","1"],[0,"1000000","2e6","1.5"]]}]},
            {"metric":{"x":"y"},"histogram":[3,{"count":"0","sum":"0"}]}]}"#;
        let text = "up{a1=\"<\\\"é\\n>\", a=\"1\"} => 0.0000001 @[1.5]\n\
                    up => NaN @[2]\n\
                    {} => Count: 2.000000, Sum: 0.500000, \
                    Buckets: [[-0.001,0.001]:1 (1e+06,2e+06]:1.5] @[3]\n\
                    {x=\"y\"} => Count: 0.000000, Sum: 0.000000, Buckets: [] @[3]\n";
        assert_eq!(printed(vector, Format::Promql), text);
        let json = concat!(
            r#"[{"metric":{"__name__":"up","a":"1","a1":"\u003c\"é\n\u003e"},"value":[1.5,"0.0000001"]},"#,
            r#"{"metric":{"__name__":"up"},"value":[2,"NaN"]},"#,
            r#"{"metric":{},"histogram":[3,{"count":"2","sum":"0.5","buckets":"#,
            r#"[[3,"-0.001","0.001","1"],[0,"1000000","2000000","1.5"]]}]},"#,
            r#"{"metric":{"x":"y"},"histogram":[3,{"count":"0","sum":"0","buckets":null}]}]"#,
            "\n"
        );
        assert_eq!(printed(vector, Format::Json), json);

        let matrix = r#"{"resultType":"matrix","result":[
            {"metric":{"a":"2"},"values":[[1,"1"],[2,"2"]]},
            {"metric":{"a":"1"},"values":[[1,"1"]],"histograms":[[2,{"count":"1","sum":"1"}]]}]}"#;
        let text = "{a=\"1\"} =>\n1 @[1]\nCount: 1.000000, Sum: 1.000000, Buckets: [] @[2]\n\
                    {a=\"2\"} =>\n1 @[1]\n2 @[2]\n";
        assert_eq!(printed(matrix, Format::Promql), text);
        let scalar = r#"{"resultType":"scalar","result":[1.25,"-Inf"]}"#;
        assert_eq!(printed(scalar, Format::Promql), "scalar: -Inf @[1.25]\n");
        assert_eq!(printed(scalar, Format::Json), "[1.25,\"-Inf\"]\n");
        let empty = r#"{"resultType":"vector","result":[]}"#;
        assert_eq!(
            (printed(empty, Format::Promql), printed(empty, Format::Json)),
            ("\n".into(), "[]\n".into())
        );
    }

    #[test]
    fn series_and_labels_are_lines() {
        let labels = [(NAME, "up"), ("job", "a")].map(|(name, value)| (name.into(), value.into()));
        let series = [Metric(labels.into())];
        assert_eq!(Format::Promql.series(&series), "{__name__=\"up\", job=\"a\"}\n");
        assert_eq!(Format::Json.series(&series), "[{\"__name__\":\"up\",\"job\":\"a\"}]\n");
        let values = ["a".to_owned(), "b&c".to_owned()];
        assert_eq!(Format::Promql.label_values(&values), "a\nb&c\n");
        assert_eq!(Format::Json.label_values(&values), "[\"a\",\"b\\u0026c\"]\n");
        assert_eq!(
            (Format::Promql.series(&[]), Format::Json.series(&[])),
            (String::new(), "[]\n".into())
        );
    }
}
