//! Figures of rule evaluation, and their metrics under upstream's names.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidepool_rules::group::{Group, Report};
use tidepool_telemetry::{MetricsText, escaped};

#[derive(Default)]
pub struct Figures(Mutex<All>);

#[derive(Default)]
struct All {
    groups: BTreeMap<(String, String), GroupFigures>,
    /// Number and total time of evaluated rules, and of evaluated groups.
    rules: (u64, Duration),
    iterations: (u64, Duration),
    /// Queries that were ended by a limit of time or memory.
    ended: u64,
}

/// Figures of a group, which a reload keeps.
#[derive(Clone, Debug, Default)]
struct GroupFigures {
    interval: Duration,
    rules: usize,
    evaluations: u64,
    failures: u64,
    iterations: u64,
    missed: u64,
    last_duration: Duration,
    last_rule_durations: Duration,
    last_restore: Duration,
    /// Wall time.
    last_evaluation_ms: i64,
    last_samples: usize,
    refused: u64,
}

impl Figures {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the figures of groups that are gone.
    pub fn retain(&self, is_group: impl Fn(&str, &str) -> bool) {
        self.lock().groups.retain(|(file, name), _| is_group(file, name));
    }

    /// Adds a group; counts of one of the same name go on.
    pub fn add_group(&self, group: &Group) {
        let mut all = self.lock();
        let figures = all.groups.entry(key(group)).or_default();
        figures.interval = Duration::from_millis(group.slots().interval_ms().unsigned_abs());
        figures.rules = group.len();
    }

    pub fn add_missed(&self, group: &Group, slots: u64) {
        if let Some(figures) = self.lock().groups.get_mut(&key(group)) {
            // As upstream, which counts an iteration for each slot.
            figures.iterations += slots;
            figures.missed += slots;
        }
    }

    pub fn add_restore(&self, group: &Group, took: Duration) {
        if let Some(figures) = self.lock().groups.get_mut(&key(group)) {
            figures.last_restore = took;
        }
    }

    pub fn add_report(
        &self,
        group: &Group,
        report: &Report,
        now_ms: i64,
        took: Duration,
        ended: u64,
    ) {
        let mut all = self.lock();
        let rules_took: Duration = report.rules.iter().map(|rule| rule.took).sum();
        let rules = report.rules.len() as u64;
        all.rules = (all.rules.0 + rules, all.rules.1 + rules_took);
        all.iterations = (all.iterations.0 + 1, all.iterations.1 + took);
        all.ended += ended;
        let Some(figures) = all.groups.get_mut(&key(group)) else { return };
        figures.iterations += 1;
        figures.evaluations += rules;
        figures.failures += report.rules.iter().filter(|rule| rule.result.is_err()).count() as u64;
        figures.last_duration = took;
        figures.last_rule_durations = rules_took;
        figures.last_evaluation_ms = now_ms;
        figures.last_samples = report.samples;
        let refused = report.rules.iter().map(|rule| rule.refused);
        figures.refused += refused
            .map(|counts| counts.out_of_order + counts.too_old + counts.duplicate + counts.other)
            .sum::<usize>() as u64;
    }

    pub fn show(&self, text: &mut MetricsText) {
        let all = self.lock();
        let (rules, iterations, ended) = (all.rules, all.iterations, all.ended);
        let groups: Vec<(String, GroupFigures)> = all
            .groups
            .iter()
            .map(|((file, name), figures)| {
                (format!("rule_group=\"{}\"", escaped(&format!("{file};{name}"))), figures.clone())
            })
            .collect();
        // Released before the text is written, which takes longer than an evaluation may wait.
        drop(all);
        for (name, help, (count, sum)) in [
            (
                "prometheus_rule_evaluation_duration_seconds",
                "Duration of the evaluation of a rule.",
                rules,
            ),
            (
                "prometheus_rule_group_duration_seconds",
                "Duration of the evaluation of a group.",
                iterations,
            ),
        ] {
            text.summaries(name, help, &[("", Vec::new(), count, sum.as_secs_f64())]);
        }
        text.counter(
            "tidepool_rule_queries_ended_total",
            "Queries of rules that a limit of time or memory ended.",
            ended,
        );
        if groups.is_empty() {
            return;
        }
        for (name, help, value) in COUNTERS {
            let values: Vec<_> =
                groups.iter().map(|(labels, group)| (&**labels, value(group))).collect();
            text.counters(name, help, &values);
        }
        for (name, help, value) in GAUGES {
            let values: Vec<_> =
                groups.iter().map(|(labels, group)| (&**labels, value(group))).collect();
            text.gauges(name, help, &values);
        }
    }
}

type Metric<T> = (&'static str, &'static str, fn(&GroupFigures) -> T);

const COUNTERS: &[Metric<u64>] = &[
    ("prometheus_rule_evaluations_total", "Evaluations of the rules of a group.", |group| {
        group.evaluations
    }),
    (
        "prometheus_rule_evaluation_failures_total",
        "Evaluations of the rules of a group that failed.",
        |group| group.failures,
    ),
    (
        "prometheus_rule_group_iterations_total",
        "Scheduled evaluations of a group, including missed ones.",
        |group| group.iterations,
    ),
    (
        "prometheus_rule_group_iterations_missed_total",
        "Evaluations of a group that were left out because the one before took too long.",
        |group| group.missed,
    ),
    (
        "tidepool_rule_samples_refused_total",
        "Samples of the rules of a group that the store refused.",
        |group| group.refused,
    ),
];

const GAUGES: &[Metric<f64>] = &[
    ("prometheus_rule_group_interval_seconds", "Interval of a group.", |group| {
        group.interval.as_secs_f64()
    }),
    ("prometheus_rule_group_rules", "Number of rules of a group.", |group| group.rules as f64),
    (
        "prometheus_rule_group_last_duration_seconds",
        "Duration of the last evaluation of a group.",
        |group| group.last_duration.as_secs_f64(),
    ),
    (
        "prometheus_rule_group_last_rule_duration_sum_seconds",
        "Sum of the durations of a group's rules in its last evaluation.",
        |group| group.last_rule_durations.as_secs_f64(),
    ),
    (
        "prometheus_rule_group_last_restore_duration_seconds",
        "Duration of the restoration of a group's alerts.",
        |group| group.last_restore.as_secs_f64(),
    ),
    (
        "prometheus_rule_group_last_evaluation_timestamp_seconds",
        "Time of the last evaluation of a group, in seconds since the epoch.",
        |group| group.last_evaluation_ms as f64 / 1000.0,
    ),
    (
        "prometheus_rule_group_last_evaluation_samples",
        "Number of samples that the last evaluation of a group gave.",
        |group| group.last_samples as f64,
    ),
];

fn key(group: &Group) -> (String, String) {
    (group.file().to_owned(), group.name().to_owned())
}
