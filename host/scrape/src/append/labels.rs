//! Turns exposed labels into the labels of the stored series.
//!
//! Source: `mutateSampleLabels`, `resolveConflictingExposedLabels` and `verifyLabelLimits` in
//! `scrape/scrape.go` of prometheus/prometheus.

use crate::error::{self as shown, ScrapeError};
use crate::job::LabelLimits;
use crate::labels::{Labels, METRIC_NAME};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tidepool_exposition::NameValidation;
use tidepool_relabel::{Rule, relabel};

/// Prefix that renames an exposed label whose name the target's labels have, too.
const EXPORTED_PREFIX: &str = "exported_";

/// Maximum length of names and values in messages, in characters.
const SHOWN_CHARS: usize = 50;

/// Relabel rules of a job, shared by all its targets. They run for new series only.
pub type Rules = Arc<Mutex<Vec<Rule>>>;

/// Turns the exposed labels of a target's series into the stored labels.
#[derive(Clone, Debug)]
pub struct Mutator {
    /// Labels of the target that its series get, ascending by name.
    pub target: Vec<(String, String)>,
    /// Whether exposed labels override the labels of the target.
    pub honor_labels: bool,
    /// Compiled rules of `metric_relabel_configs` of the job.
    pub rules: Rules,
    /// Setting `metric_name_validation_scheme` of the job.
    pub validation: NameValidation,
    pub limits: LabelLimits,
}

impl Mutator {
    /// Returns the labels of a series, or `None` if relabeling drops it.
    pub fn series(&self, exposed: Vec<(String, String)>) -> Result<Option<Labels>, ScrapeError> {
        let mut labels = BTreeMap::new();
        let mut repeated = None;
        for (name, value) in exposed {
            // Keeps the first value. The error comes later, because a rule may drop the series.
            if let Some(first) = labels.insert(name.clone(), value) {
                labels.insert(name.clone(), first);
                repeated = Some(name);
            }
        }
        self.add_target(&mut labels);
        // A label with an empty value is absent, also for rules.
        labels.retain(|_, value| !value.is_empty());
        let is_kept = {
            let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
            relabel(&mut rules, &mut labels)
        };
        if !is_kept {
            return Ok(None);
        }
        let metric = labels.get(METRIC_NAME).ok_or(ScrapeError::NoMetricName)?;
        if let Some(name) = repeated {
            return Err(ScrapeError::RepeatedLabel {
                name: shown::beginning(&name),
                metric: shown::beginning(metric),
            });
        }
        if !labels.iter().all(|(name, value)| is_valid(self.validation, name, value)) {
            return Err(ScrapeError::InvalidNames(shown::beginning(
                &Labels::of(&labels).to_string(),
            )));
        }
        // As upstream, limits include the labels of the target.
        self.limits.check(metric, &labels)?;
        Ok(Some(Labels::of(&labels)))
    }

    fn add_target(&self, labels: &mut BTreeMap<String, String>) {
        if self.honor_labels {
            for (name, value) in &self.target {
                // An exposed label with an empty value removes the target's label.
                labels.entry(name.clone()).or_insert_with(|| value.clone());
            }
            return;
        }
        let mut conflicts = Vec::new();
        for (name, value) in &self.target {
            if let Some(exposed) = labels.insert(name.clone(), value.clone()) {
                conflicts.push((name, exposed));
            }
        }
        // An empty exposed label is absent, so it is not renamed.
        conflicts.retain(|(_, exposed)| !exposed.is_empty());
        // Sorted by length, so that the shortest name gets its prefix first, as upstream does.
        conflicts.sort_by_key(|(name, _)| name.len());
        for (name, exposed) in conflicts {
            let mut renamed = format!("{EXPORTED_PREFIX}{name}");
            while labels.get(&renamed).is_some_and(|value| !value.is_empty()) {
                renamed.insert_str(0, EXPORTED_PREFIX);
            }
            labels.insert(renamed, exposed);
        }
    }

    /// Returns the labels of a report series. Relabeling and limits do not apply, because the
    /// series describes the target itself.
    pub fn report(&self, name: &str) -> Labels {
        let target = self.target.iter().cloned();
        target.chain([(METRIC_NAME.to_owned(), name.to_owned())]).collect()
    }
}

/// Returns whether a label name is valid, and if it is `__name__`, also its value.
fn is_valid(validation: NameValidation, name: &str, value: &str) -> bool {
    validation.is_label_name(name) && (name != METRIC_NAME || validation.is_metric_name(value))
}

impl LabelLimits {
    fn check(self, metric: &str, labels: &BTreeMap<String, String>) -> Result<(), ScrapeError> {
        let is_over = |bytes: usize, limit: u64| limit > 0 && bytes as u64 > limit;
        if is_over(labels.len(), self.labels) {
            return Err(ScrapeError::LabelLimit {
                metric: beginning(metric),
                labels: labels.len(),
                limit: self.labels,
            });
        }
        for (name, value) in labels {
            if is_over(name.len(), self.name_bytes) {
                return Err(ScrapeError::LabelNameLimit {
                    metric: beginning(metric),
                    name: beginning(name),
                    bytes: name.len(),
                    limit: self.name_bytes,
                });
            }
            if is_over(value.len(), self.value_bytes) {
                return Err(ScrapeError::LabelValueLimit {
                    metric: beginning(metric),
                    name: beginning(name),
                    value: beginning(value),
                    bytes: value.len(),
                    limit: self.value_bytes,
                });
            }
        }
        Ok(())
    }
}

fn beginning(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_relabel::{Action, RuleSpec};

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn labels(list: &[(&str, &str)]) -> Labels {
        pairs(list).into_iter().collect()
    }

    fn mutator(target: &[(&str, &str)]) -> Mutator {
        Mutator {
            target: pairs(target),
            honor_labels: false,
            rules: Rules::default(),
            validation: NameValidation::Utf8,
            limits: LabelLimits::default(),
        }
    }

    fn series(mutator: &Mutator, exposed: &[(&str, &str)]) -> Result<Option<Labels>, ScrapeError> {
        mutator.series([pairs(&[("__name__", "metric")]), pairs(exposed)].concat())
    }

    type Case<'a> =
        (bool, &'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)]);

    /// Follows the upstream tests TestScrapeLoopAppend_HonorLabels,
    /// TestScrapeLoopAppendForConflictingPrefixedLabels.
    #[test]
    fn conflicting_labels_are_exported_or_honored() {
        let cases: [Case; 12] = [
            (false, &[("n", "1")], &[("n", "2")], &[("exported_n", "1"), ("n", "2")]),
            (
                false,
                &[("n", "1")],
                &[("n", "2"), ("exported_n", "2")],
                &[("n", "2"), ("exported_n", "2"), ("exported_exported_n", "1")],
            ),
            (false, &[("n", "")], &[], &[]),
            (false, &[("n", "")], &[("n", "2")], &[("n", "2")]),
            (true, &[("n", "1")], &[("n", "2")], &[("n", "1")]),
            (true, &[("n", "")], &[("n", "2"), ("m", "3")], &[("m", "3")]),
            (
                false,
                &[("foo", "1")],
                &[("foo", "2"), ("exported_foo", "3")],
                &[("exported_exported_foo", "1"), ("exported_foo", "3"), ("foo", "2")],
            ),
            (
                false,
                &[("foo", "1"), ("exported_foo", "2")],
                &[("foo", "3")],
                &[("exported_exported_foo", "1"), ("exported_foo", "2"), ("foo", "3")],
            ),
            (
                false,
                &[("exported_foo", "1")],
                &[("exported_foo", "2")],
                &[("exported_exported_foo", "1"), ("exported_foo", "2")],
            ),
            (
                false,
                &[("foo", "1"), ("exported_foo", "2")],
                &[("foo", "3"), ("exported_foo", "4")],
                &[
                    ("exported_exported_foo", "1"),
                    ("exported_exported_exported_foo", "2"),
                    ("exported_foo", "4"),
                    ("foo", "3"),
                ],
            ),
            (
                false,
                &[("foo", "3"), ("exported_foo", "4"), ("exported_exported_exported_foo", "5")],
                &[
                    ("foo", "0"),
                    ("exported_exported_foo", "1"),
                    ("exported_exported_exported_foo", "2"),
                ],
                &[
                    ("exported_exported_exported_exported_exported_foo", "5"),
                    ("exported_exported_exported_exported_foo", "3"),
                    ("exported_exported_exported_foo", "2"),
                    ("exported_exported_foo", "1"),
                    ("exported_foo", "4"),
                    ("foo", "0"),
                ],
            ),
            (true, &[("job", "a")], &[("job", "b"), ("x", "y")], &[("job", "a"), ("x", "y")]),
        ];
        for (honor_labels, exposed, target, expected) in cases {
            let mutator = Mutator { honor_labels, ..mutator(target) };
            let expected = labels(&[expected, &[("__name__", "metric")]].concat());
            assert_eq!(series(&mutator, exposed), Ok(Some(expected)), "{exposed:?} {target:?}");
        }
        let report = mutator(&[("job", "a"), ("exported_job", "b")]).report("up");
        assert_eq!(report, labels(&[("__name__", "up"), ("job", "a"), ("exported_job", "b")]));
    }

    /// Follows the upstream test TestScrapeLoopLabelLimit.
    #[test]
    fn limits_count_the_labels_of_the_target() {
        let one = |labels, name_bytes, value_bytes| LabelLimits { labels, name_bytes, value_bytes };
        let six = [("l1", "1"), ("l2", "2"), ("l3", "3"), ("l4", "4"), ("l5", "5"), ("l6", "6")];
        let long_value = [("l1", "label_value_too_long")];
        let long_name = [("label_name_too_long", "0")];
        type LimitCase<'a> =
            (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], LabelLimits, bool);
        let cases: [LimitCase; 9] = [
            (&six[..2], &[], one(5, 0, 0), true),
            (&six, &[], one(5, 0, 0), false),
            (&six[..4], &six[4..], one(5, 0, 0), false),
            (&six[..2], &[], one(0, 10, 0), true),
            (&long_name, &[], one(0, 10, 0), false),
            (&six[..2], &long_name, one(0, 10, 0), false),
            (&six[..2], &[], one(0, 0, 10), true),
            (&long_value, &[], one(0, 0, 10), false),
            (&six[..2], &long_value, one(0, 0, 10), false),
        ];
        for (exposed, target, limits, is_good) in cases {
            let found = series(&Mutator { limits, ..mutator(target) }, exposed);
            assert_eq!(found.is_ok(), is_good, "{exposed:?} {target:?} {found:?}");
        }
        let limits = one(0, 0, 10);
        let error = series(&Mutator { limits, ..mutator(&[]) }, &long_value).unwrap_err();
        let text = "label_value_length_limit exceeded (metric: metric, label name: l1, value: \
            \"label_value_too_long\", length: 20, limit: 10)";
        assert_eq!(error.to_string(), text);
    }

    /// Upstream: TestScrapeLoopDiscardUnnamedMetrics, TestScrapeLoopDiscardDuplicateLabels,
    /// TestScrapeLoopFailWithInvalidLabelsAfterRelabel, TestScrapeLoopFailLegacyUnderUTF8.
    #[test]
    fn what_cannot_be_stored_is_an_error_unless_it_is_dropped() {
        let rule = |action, source: &[&str], regex: &str, target: &str| {
            let spec = RuleSpec {
                source_labels: source.iter().map(|name| (*name).to_owned()).collect(),
                regex: regex.to_owned(),
                target_label: target.to_owned(),
                ..RuleSpec::new(action)
            };
            vec![Rule::new(spec).expect("a rule")]
        };
        let with = |rules: Vec<Rule>, validation| Mutator {
            rules: Arc::new(Mutex::new(rules)),
            validation,
            ..mutator(&[])
        };
        let utf8 = NameValidation::Utf8;
        let unnamed = with(rule(Action::LabelDrop, &[], "__name__", ""), utf8);
        assert_eq!(series(&unnamed, &[("a", "b")]), Err(ScrapeError::NoMetricName));
        assert_eq!(series(&unnamed, &[]), Ok(None), "no label is left");
        let twice = [("le", "600"), ("le", "700")];
        assert_eq!(
            series(&mutator(&[]), &twice),
            Err(ScrapeError::RepeatedLabel { name: "le".into(), metric: "metric".into() })
        );
        let dropping = with(rule(Action::Drop, &["le"], "600", ""), utf8);
        assert_eq!(series(&dropping, &twice), Ok(None));
        let renaming = rule(Action::LabelMap, &[], "(job)", "");
        let renaming = with(renaming, NameValidation::Legacy);
        assert!(series(&renaming, &[("job", "x")]).is_ok());
        assert!(series(&renaming, &[("job", "x"), ("dotted.name", "x")]).is_err());
        let dotted = vec![("__name__".to_owned(), "dotted.name".to_owned())];
        assert!(renaming.series(dotted.clone()).is_err());
        assert!(mutator(&[]).series(dotted).is_ok());
        let colon = |name: &str| vec![(name.to_owned(), "a:b".to_owned()); 1];
        let both = |name| [colon("__name__"), colon(name)].concat();
        assert!(renaming.series(both("a")).is_ok());
        assert!(renaming.series(both("a:b")).is_err());
        assert!(renaming.series(both("1")).is_err());
    }
}
