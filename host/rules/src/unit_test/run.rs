//! Runs a test: loads samples, evaluates the groups at each interval, compares alerts and answers.

use super::histogram::Histogram;
use super::notation::{Item, SequenceCursor};
use super::shown::{labels_text, time_text};
use super::store::{Conditions, Laboratory, Store};
use super::{Options, Test, TestFile, alerts, samples};
use crate::clock::milliseconds;
use crate::engine::{Engine, NewSample, NewValue, Series, Value};
use crate::file::{self, Labels, RuleFile, RuleFileError};
use crate::group::{self, Defaults, Group, RefusedCounts};
use crate::labels::LabelSet;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tidepool_model::number::plain;
use tidepool_settings::duration::duration_text;

/// Maximum number of evaluations of a test: a year of minutes, twice.
pub const EVALUATIONS_MAX: i64 = 1_000_000;

/// Maximum number of alerts of all groups.
const ALERTS_MAX: usize = 100_000;

/// Samples that are handed over at once.
const LOADED_AT_ONCE: usize = 10_000;

/// A file of tests with what its tests share.
pub struct Bench<'a> {
    pub file: &'a TestFile,
    pub rules: &'a [Result<RuleFile, RuleFileError>],
    pub options: &'a Options<'a>,
}

impl Bench<'_> {
    /// Runs a test and returns what failed. Lines for `--debug` go to `err`.
    pub fn run<L: Laboratory>(
        &self,
        name: &str,
        test: &Test,
        laboratory: &mut L,
        err: &mut dyn Write,
    ) -> Vec<String> {
        if !test.mistakes.is_empty() {
            let path = self.file.path.display();
            return test.mistakes.iter().map(|mistake| format!("{path}:{mistake}")).collect();
        }
        let evaluation_interval = self.file.evaluation_interval;
        let conditions = Conditions { start_ms: test.start_ms, evaluation_interval };
        let mut store = match laboratory.fresh(&conditions) {
            Ok(store) => store,
            Err(error) => return vec![error],
        };
        let begun = store.now();
        // If standard error is closed, the exit code still tells.
        if self.options.debug {
            let _ = writeln!(err, "DEBUG: Starting test {name}");
        }
        let failures = self.checked(test, &mut store, err);
        if self.options.debug {
            let took = store.now().monotonic.saturating_sub(begun.monotonic);
            let took = i64::try_from(took.as_nanos()).unwrap_or(i64::MAX);
            let took = crate::template::duration_text(took);
            let _ = writeln!(err, "DEBUG: Test {name} finished, took {took}");
        }
        failures
    }

    fn checked<S: Store>(&self, test: &Test, store: &mut S, err: &mut dyn Write) -> Vec<String> {
        let wrong = self.rules.iter().filter_map(|file| file.as_ref().err());
        let wrong: Vec<String> = wrong.map(ToString::to_string).collect();
        if !wrong.is_empty() {
            return wrong;
        }
        if let Some(alert) = test.alerts.iter().find(|alert| alert.alert.is_empty()) {
            let group = match test.name.as_str() {
                "" => String::new(),
                name => format!(" (in TestGroup {name})"),
            };
            return vec![format!(
                "an item under alert_rule_test misses required attribute alertname at eval_time \
                 {}{group}",
                duration_text(alert.eval_time)
            )];
        }
        let interval_ms = milliseconds(self.file.evaluation_interval).max(1);
        let evaluations = milliseconds(last_time(test)) / interval_ms;
        if evaluations >= EVALUATIONS_MAX {
            return vec![format!(
                "more than {EVALUATIONS_MAX} evaluations; raise evaluation_interval or lower \
                 eval_time"
            )];
        }
        let (mut failures, goes_on) = self.evaluated(test, store, interval_ms, evaluations);
        if !goes_on {
            return failures;
        }
        for expression in &test.expressions {
            let time_ms = test.start_ms.saturating_add(milliseconds(expression.eval_time));
            let is_fuzzy = self.file.fuzzy_compare;
            failures.extend(samples::failure(expression, time_ms, store, is_fuzzy));
        }
        if self.options.debug {
            dump(test, store, err);
        }
        failures
    }

    /// Evaluates the groups and compares alerts. Returns what failed, and whether the test goes on.
    fn evaluated<S: Store>(
        &self,
        test: &Test,
        store: &mut S,
        interval_ms: i64,
        evaluations: i64,
    ) -> (Vec<String>, bool) {
        let mut groups = self.groups(test);
        let mut input = Input::new(test);
        let mut alert_tests = BTreeMap::<i64, Vec<_>>::new();
        for alert in &test.alerts {
            let number = milliseconds(alert.eval_time) / interval_ms;
            alert_tests.entry(number).or_default().push(alert);
        }
        let options = group::Options {
            settle_ms: 0,
            rule_alerts_max: ALERTS_MAX,
            alerts_max: ALERTS_MAX,
            ..group::Options::default()
        };
        let mut failures = Vec::new();
        for number in 0..=evaluations {
            let slot_ms = test.start_ms.saturating_add(number * interval_ms);
            if let Err(error) = input.load_till(slot_ms, store) {
                failures.push(error);
                return (failures, false);
            }
            let mut are_wrong = false;
            for group in &mut groups {
                let report = group.evaluate(slot_ms, store, &options);
                let is_wrong = |rule: &group::RuleReport| {
                    rule.result.is_err() || rule.refused != RefusedCounts::default()
                };
                if report.rules.iter().any(is_wrong) {
                    are_wrong = true;
                    failures.extend(rule_errors(group, slot_ms));
                }
            }
            if store.is_stopping() {
                failures.push("the test was interrupted".to_owned());
                are_wrong = true;
            }
            if are_wrong {
                return (failures, false);
            }
            let mut due = alert_tests.remove(&number).unwrap_or_default();
            due.sort_by_key(|alert| alert.eval_time);
            let wrong = due
                .into_iter()
                .filter_map(|alert| alerts::failure(&test.name, alert, &groups, self.options.diff));
            failures.extend(wrong);
        }
        (failures, true)
    }

    /// Makes the groups, in the order of their evaluation.
    fn groups(&self, test: &Test) -> Vec<Group> {
        let defaults = Defaults {
            // A longer step would be a jump of the clock.
            interval: self.file.evaluation_interval,
            query_offset: Duration::ZERO,
            external_labels: Arc::new(test.external_labels.clone()),
            external_url: test.external_url.as_str().into(),
        };
        let files = self.rules.iter().filter_map(|file| file.as_ref().ok());
        let mut groups: Vec<Group> = files
            .flat_map(|file| file.groups.iter().map(move |group| (file, group)))
            .map(|(file, group)| {
                let group = file::Group { interval: None, ..group.clone() };
                let mut group = Group::new(&file.path, &group, &defaults);
                group.skip_restore();
                group
            })
            .collect();
        let order = self.file.group_eval_order.iter().enumerate();
        let order: HashMap<&str, usize> =
            order.map(|(place, name)| (name.as_str(), place)).collect();
        groups.sort_by_key(|group| order.get(group.name()).copied().unwrap_or(0));
        groups
    }
}

fn rule_errors(group: &Group, slot_ms: i64) -> Vec<String> {
    let time = time_text(slot_ms);
    let rules = group.snapshot().rules.into_iter();
    let wrong = rules.filter_map(|rule| Some((rule.name, rule.last_error?)));
    wrong.map(|(name, error)| format!("    rule: {name}, time: {time}, err: {error}")).collect()
}

/// The greatest time since the start at which something is compared.
fn last_time(test: &Test) -> Duration {
    let alerts = test.alerts.iter().map(|alert| alert.eval_time);
    let expressions = test.expressions.iter().map(|expression| expression.eval_time);
    alerts.chain(expressions).max().unwrap_or_default()
}

/// Input series, of which the steps before the next time are loaded.
struct Input<'t> {
    series: Vec<(LabelSet, SequenceCursor<'t>)>,
    next_ms: i64,
    interval_ms: i64,
}

impl<'t> Input<'t> {
    fn new(test: &'t Test) -> Input<'t> {
        // Of a series that is there twice, the last values count.
        let mut places = HashMap::<&Labels, usize>::new();
        let mut series = Vec::new();
        for input in &test.series {
            let row = (LabelSet::of(&input.labels), input.values.items());
            match places.get(&input.labels) {
                Some(place) => series[*place] = row,
                None => {
                    places.insert(&input.labels, series.len());
                    series.push(row);
                }
            }
        }
        let interval_ms = milliseconds(test.interval).max(1);
        Input { series, next_ms: test.start_ms, interval_ms }
    }

    fn load_till<S: Store>(&mut self, time_ms: i64, store: &mut S) -> Result<(), String> {
        let mut samples: Vec<NewSample<Histogram>> = Vec::new();
        while self.next_ms <= time_ms && !self.series.is_empty() {
            let time_ms = self.next_ms;
            self.series.retain_mut(|(labels, items)| {
                let Some(item) = items.next() else { return false };
                let value = match item {
                    Item::Omitted => return true,
                    Item::Float(value)
                        if value.to_bits() == tidepool_model::STALE_NAN.to_bits() =>
                    {
                        NewValue::Stale
                    }
                    Item::Float(value) => NewValue::Float(value),
                    Item::Histogram(histogram) => NewValue::Histogram(histogram),
                };
                samples.push(NewSample { series: labels.clone(), time_ms, value });
                true
            });
            self.next_ms = self.next_ms.saturating_add(self.interval_ms);
            if samples.len() >= LOADED_AT_ONCE {
                store.load(&samples)?;
                samples.clear();
            }
        }
        match samples.is_empty() {
            true => Ok(()),
            false => store.load(&samples),
        }
    }
}

/// Writes all samples of a test.
fn dump<S: Store>(test: &Test, store: &S, err: &mut dyn Write) {
    // The next whole second, as in upstream.
    let range = Duration::from_secs(last_time(test).as_secs() + 1);
    let (range_ms, range) = (milliseconds(range), time_text(milliseconds(range)));
    let expression = format!("{{__name__=~\".+\"}}[{range}]");
    let dumped = store.dump(&expression, test.start_ms.saturating_add(range_ms));
    let _ = match dumped {
        Ok(series) => {
            let texts: Vec<String> = series.iter().map(series_text).collect();
            writeln!(
                err,
                "DEBUG: Dump of all data (input_series and rules) at {range}:\n{}",
                texts.join("\n")
            )
        }
        Err(error) => {
            writeln!(err, "DEBUG: Failed query exec, expr: {expression:?}, err: {error}")
        }
    };
}

fn series_text<H: std::fmt::Display>(series: &Series<H>) -> String {
    let text = |(time_ms, value): &(i64, Value<H>)| match value {
        Value::Float(value) => format!("{} @[{time_ms}]", plain(*value)),
        Value::Histogram(histogram) => format!("{histogram} @[{time_ms}]"),
    };
    let samples: Vec<String> = series.samples.iter().map(text).collect();
    format!("{} =>\n{}", labels_text(&series.labels.to_map()), samples.join("\n"))
}
