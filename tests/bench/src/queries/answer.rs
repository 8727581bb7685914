//! Answers in Prometheus' JSON format, and their comparison.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Largest difference of equal values, as a part of the larger one.
const DIFFERENCE_MAX: f64 = 1e-12;

/// Series with their points: (milliseconds, value).
#[derive(Debug, Default)]
pub struct Answer {
    by_labels: BTreeMap<Labels, Vec<(i64, f64)>>,
}

type Labels = BTreeMap<String, String>;

#[derive(Deserialize)]
struct Body<'a> {
    status: &'a str,
    #[serde(borrow)]
    data: Data<'a>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    result: Vec<Series<'a>>,
}

#[derive(Deserialize)]
struct Series<'a> {
    metric: Labels,
    #[serde(borrow, default)]
    value: Option<Point<'a>>,
    #[serde(borrow, default)]
    values: Vec<Point<'a>>,
}

/// Seconds, and a number as text.
type Point<'a> = (f64, &'a str);

impl Answer {
    /// Reads the body of an answer whose values are floats.
    pub fn read(body: &[u8]) -> Result<Answer, String> {
        let body: Body<'_> = serde_json::from_slice(body)
            .map_err(|error| format!("the answer cannot be read: {error}"))?;
        if body.status != "success" {
            return Err(format!("the answer's status is {}", body.status));
        }
        let mut by_labels = BTreeMap::new();
        for Series { metric, value, values } in body.data.result {
            let points = value.into_iter().chain(values).map(point).collect::<Result<_, _>>()?;
            if let Some((labels, _)) = by_labels.remove_entry(&metric) {
                return Err(format!("the answer has {labels:?} twice"));
            }
            by_labels.insert(metric, points);
        }
        Ok(Answer { by_labels })
    }

    pub fn series(&self) -> usize {
        self.by_labels.len()
    }

    /// Returns the first difference between two answers.
    pub fn difference(&self, other: &Answer) -> Option<String> {
        let (ours, theirs) = (&self.by_labels, &other.by_labels);
        if ours.len() != theirs.len() {
            return Some(format!("{} series, not {}", ours.len(), theirs.len()));
        }
        ours.iter().find_map(|(labels, points)| {
            let Some(expected) = theirs.get(labels) else {
                return Some(format!("{labels:?} should not be there"));
            };
            if points.len() != expected.len() {
                return Some(format!(
                    "{labels:?} has {} points, not {}",
                    points.len(),
                    expected.len()
                ));
            }
            let mut both = points.iter().zip(expected);
            let (ours, theirs) = both.find(|(ours, theirs)| !are_same(**ours, **theirs))?;
            Some(format!("{labels:?} has {ours:?}, not {theirs:?}"))
        })
    }
}

fn point((seconds, value): Point<'_>) -> Result<(i64, f64), String> {
    // `f64` parses all numbers that Go writes: +Inf, NaN, 1e-07.
    let value = value.parse().map_err(|_| format!("the answer has the value {value:?}"))?;
    Ok(((seconds * 1e3).round() as i64, value))
}

fn are_same((our_ms, ours): (i64, f64), (their_ms, theirs): (i64, f64)) -> bool {
    let is_near = || (ours - theirs).abs() <= DIFFERENCE_MAX * ours.abs().max(theirs.abs());
    let is_same = ours == theirs || ours.is_nan() && theirs.is_nan();
    // Infinities of different signs must not count as near: their difference, and the bound, are
    // infinite.
    our_ms == their_ms && (is_same || ours.is_finite() && theirs.is_finite() && is_near())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(values: &str) -> Answer {
        let result = format!(r#"[{{"metric":{{"a":"b\"c"}},"values":[{values}]}}]"#);
        let body = format!(r#"{{"status":"success","data":{{"result":{result}}}}}"#);
        Answer::read(body.as_bytes()).expect("an answer")
    }

    #[test]
    fn values_are_the_same_within_rounding() {
        let expected = range(r#"[1.5,"0.30000000000000004"],[2,"NaN"],[3,"+Inf"],[4,"1e-07"]"#);
        let near = range(r#"[1.500,"0.3"],[2,"NaN"],[3,"+Inf"],[4,"0.0000001"]"#);
        assert_eq!(near.difference(&expected), None);
        for other in [
            r#"[1.5,"0.3000000001"],[2,"NaN"],[3,"+Inf"],[4,"1e-07"]"#,
            r#"[1.5,"0.3"],[2,"0"],[3,"+Inf"],[4,"1e-07"]"#,
            r#"[1.5,"0.3"],[2,"NaN"],[3,"-Inf"],[4,"1e-07"]"#,
            r#"[1.5,"0.3"],[2,"NaN"],[3,"+Inf"],[4,"0"]"#,
            r#"[1.5,"0.3"],[2,"NaN"],[3,"7"],[4,"1e-07"]"#,
            r#"[1.5,"0.3"],[2.001,"NaN"],[3,"+Inf"],[4,"1e-07"]"#,
            r#"[1.5,"0.3"],[2,"NaN"],[3,"+Inf"]"#,
        ] {
            assert!(range(other).difference(&expected).is_some(), "{other}");
        }
    }

    #[test]
    fn series_are_compared_by_their_labels() {
        let vector = |labels: &[&str]| {
            let series =
                |label: &&str| format!(r#"{{"metric":{{"a":"{label}"}},"value":[1,"2"]}}"#);
            let result: Vec<String> = labels.iter().map(series).collect();
            let result = result.join(",");
            let body = format!(r#"{{"status":"success","data":{{"result":[{result}]}}}}"#);
            Answer::read(body.as_bytes())
        };
        let some = |labels: &[&str]| vector(labels).expect("an answer");
        assert_eq!(some(&["1", "2"]).series(), 2);
        assert_eq!(some(&["1", "2"]).difference(&some(&["2", "1"])), None);
        assert!(some(&["1"]).difference(&some(&["1", "2"])).is_some());
        assert!(some(&["1", "3"]).difference(&some(&["1", "2"])).is_some());
        assert!(vector(&["1", "1"]).is_err());
        assert!(Answer::read(br#"{"status":"error","data":{"result":[]}}"#).is_err());
        assert!(Answer::read(b"{").is_err());
    }
}
