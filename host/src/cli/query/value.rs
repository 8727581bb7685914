//! Answers to queries: the `data` of Prometheus' HTTP API, read from JSON. Times are milliseconds
//! since the epoch.

use serde::{Deserialize, Deserializer, de};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A result of a query.
#[derive(Debug, Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
pub enum Value {
    /// A number.
    Scalar((TimeMs, Number)),
    /// A text.
    String((TimeMs, String)),
    /// One point for each series.
    Vector(Vec<Sample>),
    /// Points of a range of time for each series.
    Matrix(Vec<Stream>),
}

/// Labels by name. Their order is that of Prometheus' answers: by names and values in turn.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric(pub BTreeMap<String, String>);

/// A series with one point.
#[derive(Debug, Deserialize)]
pub struct Sample {
    /// Its labels.
    pub metric: Metric,
    /// A float, unless it is a histogram.
    pub value: Option<(TimeMs, Number)>,
    /// A histogram.
    pub histogram: Option<(TimeMs, Histogram)>,
}

/// A series with points.
#[derive(Debug, Deserialize)]
pub struct Stream {
    /// Its labels.
    pub metric: Metric,
    /// Floats.
    #[serde(default)]
    pub values: Vec<(TimeMs, Number)>,
    /// Histograms.
    #[serde(default)]
    pub histograms: Vec<(TimeMs, Histogram)>,
}

/// A native histogram.
#[derive(Debug, Deserialize)]
pub struct Histogram {
    /// Observations.
    pub count: Number,
    /// Their sum.
    pub sum: Number,
    /// None, if there are none.
    pub buckets: Option<Vec<Bucket>>,
}

/// A bucket: which of its bounds belong to it, its bounds, and its count.
///
/// 0: the upper bound belongs to it; 1: the lower; 2: neither; 3: both.
#[derive(Debug, Deserialize)]
pub struct Bucket(pub u8, pub Number, pub Number, pub Number);

/// Milliseconds since the epoch; seconds in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeMs(pub i64);

/// A number; a text in JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl<'de> Deserialize<'de> for TimeMs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimeMs, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Ok(TimeMs((seconds * 1000.0).round() as i64))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number in quotes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
                let number = text.parse().map(Number);
                number.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Metric {
    /// The order in which promtool prints the series of a range (`LabelSet.Before` in
    /// prometheus/common): those with fewer labels first.
    pub fn printed_before(&self, other: &Metric) -> Ordering {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        // A label that is missing comes before one that is there.
        let differing = names.iter().map(|name| self.0.get(*name).cmp(&other.0.get(*name)));
        let by_labels = differing.into_iter().find(|order| order.is_ne());
        self.0.len().cmp(&other.0.len()).then(by_labels.unwrap_or(Ordering::Equal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(labels: &[(&str, &str)]) -> Metric {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Metric(labels.iter().map(own).collect())
    }

    #[test]
    fn answers_are_read() -> Result<(), serde_json::Error> {
        let read = serde_json::from_str::<Value>;
        assert!(matches!(
            read(r#"{"resultType":"scalar","result":[1700000000.123,"+Inf"]}"#)?,
            Value::Scalar((TimeMs(1_700_000_000_123), Number(f64::INFINITY)))
        ));
        let text = r#"{"result":[-1,"a"],"resultType":"string","stats":{}}"#;
        assert!(matches!(read(text)?, Value::String((TimeMs(-1000), text)) if text == "a"));
        let text = r#"{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"2",
            "sum":"-0.5","buckets":[[3,"-1","1","2"]]}]}]}"#;
        let Value::Vector(vector) = read(text)? else { panic!("no vector") };
        let (time, histogram) = vector[0].histogram.as_ref().expect("a histogram");
        assert_eq!(
            (time.0, histogram.sum.0, histogram.buckets.as_ref().map(Vec::len)),
            (1000, -0.5, Some(1))
        );
        for wrong in [
            r#"{"resultType":"scalar","result":[1,2]}"#,
            r#"{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}"#,
            r#"{"resultType":"other","result":[]}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        Ok(())
    }

    /// By upstream's `LabelSet.Before`.
    #[test]
    fn series_are_printed_in_order() {
        let ordered = [
            metric(&[]),
            metric(&[("b", "2")]),
            metric(&[("a", "1")]),
            metric(&[("a", "2")]),
            metric(&[("a", "1"), ("c", "1")]),
            metric(&[("a", "1"), ("b", "1")]),
            metric(&[("a", "1"), ("b", "2")]),
        ];
        for (at, one) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                assert_eq!(one.printed_before(other), at.cmp(&other_at), "{one:?} {other:?}");
            }
        }
    }
}
