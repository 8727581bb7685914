//! What rules would have done over a stored range of time.
//!
//! ```text
//! rule files ─▶ order: what is read before what reads it ─▶ each rule at all of its slots ─▶ Outcome
//!                                                              │ replay: columns as answers
//!                                                           Past: stored and computed series
//! ```
//!
//! A rule is evaluated at all slots of the range before the next one, by the same [`Group`] as in a
//! server. So its expression is answered by columns, which cost far less than as many queries. What
//! rules record takes the place of stored series of the same name.
//!
//! Begin with [`backtest`]. Alerts begin at the start of the range without a state. A rule that
//! reads itself, or rules that read each other, find nothing of what is computed later: they are
//! named in the outcome.

mod order;
mod outcome;
mod replay;

pub use outcome::{Done, FiredAlert, GroupOutcome, Outcome, RuleOutcome};

use crate::engine::{Answer, Moment, NewSample, Query, Reads, Refusal, Series};
use crate::file::{self, RuleFile};
use crate::group::{Defaults, Group, Options, Slots};
use order::{Plan, Step};
use outcome::Collector;
use replay::Replay;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Times that follow one another, in milliseconds; the last one is included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub start_ms: i64,
    pub end_ms: i64,
    pub step_ms: i64,
}

/// Stored series, and series that rules compute.
pub trait Past {
    /// A native histogram, of which this crate knows the text for templates only.
    type Histogram: Clone + fmt::Display;

    /// Returns which series an expression reads.
    fn reads(&self, expression: &str) -> Reads;

    /// Tells the names of all computed series that rules read. Stored series of these names are not
    /// read.
    fn computes(&mut self, names: &BTreeSet<String>);

    /// Returns the oldest time of which an expression reads samples if it is evaluated at a time.
    fn oldest_read_ms(&self, expression: &str, time_ms: i64) -> Result<i64, String>;

    /// Evaluates an expression at each time. The answer has to be bounded.
    fn columns(
        &self,
        expression: &str,
        times: Times,
    ) -> Result<Vec<Series<Self::Histogram>>, String>;

    /// Evaluates a query of a template.
    fn instant(&self, query: &Query<'_>) -> Result<Answer<Self::Histogram>, String>;

    /// Adds computed samples, which rules read from then on. Those of a series ascend by time.
    fn compute(
        &mut self,
        samples: &[NewSample<Self::Histogram>],
    ) -> Result<Vec<(usize, Refusal)>, String>;

    fn now(&self) -> Moment;

    /// Why the backtest has to end, if it has to.
    fn end(&self) -> Option<String>;
}

/// Range and limits of a backtest.
#[derive(Clone, Debug)]
pub struct Terms {
    pub start_ms: i64,
    pub end_ms: i64,
    pub defaults: Defaults,
    /// Maximum number of alerts of a rule at a time.
    pub alerts_max: usize,
    /// Maximum number of alerts that fired and are listed.
    pub listed_max: usize,
}

/// Returns how many evaluations a range takes, for a bound that is checked before.
pub fn evaluations(files: &[RuleFile], terms: &Terms) -> u64 {
    let span_ms = terms.end_ms.saturating_sub(terms.start_ms).max(0).unsigned_abs();
    let groups = files.iter().flat_map(|file| &file.groups);
    let of_group = |group: &file::Group| {
        let interval_ms = interval(group, &terms.defaults).as_millis().max(1);
        let slots = (u128::from(span_ms) / interval_ms).saturating_add(1);
        slots.saturating_mul(group.rules.len() as u128)
    };
    let all = groups.map(of_group).fold(0u128, u128::saturating_add);
    u64::try_from(all).unwrap_or(u64::MAX)
}

/// Evaluates rules at all of their slots from the start to the end. An error says why `past` had it
/// end.
pub fn backtest<P: Past>(
    files: &[RuleFile],
    terms: &Terms,
    past: &mut P,
) -> Result<Outcome, String> {
    let plan = Plan::new(files, terms, past)?;
    let mut outcome = Outcome::new(files, &terms.defaults);
    outcome.computed = plan.kept.clone();
    outcome.circular = plan.circular.clone();
    past.computes(&plan.kept);
    let mut room = terms.listed_max;
    for step in &plan.steps {
        let collector = evaluated(step, files, terms, &plan, past, &mut room)?;
        outcome.note_reads(&step.reads);
        outcome.set(step, files, collector);
    }
    Ok(outcome)
}

/// Evaluates one rule at all of its slots.
fn evaluated<P: Past>(
    step: &Step,
    files: &[RuleFile],
    terms: &Terms,
    plan: &Plan,
    past: &mut P,
    room: &mut usize,
) -> Result<Collector, String> {
    let (file, group) = step.place(files);
    // Not of a clone of the group, which may have many rules.
    let &file::Group { position, interval, query_offset, limit, .. } = group;
    let single = file::Group {
        position,
        name: group.name.clone(),
        interval,
        query_offset,
        limit,
        labels: group.labels.clone(),
        rules: vec![step.rule(files).clone()],
    };
    let mut group = Group::new(&file.path, &single, &terms.defaults);
    group.skip_restore();
    let slots = group.slots();
    let mut slot_ms = first_slot(slots, step.start_ms);
    let options = Options {
        rule_alerts_max: terms.alerts_max,
        alerts_max: terms.alerts_max,
        ..Options::default()
    };
    let times = Times {
        start_ms: slot_ms.saturating_sub(group.query_offset_ms()),
        end_ms: terms.end_ms.saturating_sub(group.query_offset_ms()),
        step_ms: slots.interval_ms(),
    };
    let mut collector = Collector::new(step.rule(files));
    let mut replay = Replay::new(past, &step.rule(files).expr, times, &plan.kept);
    while slot_ms <= terms.end_ms {
        let report = group.evaluate(slot_ms, &mut replay, &options);
        if let Some(why) = replay.end() {
            return Err(why);
        }
        if slot_ms >= terms.start_ms {
            collector.add(report, room);
        }
        slot_ms = slot_ms.saturating_add(slots.interval_ms());
    }
    collector.finish(&replay.series);
    Ok(collector)
}

fn first_slot(slots: Slots, time_ms: i64) -> i64 {
    let before = slots.at_or_before(time_ms.saturating_sub(1));
    before.saturating_add(slots.interval_ms())
}

/// The interval of a group in which rules are evaluated.
fn interval(group: &file::Group, defaults: &Defaults) -> Duration {
    group.interval.unwrap_or(defaults.interval)
}
