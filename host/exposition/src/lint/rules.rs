//! The rules of client_golang's `promlint`.

use super::families::{Families, Family, is_camel_case};
use super::units::{ABBREVIATIONS, unit_of};
use crate::metric::MetricType;
use std::fmt;

/// A convention that a metric breaks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub metric: String,
    /// Description of the problem, in upstream's words.
    pub text: String,
}

/// Prints a problem as promtool does.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.metric, self.text)
    }
}

impl Families {
    /// Returns all problems, sorted by metric and text. A rule is reported once for each label or
    /// series that breaks it.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.iter().flat_map(judged).collect();
        problems.sort_unstable();
        problems
    }
}

fn judged(family: &Family) -> Vec<Problem> {
    let mut texts: Vec<String> = Vec::new();
    let mut add = |count: usize, text: &str| texts.extend(vec![text.to_owned(); count]);
    let name = family.name.as_str();
    let lower = name.to_lowercase();
    let kind = family.kind.unwrap_or_default();
    add(usize::from(!family.has_help), "no help text");
    if let Some((unit, base)) = unit_of(name).filter(|(unit, base)| unit != base) {
        add(1, &format!("use base unit \"{base}\" instead of \"{unit}\""));
    }
    let is_total = name.ends_with("_total");
    match kind {
        MetricType::Counter if !is_total => {
            add(1, "counter metrics should have \"_total\" suffix");
        }
        // An untyped metric may be a counter, so both names are allowed.
        MetricType::Counter | MetricType::Unknown => {}
        _ if is_total => add(1, "non-counter metrics should not have \"_total\" suffix"),
        _ => {}
    }
    if kind != MetricType::Unknown {
        // A metric without a type may be a histogram or summary, for which these are right.
        let is_histogram = kind == MetricType::Histogram;
        let is_summary = kind == MetricType::Summary;
        let (labels, ends) = (family.labels, |suffix| usize::from(name.ends_with(suffix)));
        if !is_histogram {
            add(ends("_bucket"), "non-histogram metrics should not have \"_bucket\" suffix");
            add(labels.buckets, "non-histogram metrics should not have \"le\" label");
        }
        if !is_histogram && !is_summary {
            let what = "non-histogram and non-summary metrics should not have";
            add(ends("_count"), &format!("{what} \"_count\" suffix"));
            add(ends("_sum"), &format!("{what} \"_sum\" suffix"));
        }
        if !is_summary {
            add(labels.quantiles, "non-summary metrics should not have \"quantile\" label");
        }
        let kind = type_name(kind);
        if has_word(&lower, kind) {
            add(1, &format!("metric name should not include type '{kind}'"));
        }
    }
    add(usize::from(name.contains(':')), "metric names should not contain ':'");
    let snake_case = "should be written in 'snake_case' not 'camelCase'";
    add(usize::from(is_camel_case(name)), &format!("metric names {snake_case}"));
    add(family.labels.camel_case, &format!("label names {snake_case}"));
    let abbreviated = ABBREVIATIONS.iter().filter(|unit| has_word(&lower, unit)).count();
    add(abbreviated, "metric names should not contain abbreviated units");
    add(repeated(&family.series), "metric not unique");
    texts.into_iter().map(|text| Problem { metric: name.to_owned(), text }).collect()
}

/// Returns whether a name has a word after a `_`, up to another `_` or the end.
fn has_word(name: &str, word: &str) -> bool {
    let mut parts = name.split('_');
    // Upstream searches for `_word`, so the part before the first `_` is skipped.
    parts.next();
    let (words, parts): (Vec<&str>, Vec<&str>) = (word.split('_').collect(), parts.collect());
    parts.windows(words.len()).any(|parts| parts == words)
}

fn type_name(kind: MetricType) -> &'static str {
    match kind {
        // Upstream's name has an underscore, unlike the name in OpenMetrics.
        MetricType::Gaugehistogram => "gauge_histogram",
        kind => kind.as_str(),
    }
}

/// Returns how many numbers are repetitions of an earlier number.
fn repeated(numbers: &[u64]) -> usize {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    numbers.len() - sorted.len()
}
