//! What a new configuration keeps of the groups before it.

use crate::engine::{Engine, Origin};
use crate::file::Labels;
use crate::group::Group;
use crate::group::evaluate::write_markers;
use crate::group::rule::{Definition, Rule};
use crate::labels::LabelSet;
use std::collections::{HashMap, VecDeque};
use std::mem::take;

/// Intervals after which a removed group gets its markers. Rules that were moved or renamed write
/// their first samples in that time.
const REMOVED_INTERVALS: i64 = 2;

#[derive(Debug, Default)]
pub struct Reloaded {
    /// In the order of the new configuration.
    pub groups: Vec<Group>,
    pub removed: Vec<Removed>,
}

/// Series of a group that is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Removed {
    pub file: String,
    pub group: String,
    pub series: Vec<LabelSet>,
    pub interval_ms: i64,
    pub query_offset_ms: i64,
}

/// Replaces groups by those of a new configuration, which must not have been evaluated. Groups are
/// told apart by file and name: one that did not change goes on, one that did takes over the state
/// of its rules.
///
/// New rules are not restored yet: [`Group::restore_requests`] has those, and a rule that moved to
/// another group finds its alerts there. [`Group::skip_restore`] does what upstream does.
pub fn reload(old: Vec<Group>, new: Vec<Group>) -> Reloaded {
    let key = |group: &Group| (group.file.clone(), group.name.clone());
    let mut old: HashMap<(String, String), Group> =
        old.into_iter().map(|group| (key(&group), group)).collect();
    let mut reloaded = Reloaded::default();
    for mut group in new {
        match old.remove(&key(&group)) {
            Some(before) if before.is_same(&group) => group = before,
            Some(before) => group.carry_over(before),
            None => {}
        }
        reloaded.groups.push(group);
    }
    reloaded.removed = old.into_values().map(Group::remove).collect();
    reloaded.removed.sort_by(|a, b| (&a.file, &a.group).cmp(&(&b.file, &b.group)));
    reloaded
}

impl Group {
    /// Whether two groups were made of the same configuration.
    pub fn is_same(&self, other: &Group) -> bool {
        let rules = |group: &Group| -> Vec<Definition> {
            group.rules.iter().map(|rule| rule.definition.clone()).collect()
        };
        (&self.name, &self.file, self.slots, self.limit, self.query_offset_ms)
            == (&other.name, &other.file, other.slots, other.limit, other.query_offset_ms)
            && (&self.external_labels, &self.external_url)
                == (&other.external_labels, &other.external_url)
            && rules(self) == rules(other)
    }

    /// Takes over the state of a group before a reload: rules are the same if name and labels are;
    /// of several such, the first takes over from the first, and so on. Series of rules that are
    /// gone get their markers at the end of the next evaluation.
    pub fn carry_over(&mut self, from: Group) {
        self.evaluated = from.evaluated;
        self.last_slot_ms = from.last_slot_ms.or(self.last_slot_ms);
        (self.before, self.is_held) = (from.before, from.is_held);
        self.step_interval_ms = self.slots.interval_ms().max(from.step_interval_ms);
        self.stale.extend(from.stale);
        let mut rules: HashMap<(String, Labels), VecDeque<Rule>> = HashMap::new();
        for rule in from.rules {
            let key = (rule.definition.name().to_owned(), rule.definition.labels.clone());
            rules.entry(key).or_default().push_back(rule);
        }
        for rule in &mut self.rules {
            let key = (rule.definition.name().to_owned(), rule.definition.labels.clone());
            let Some(mut from) = rules.get_mut(&key).and_then(VecDeque::pop_front) else {
                continue;
            };
            rule.series = take(&mut from.series);
            if let (Some(rule), Some(from)) = (rule.alerting_mut(), from.alerting_mut()) {
                rule.alerts = take(&mut from.alerts);
                rule.is_restored = from.is_restored;
            }
        }
        let gone = rules.into_values().flatten();
        self.stale.extend(gone.flat_map(|rule| rule.series));
    }

    /// Ends a group whose configuration is gone. At the end of the program groups are dropped
    /// instead: their series go on after the next start.
    pub fn remove(self) -> Removed {
        let mut series = self.stale;
        series.extend(self.rules.into_iter().flat_map(|rule| rule.series));
        let interval_ms = self.slots.interval_ms();
        let (file, group, query_offset_ms) = (self.file, self.name, self.query_offset_ms);
        Removed { file, group, series, interval_ms, query_offset_ms }
    }
}

impl Removed {
    /// When to write the markers of a group that was removed at a time.
    pub fn due_ms(&self, removed_ms: i64) -> i64 {
        removed_ms.saturating_add(self.interval_ms.saturating_mul(REMOVED_INTERVALS))
    }

    /// Writes the markers, with the time of the removal: an engine refuses those of series that
    /// have newer samples, because another group goes on with them. Not to be called if the
    /// program ends before [`Removed::due_ms`].
    pub fn write_markers<E: Engine + ?Sized>(
        &self,
        removed_ms: i64,
        engine: &mut E,
    ) -> Result<(), String> {
        let origin = Origin { file: &self.file, group: &self.group, rule: "", is_alert: false };
        let time_ms = removed_ms.saturating_sub(self.query_offset_ms);
        if self.series.is_empty() {
            return Ok(());
        }
        write_markers(&self.series, time_ms, engine, origin)
    }
}
