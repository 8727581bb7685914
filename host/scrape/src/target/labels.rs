//! Turns discovered labels into the labels of a target.
//!
//! Source: `PopulateDiscoveredLabels` and `PopulateLabels` in `scrape/target.go` of
//! prometheus/prometheus.

use crate::job::Job;
use crate::labels::Labels;
use std::collections::BTreeMap;
use std::time::Duration;
use tidepool_relabel::{Rule, relabel};
use tidepool_settings::duration::{duration_or_zero, duration_text};
use tidepool_settings::redact::HIDDEN;

/// Shortest interval that a label may set, unless the job's own interval is shorter. One thread
/// scrapes all targets, and third parties write the discovered lists.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Names of the labels that control the scrapes of a target.
pub mod names {
    /// Host and port of the target.
    pub const ADDRESS: &str = "__address__";
    pub const SCHEME: &str = "__scheme__";
    pub const METRICS_PATH: &str = "__metrics_path__";
    /// Prefix of labels that are parameters of the URL.
    pub const PARAM_PREFIX: &str = "__param_";
    pub const SCRAPE_INTERVAL: &str = "__scrape_interval__";
    /// Maximum duration of a scrape.
    pub const SCRAPE_TIMEOUT: &str = "__scrape_timeout__";
    /// Whether native histograms are scraped.
    pub const NATIVE_HISTOGRAMS: &str = "__scrape_native_histograms__";
    /// Whether classic histograms are scraped beside native ones.
    pub const ALWAYS_CLASSIC: &str = "__always_scrape_classic_histograms__";
    /// Whether classic histograms are converted to native ones.
    pub const CONVERT_CLASSIC: &str = "__convert_classic_histograms_to_nhcb__";
    /// Path of a Unix socket that takes the place of the address.
    pub const UNIX_SOCKET: &str = "__unix_socket__";
    /// URL of the discovery list that contains the target.
    pub const URL: &str = "__meta_url";
    /// Prefix of labels that discovery sets; removed after relabeling.
    pub const META_PREFIX: &str = "__meta_";
    pub const JOB: &str = "job";
    /// Identifies the target within its job; by default the address.
    pub const INSTANCE: &str = "instance";
}

pub type LabelMap = BTreeMap<String, String>;

/// Reasons why discovered labels do not make a valid target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("no address")]
    NoAddress,
    /// The address has a path or another part of a URL.
    #[error("{0:?} is not a valid hostname")]
    Address(String),
    /// A duration does not parse.
    #[error("error parsing {what}: {reason}")]
    Duration {
        /// `scrape interval` or `scrape timeout`.
        what: &'static str,
        reason: String,
    },
    #[error("{0} cannot be 0")]
    Zero(&'static str),
    /// The interval is shorter than the minimum for a label.
    #[error("scrape interval cannot be less than {} ({interval:?})", duration_text(*least))]
    IntervalTooShort {
        /// Value of the label `__scrape_interval__`.
        interval: String,
        least: Duration,
    },
    /// The timeout is longer than the interval.
    #[error("scrape timeout cannot be greater than scrape interval ({timeout:?} > {interval:?})")]
    TimeoutAboveInterval {
        /// Value of the label `__scrape_timeout__`.
        timeout: String,
        interval: String,
    },
    /// A boolean label is neither true nor false.
    #[error("error parsing {what}: {value:?} is neither true nor false")]
    Truth {
        /// Setting that the label overrides, in words.
        what: &'static str,
        value: String,
    },
}

/// Returns the labels that the service discovery page shows: labels of the target and of its group,
/// and defaults of the job for labels that neither has.
pub fn discovered_labels(job: &Job, target: &Labels, group: &Labels) -> LabelMap {
    let mut labels = group.to_map();
    labels.extend(target.iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
    let mut default = |name: &str, value: &str| {
        if !value.is_empty() && !labels.contains_key(name) {
            labels.insert(name.to_owned(), value.to_owned());
        }
    };
    default(names::JOB, &job.name);
    default(names::SCRAPE_INTERVAL, &duration_text(job.interval));
    default(names::SCRAPE_TIMEOUT, &duration_text(job.timeout));
    default(names::METRICS_PATH, &job.metrics_path);
    default(names::SCHEME, &job.scheme);
    default(names::CONVERT_CLASSIC, &job.convert_classic_histograms.to_string());
    default(names::ALWAYS_CLASSIC, &job.always_classic_histograms.to_string());
    default(names::NATIVE_HISTOGRAMS, &job.native_histograms.to_string());
    for (name, values) in &job.params {
        // Upstream makes a label of the first value only.
        if let Some(first) = values.first() {
            default(&format!("{}{name}", names::PARAM_PREFIX), first);
        }
    }
    labels
}

/// Returns the labels of a target after relabeling, or `None` if it is dropped. The address of a
/// probe may be a URL.
pub fn target_labels(
    job: &Job,
    discovered: LabelMap,
    rules: &mut [Rule],
) -> Result<Option<LabelMap>, TargetError> {
    let mut labels = discovered;
    if !relabel(rules, &mut labels) {
        return Ok(None);
    }
    labels.retain(|_, value| !value.is_empty());
    let address = labels.get(names::ADDRESS).ok_or(TargetError::NoAddress)?.clone();
    if job.probe.is_none() && address.contains(['/', '?', '#', '@']) {
        // Hides credentials before the `@`, because the error is logged.
        let shown = address.rsplit_once('@').map(|(_, host)| format!("{HIDDEN}@{host}"));
        return Err(TargetError::Address(shown.unwrap_or(address)));
    }
    let text_of = |name: &str| labels.get(name).map_or("", String::as_str);
    let (interval, timeout) = (text_of(names::SCRAPE_INTERVAL), text_of(names::SCRAPE_TIMEOUT));
    let interval_length = positive("scrape interval", interval)?;
    let least = INTERVAL_MIN.min(job.interval);
    if interval_length < least {
        return Err(TargetError::IntervalTooShort { interval: interval.to_owned(), least });
    }
    if positive("scrape timeout", timeout)? > interval_length {
        let (timeout, interval) = (timeout.to_owned(), interval.to_owned());
        return Err(TargetError::TimeoutAboveInterval { timeout, interval });
    }
    for (name, what) in [
        (names::CONVERT_CLASSIC, "convert classic histograms to nhcb"),
        (names::ALWAYS_CLASSIC, "always scrape classic histograms"),
        (names::NATIVE_HISTOGRAMS, "scrape native histograms"),
    ] {
        let value = text_of(name);
        if !value.is_empty() && truth(value).is_none() {
            return Err(TargetError::Truth { what, value: value.to_owned() });
        }
    }
    // Removed only here, because the relabel rules may read these labels.
    labels.retain(|name, _| !name.starts_with(names::META_PREFIX));
    labels.entry(names::INSTANCE.to_owned()).or_insert(address);
    Ok(Some(labels))
}

fn positive(what: &'static str, text: &str) -> Result<Duration, TargetError> {
    match duration_or_zero(text) {
        Ok(Duration::ZERO) => Err(TargetError::Zero(what)),
        Ok(duration) => Ok(duration),
        Err(reason) => Err(TargetError::Duration { what, reason }),
    }
}

/// Parses a boolean as Go's `strconv.ParseBool` does.
pub fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_relabel::{Action, RuleSpec};

    fn map(pairs: &[(&str, &str)]) -> LabelMap {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn job() -> Job {
        let second = Duration::from_secs(1);
        Job { scheme: "https".into(), interval: second, timeout: second, ..Job::new("job") }
    }

    fn replace(source: &str, regex: &str, replacement: &str, target: &str) -> Vec<Rule> {
        let spec = RuleSpec {
            source_labels: vec![source.into()],
            regex: regex.into(),
            replacement: replacement.into(),
            target_label: target.into(),
            ..RuleSpec::new(Action::Replace)
        };
        vec![Rule::new(spec).expect("a rule")]
    }

    /// Labels of each target by default.
    const DEFAULTS: [(&str, &str); 8] = [
        ("__metrics_path__", "/metrics"),
        ("__scheme__", "https"),
        ("__scrape_interval__", "1s"),
        ("__scrape_timeout__", "1s"),
        (names::CONVERT_CLASSIC, "false"),
        (names::ALWAYS_CLASSIC, "false"),
        (names::NATIVE_HISTOGRAMS, "false"),
        ("job", "job"),
    ];

    /// Follows the upstream test TestPopulateLabels.
    #[test]
    fn labels_are_those_of_upstream() {
        type Case<'a> = (&'a [(&'a str, &'a str)], Vec<Rule>, &'a [(&'a str, &'a str)]);
        let cases: [Case; 8] = [
            (
                &[("__address__", "1.2.3.4:1000"), ("custom", "value")],
                vec![],
                &[("instance", "1.2.3.4:1000")],
            ),
            (
                &[
                    ("__address__", "1.2.3.4"),
                    ("__scheme__", "http"),
                    ("__metrics_path__", "/custom"),
                    ("job", "custom-job"),
                    ("__scrape_interval__", "2s"),
                    ("__scrape_timeout__", "2s"),
                ],
                vec![],
                &[("instance", "1.2.3.4")],
            ),
            (&[("__address__", "[::1]"), ("instance", "custom-instance")], vec![], &[]),
            (
                &[("custom", "host:1234")],
                replace("custom", "(.*)", "${1}", "__address__"),
                &[("__address__", "host:1234"), ("instance", "host:1234")],
            ),
            (&[("__address__", "1.2.3.4:80")], vec![], &[("instance", "1.2.3.4:80")]),
            (&[("__address__", "1.2.3.4:443")], vec![], &[("instance", "1.2.3.4:443")]),
            (
                &[("__address__", "a"), ("__meta_x", "y")],
                replace("__meta_x", "(.*)", "$1", "x"),
                &[("instance", "a"), ("x", "y")],
            ),
            (
                &[("__address__", "a")],
                replace(names::CONVERT_CLASSIC, "false", "true", names::CONVERT_CLASSIC),
                &[("instance", "a"), (names::CONVERT_CLASSIC, "true")],
            ),
        ];
        for (found, mut rules, added) in cases {
            let mut expected = map(&DEFAULTS);
            expected.extend(map(found));
            let discovered =
                discovered_labels(&job(), &Labels::of(&map(found)), &Labels::default());
            assert_eq!(discovered, expected, "{found:?}");
            expected.extend(map(added));
            expected.remove("__meta_x");
            assert_eq!(
                target_labels(&job(), discovered, &mut rules),
                Ok(Some(expected)),
                "{found:?}"
            );
        }
    }

    /// Follows the upstream tests TestPopulateLabels, TestTargetsFromGroup.
    #[test]
    fn what_is_no_target_says_why() {
        let address = ("__address__", "1.2.3.4:1000");
        let cases: [(&[(&str, &str)], &str); 12] = [
            (&[("custom", "value")], "no address"),
            (&[("__address__", "a/b")], "\"a/b\" is not a valid hostname"),
            // Parts of a URL: the first two asked for other paths, the last sent credentials.
            (&[("__address__", "a?b")], "\"a?b\" is not a valid hostname"),
            (&[("__address__", "a:80#b")], "\"a:80#b\" is not a valid hostname"),
            (&[("__address__", "me:x@a:80")], "\"xxxxx@a:80\" is not a valid hostname"),
            (&[address, ("__scrape_interval__", "2notseconds")], "error parsing scrape interval: "),
            (&[address, ("__scrape_timeout__", "2notseconds")], "error parsing scrape timeout: "),
            (&[address, ("__scrape_interval__", "0s")], "scrape interval cannot be 0"),
            (
                &[address, ("__scrape_interval__", "99ms"), ("__scrape_timeout__", "1ms")],
                "scrape interval cannot be less than 100ms (\"99ms\")",
            ),
            (&[address, ("__scrape_timeout__", "0s")], "scrape timeout cannot be 0"),
            (
                &[address, ("__scrape_interval__", "1s"), ("__scrape_timeout__", "2s")],
                "scrape timeout cannot be greater than scrape interval (\"2s\" > \"1s\")",
            ),
            (
                &[address, (names::CONVERT_CLASSIC, "maybe")],
                "error parsing convert classic histograms to nhcb: \"maybe\"",
            ),
        ];
        for (found, expected) in cases {
            let discovered =
                discovered_labels(&job(), &Labels::of(&map(found)), &Labels::default());
            let error = target_labels(&job(), discovered, &mut []).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn the_target_prevails_over_its_group_and_both_over_the_job() {
        let params = BTreeMap::from([
            ("a".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
            ("b".to_owned(), vec!["3".to_owned()]),
            ("c".to_owned(), vec![]),
        ]);
        let job = Job { params, ..job() };
        let group = Labels::of(&map(&[("__param_b", "4"), ("x", "group"), ("y", "group")]));
        let labels = discovered_labels(&job, &Labels::one("x", "target"), &group);
        let mut expected = map(&DEFAULTS);
        let own = [("__param_a", "1"), ("__param_b", "4"), ("x", "target"), ("y", "group")];
        expected.extend(map(&own));
        assert_eq!(labels, expected);
        let drop = RuleSpec {
            source_labels: vec!["x".into()],
            regex: "target".into(),
            ..RuleSpec::new(Action::Drop)
        };
        let mut rules = [Rule::new(drop).expect("a rule")];
        assert_eq!(target_labels(&job, labels, &mut rules), Ok(None));
    }
}
