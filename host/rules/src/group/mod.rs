//! Groups of rules: evaluation at slots, and what is kept between two of them.
//!
//! ```text
//! file::Group ─▶ Group ─ evaluate(slot) ─▶ Report: counts, errors, changes of alerts, notices
//!                 │ ▲                └───▶ Engine: queries, samples, stale markers
//!           reload│ │carry_over
//!                 ▼ │
//!                new Group, or Removed: series that need markers
//! ```
//!
//! Begin with [`Group::evaluate`]. `slots` says when it is due, `reload` what a new configuration
//! keeps, `snapshot` what is shown, `batch` which samples are stored together.
//!
//! Invariant: a rule that fails keeps its series, its alerts, and their state.
//!
//! Differences from upstream: time of a clock that was set does not count (`clock`); alerts come
//! back at once after a start (`alert::restore`); their number is bounded; changed external labels
//! or a changed URL make a group anew; rules are never evaluated at the same time.
//!
//! Source: `rules/group.go`, `rules/manager.go` and `rules/recording.go`, Prometheus 3.16.

mod batch;
mod evaluate;
mod reload;
mod report;
mod rule;
mod slots;
mod snapshot;

pub use reload::{Reloaded, Removed, reload};
pub use report::{Options, RefusedCounts, Report, RuleReport};
pub use slots::Slots;
pub use snapshot::{AlertSnapshot, GroupSnapshot, Health, KindSnapshot, RuleSnapshot};

use crate::alert::{AlertingRule, RestoreOptions, RestoreRequest, StoredSample, Told};
use crate::clock::{Before, milliseconds};
use crate::engine::Engine;
use crate::file::{self, Labels};
use crate::labels::LabelSet;
use rule::{Definition, Rule};
pub(crate) use rule::{may_query, series_names};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What groups take from the configuration where they say nothing themselves.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// Not zero.
    pub interval: Duration,
    pub query_offset: Duration,
    pub external_labels: Arc<Labels>,
    /// URL under which users reach the server.
    pub external_url: Arc<str>,
}

/// A group that is evaluated.
#[derive(Debug)]
pub struct Group {
    name: String,
    file: String,
    slots: Slots,
    query_offset_ms: i64,
    limit: i64,
    external_labels: Arc<Labels>,
    external_url: Arc<str>,
    rules: Vec<Rule>,
    /// Series of rules that a reload removed, without markers yet.
    stale: Vec<LabelSet>,
    last_slot_ms: Option<i64>,
    /// Longest usual step to the next slot: the interval, or the one before a reload.
    step_interval_ms: i64,
    /// The clock before it was set back.
    before: Option<Before>,
    is_held: bool,
    /// Whether it is known what the rules read.
    knows_reads: bool,
    /// Time of the last evaluation, and how long it took.
    evaluated: Option<(i64, Duration)>,
}

impl Group {
    /// Makes a group whose alerts are not restored yet: it can be evaluated, but writes no samples
    /// of alerts before [`Group::restore`] or [`Group::skip_restore`]. A template that does not
    /// parse becomes the text that upstream puts in its place.
    pub fn new(path: &Path, group: &file::Group, defaults: &Defaults) -> Group {
        let file = path.to_string_lossy().into_owned();
        let slots = Slots::new(&file, &group.name, group.interval.unwrap_or(defaults.interval));
        let rules = group.rules.iter().map(|rule| Rule::new(rule, group, defaults)).collect();
        Group {
            name: group.name.clone(),
            file,
            slots,
            query_offset_ms: milliseconds(group.query_offset.unwrap_or(defaults.query_offset)),
            limit: group.limit,
            external_labels: defaults.external_labels.clone(),
            external_url: defaults.external_url.clone(),
            rules,
            stale: Vec::new(),
            last_slot_ms: None,
            step_interval_ms: slots.interval_ms(),
            before: None,
            is_held: false,
            knows_reads: false,
            evaluated: None,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn file(&self) -> &str {
        &self.file
    }

    pub fn slots(&self) -> Slots {
        self.slots
    }

    pub fn query_offset_ms(&self) -> i64 {
        self.query_offset_ms
    }

    /// Slot of the last evaluation, or the time of the restoration before the first one.
    pub fn last_slot_ms(&self) -> Option<i64> {
        self.last_slot_ms
    }

    pub fn len(&self) -> usize {
        self.rules.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Number of pending and firing alerts.
    pub fn alert_count(&self) -> usize {
        self.rules.iter().map(Rule::alert_count).sum()
    }

    pub(crate) fn alerting_rules(&self) -> impl Iterator<Item = &AlertingRule> {
        self.rules.iter().filter_map(Rule::alerting)
    }

    /// What to query of the store before the alerts of this group come back: each alerting rule
    /// that is not restored. Requests of all groups belong into `alert::mark_shared`.
    pub fn restore_requests(&self) -> Vec<RestoreRequest> {
        let rules = self.rules.iter().enumerate();
        let alerting = rules.filter_map(|(position, rule)| Some((position, rule.alerting()?)));
        let missing = alerting.filter(|(_, rule)| !rule.is_restored());
        missing.map(|(position, rule)| rule.restore_request(position)).collect()
    }

    /// Brings the alerts of a rule back from the last samples of its series `ALERTS_FOR_STATE` and
    /// `ALERTS`. Best called before the first evaluation, at a time that is not doubted.
    pub fn restore(
        &mut self,
        request: &RestoreRequest,
        for_state: &[StoredSample],
        alerts: &[StoredSample],
        now_ms: i64,
        options: &RestoreOptions,
    ) {
        let Some(rule) = self.rules.get_mut(request.rule).and_then(Rule::alerting_mut) else {
            return;
        };
        let restored = rule.restored_alerts(for_state, alerts, now_ms, options);
        rule.restore(restored, now_ms, request.is_shared);
        self.last_slot_ms.get_or_insert(now_ms);
    }

    /// Brings back alerts that receivers take for firing, after [`Group::restore`]. Those of rules
    /// that are gone do not come back.
    pub fn bring_back(&mut self, mut told: Vec<Told>, now_ms: i64, alerts_max: usize) {
        for rule in self.rules.iter_mut().filter_map(Rule::alerting_mut) {
            told = rule.bring_back(told, now_ms, alerts_max);
        }
        self.last_slot_ms.get_or_insert(now_ms);
    }

    /// Asks the engine what the rules read, once.
    fn find_reads<E: Engine + ?Sized>(&mut self, engine: &E) {
        if !std::mem::replace(&mut self.knows_reads, true) {
            for rule in &mut self.rules {
                let Definition { kind, labels, expr } = &rule.definition;
                if !may_query(kind, labels.values()) {
                    rule.reads = engine.reads(expr);
                }
            }
        }
    }

    /// Takes all alerts for restored: in a reload, or where the store cannot be queried.
    pub fn skip_restore(&mut self) {
        self.rules.iter_mut().filter_map(Rule::alerting_mut).for_each(|rule| {
            rule.is_restored = true;
        });
    }
}
