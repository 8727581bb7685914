//! Backtests: the same alerts as from one evaluation after the other, and the order of rules.

use super::engine::{Histogram, at, defaults, file_of, float, group_of, labels, options};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use tidepool_rules::alert::Change;
use tidepool_rules::backtest::{
    Done, FiredAlert, Outcome, Past, Terms, Times, backtest, evaluations,
};
use tidepool_rules::engine::{
    Answer, Moment, NewSample, NewValue, Query, Reads, Refusal, Sample, Series, Value,
};
use tidepool_rules::file::RuleFile;
use tidepool_rules::labels::LabelSet;

const MINUTE_MS: i64 = 60_000;

/// Values of series, by their names, at times.
type Values = dyn Fn(&str, i64) -> Option<f64>;

/// A store in which each expression is the name of a series, or `NAME before MS` for its value at
/// an earlier time. `stored` has the values of stored series.
struct Memory {
    stored: Box<Values>,
    /// A time at which all expressions fail.
    fails_at_ms: Option<i64>,
    names: BTreeSet<String>,
    computed: BTreeMap<LabelSet, BTreeMap<i64, f64>>,
    /// Numbers of evaluations of each query.
    queried: RefCell<Vec<i64>>,
}

impl Memory {
    fn new(stored: impl Fn(&str, i64) -> Option<f64> + 'static) -> Memory {
        let (names, computed, queried) = Default::default();
        Memory { stored: Box::new(stored), fails_at_ms: None, names, computed, queried }
    }
}

fn parts(expression: &str) -> (&str, i64) {
    let (name, before) = expression.split_once(" before ").unwrap_or((expression, "0"));
    (name, before.parse().expect("a number"))
}

impl Past for Memory {
    type Histogram = Histogram;

    fn reads(&self, expression: &str) -> Reads {
        match expression {
            "anything" => Reads::Anything,
            _ => Reads::Names([parts(expression).0.to_owned()].into()),
        }
    }

    fn computes(&mut self, names: &BTreeSet<String>) {
        self.names = names.clone();
    }

    fn oldest_read_ms(&self, expression: &str, time_ms: i64) -> Result<i64, String> {
        Ok(time_ms - parts(expression).1)
    }

    fn columns(&self, expression: &str, times: Times) -> Result<Vec<Series<Histogram>>, String> {
        let Times { start_ms, end_ms, step_ms } = times;
        let all = || (start_ms..=end_ms).step_by(step_ms as usize);
        self.queried.borrow_mut().push(all().count() as i64);
        if self.fails_at_ms.is_some_and(|time_ms| all().any(|at_ms| at_ms == time_ms)) {
            return Err("it fails at a time".to_owned());
        }
        let (name, before_ms) = parts(expression);
        let found = |value: &dyn Fn(i64) -> Option<f64>| -> Vec<(i64, Value<Histogram>)> {
            let value = |at_ms| Some((at_ms, Value::Float(value(at_ms - before_ms)?)));
            all().filter_map(value).collect()
        };
        if !self.names.contains(name) {
            let samples = found(&|at_ms| (self.stored)(name, at_ms));
            return Ok(vec![Series { labels: labels(&[("__name__", name)]), samples }]);
        }
        let computed = self.computed.iter().filter(|(labels, _)| labels.get("__name__") == name);
        let series = computed.map(|(labels, values)| {
            let samples = found(&|at_ms| values.get(&at_ms).copied());
            Series { labels: labels.clone(), samples }
        });
        Ok(series.collect())
    }

    fn instant(&self, query: &Query<'_>) -> Result<Answer<Histogram>, String> {
        let time_ms = query.time_ms;
        let times = Times { start_ms: time_ms, end_ms: time_ms, step_ms: 1 };
        let series = self.columns(query.expression, times)?.into_iter();
        let sample = |series: Series<Histogram>| {
            let (_, value) = series.samples.into_iter().next()?;
            Some(Sample { labels: series.labels, value })
        };
        Ok(Answer::Vector(series.filter_map(sample).collect()))
    }

    fn compute(
        &mut self,
        samples: &[NewSample<Histogram>],
    ) -> Result<Vec<(usize, Refusal)>, String> {
        for sample in samples {
            if let NewValue::Float(value) = sample.value {
                let series = self.computed.entry(sample.series.clone()).or_default();
                series.insert(sample.time_ms, value);
            }
        }
        Ok(Vec::new())
    }

    fn now(&self) -> Moment {
        Moment::default()
    }

    fn end(&self) -> Option<String> {
        None
    }
}

/// The rules in the group of [`group_of`], so that they have its slots.
fn rules_of(rules: &str) -> RuleFile {
    file_of("rules.yml", &format!("groups: [{{name: default, rules: [{rules}]}}]"))
}

fn terms(minutes: i64) -> Terms {
    let (alerts_max, listed_max) = (100, 100);
    let end_ms = minutes * MINUTE_MS - 1;
    Terms { start_ms: 0, end_ms, defaults: defaults(), alerts_max, listed_max }
}

fn run(rules: &str, minutes: i64, memory: &mut Memory) -> Outcome {
    backtest(&[rules_of(rules)], &terms(minutes), memory).expect("an outcome")
}

fn done<'o>(outcome: &'o Outcome, name: &str) -> &'o Done {
    let mut rules = outcome.groups[0].rules.iter();
    &rules.find(|outcome| outcome.rule.name() == name).expect("the rule").done
}

fn fired<'o>(outcome: &'o Outcome, name: &str) -> &'o [FiredAlert] {
    match done(outcome, name) {
        Done::Alerting { alerts, .. } => alerts,
        Done::Recording { .. } => panic!("{name} is no alert"),
    }
}

/// High in each seventh hour for 50 minutes and a gap within, and for the last minutes.
fn wave(at_ms: i64) -> Option<f64> {
    let minute = at_ms.div_euclid(MINUTE_MS);
    let is_high = minute % 420 < 50 && minute % 420 != 20 || minute >= 2990;
    is_high.then_some(minute as f64)
}

#[test]
fn alerts_are_those_of_one_evaluation_after_the_other() {
    const RULE: &str = "{alert: A, expr: a, for: 5m, keep_firing_for: 2m, \
                        annotations: {of: \"{{ $value }}\"}}";
    let mut group = group_of(RULE);
    group.skip_restore();
    let mut engine = at(|at_ms| {
        wave(at_ms).map(|value| float(value, &[("__name__", "a")])).into_iter().collect()
    });
    let slots = group.slots();
    let mut slot_ms = slots.at_or_before(-1) + slots.interval_ms();
    let mut expected: Vec<FiredAlert> = Vec::new();
    while slot_ms < 3000 * MINUTE_MS {
        for transition in
            group.evaluate(slot_ms, &mut engine, &options()).rules.remove(0).transitions
        {
            match transition.change {
                Change::Firing => expected.push(FiredAlert {
                    labels: transition.alert.labels,
                    annotations: transition.alert.annotations,
                    value: transition.alert.value,
                    active_at_ms: transition.alert.active_at_ms,
                    fired_at_ms: slot_ms,
                    resolved_at_ms: None,
                }),
                Change::Resolved => {
                    expected.last_mut().expect("it fired").resolved_at_ms = Some(slot_ms);
                }
                Change::Pending | Change::Dropped => {}
            }
        }
        slot_ms += slots.interval_ms();
    }
    assert!(expected.len() > 7 && expected.last().is_some_and(|it| it.resolved_at_ms.is_none()));
    let mut memory = Memory::new(|_, at_ms| wave(at_ms));
    let outcome = run(RULE, 3000, &mut memory);
    assert_eq!(fired(&outcome, "A"), expected);
    let Done::Alerting { fired, .. } = done(&outcome, "A") else { panic!("an alert") };
    assert_eq!(*fired, expected.len() as u64);
    let rule = &outcome.groups[0].rules[0];
    assert_eq!((rule.evaluations, rule.failures), (3000, 0));
    assert_eq!(evaluations(&[rules_of(RULE)], &terms(3000)), 3000);
    assert!(memory.queried.borrow().len() < 10, "{:?}", memory.queried);
}

#[test]
fn a_time_that_fails_costs_no_other() {
    const RULE: &str = "{alert: A, expr: a}";
    let probe = run(RULE, 1, &mut Memory::new(|_, _| Some(1.0)));
    let first_ms = fired(&probe, "A")[0].fired_at_ms;
    let mut memory = Memory::new(|_, _| Some(1.0));
    memory.fails_at_ms = Some(first_ms + 700 * MINUTE_MS);
    let outcome = run(RULE, 2000, &mut memory);
    let rule = &outcome.groups[0].rules[0];
    assert_eq!((rule.evaluations, rule.failures), (2000, 1));
    assert_eq!(rule.last_error.as_deref(), Some("it fails at a time"));
    // As in a server, an evaluation that fails ends no alert.
    assert_eq!(fired(&outcome, "A").len(), 1);
    assert!(memory.queried.borrow().len() < 100, "{:?}", memory.queried);
}

#[test]
fn what_is_read_is_computed_before_and_early_enough() {
    let rules = "{alert: A, expr: c before 120000}, {record: c, expr: b before 60000}, \
                 {record: b, expr: a}, {record: unread, expr: a}, {alert: N, expr: ALERTS}";
    // A stored series of the name of a computed one is not read.
    let mut memory = Memory::new(|name, _| (name == "a" || name == "c").then_some(7.0));
    let outcome = run(rules, 10, &mut memory);
    let alert = &fired(&outcome, "A")[0];
    assert_eq!((alert.value, alert.labels.get("alertname")), (7.0, "A"));
    assert!(alert.fired_at_ms < MINUTE_MS, "it has data from the start on");
    assert!(matches!(done(&outcome, "b"), Done::Recording { samples: 10, series: 1 }));
    assert_eq!(fired(&outcome, "N").len(), 1, "{:?}", memory.computed);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(outcome.stored, names(&["a"]));
    assert_eq!(outcome.computed, names(&["ALERTS", "b", "c"]));
    assert!(outcome.circular.is_empty() && !outcome.reads_any);
    assert!(!memory.computed.keys().any(|labels| labels.get("__name__") == "unread"));
}

#[test]
fn rules_that_read_each_other_are_named() {
    let rules = "{record: a, expr: b}, {record: b, expr: a}, {record: c, expr: anything}, \
                 {record: own, expr: own before 60000}";
    let outcome = run(rules, 3, &mut Memory::new(|_, _| Some(1.0)));
    let circular: Vec<&str> = outcome.circular.iter().map(String::as_str).collect();
    assert_eq!(circular, ["a", "own"]);
    assert!(outcome.reads_any);
}

#[test]
fn what_is_listed_and_counted_is_bounded_and_whole() {
    // It fires in every other minute.
    let memory = |_: &str, at_ms: i64| (at_ms / MINUTE_MS % 2 == 0).then_some(1.0);
    let files = [rules_of("{alert: A, expr: a}, {alert: P, expr: a, for: 5m}")];
    let terms = Terms { listed_max: 3, ..terms(20) };
    let outcome = backtest(&files, &terms, &mut Memory::new(memory)).expect("an outcome");
    let Done::Alerting { pending, fired, alerts } = done(&outcome, "A") else { panic!("an alert") };
    assert_eq!((*pending, *fired, alerts.len()), (0, 10, 3));
    let Done::Alerting { pending, fired, .. } = done(&outcome, "P") else { panic!("an alert") };
    assert_eq!((*pending, *fired), (10, 0));
}
