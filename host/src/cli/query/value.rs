//! Results of queries: the field `data` of Prometheus' HTTP API. Times are in milliseconds.

use serde::{Deserialize, Deserializer, de};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[derive(Debug, Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
pub enum Value {
    Scalar((TimeMs, Number)),
    String((TimeMs, String)),
    /// One point per series, at the time of the query.
    Vector(Vec<Sample>),
    /// Points per series over a range of time.
    Matrix(Vec<Stream>),
}

/// Labels by name. Metrics are ordered as in Prometheus' responses: by name and value alternately.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric(pub BTreeMap<String, String>);

#[derive(Debug, Deserialize)]
pub struct Sample {
    pub metric: Metric,
    /// Float value; absent if the point is a histogram.
    pub value: Option<(TimeMs, Number)>,
    pub histogram: Option<(TimeMs, Histogram)>,
}

#[derive(Debug, Deserialize)]
pub struct Stream {
    pub metric: Metric,
    #[serde(default)]
    pub values: Vec<(TimeMs, Number)>,
    #[serde(default)]
    pub histograms: Vec<(TimeMs, Histogram)>,
}

#[derive(Debug, Deserialize)]
pub struct Histogram {
    /// Number of observations. A float, as in the JSON of the API.
    pub count: Number,
    pub sum: Number,
    /// Absent if the histogram has no observations.
    pub buckets: Option<Vec<Bucket>>,
}

/// A bucket: which bounds are included, lower bound, upper bound, count.
///
/// The first field: 0 includes the upper bound, 1 the lower bound, 2 neither, 3 both.
#[derive(Debug, Deserialize)]
pub struct Bucket(pub u8, pub Number, pub Number, pub Number);

/// Time in milliseconds since the epoch. In JSON it is a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeMs(pub i64);

/// A number. In JSON it is a string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl<'de> Deserialize<'de> for TimeMs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimeMs, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        // Rounded, because a fraction such as 0.123 is not exact as a float.
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
    /// Compares in the order in which promtool prints the series of a range: fewer labels first
    /// (`LabelSet.Before` in prometheus/common).
    pub fn printed_before(&self, other: &Metric) -> Ordering {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        // As with `None` and `Some`, a missing label is before a present label.
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

    /// The expected order is that of upstream's `LabelSet.Before`.
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
