//! In which order rules are evaluated, and from when on.

use super::{Past, Terms};
use crate::alert::{ALERTS, ALERTS_FOR_STATE};
use crate::engine::Reads;
use crate::file::{Group, Kind, Rule, RuleFile};
use crate::group::{may_query, series_names};
use std::collections::{BTreeMap, BTreeSet};

/// All rules in their order.
pub struct Plan {
    pub steps: Vec<Step>,
    /// Names of computed series that rules read.
    pub kept: BTreeSet<String>,
    /// Names of rules that read what is computed after them.
    pub circular: BTreeSet<String>,
}

/// The evaluation of one rule.
pub struct Step {
    file: usize,
    group: usize,
    rule: usize,
    pub reads: Reads,
    /// Time of the first evaluation, or before it.
    pub start_ms: i64,
}

impl Step {
    pub fn place<'f>(&self, files: &'f [RuleFile]) -> (&'f RuleFile, &'f Group) {
        let file = &files[self.file];
        (file, &file.groups[self.group])
    }

    pub fn rule<'f>(&self, files: &'f [RuleFile]) -> &'f Rule {
        &self.place(files).1.rules[self.rule]
    }

    /// Positions of file, group and rule.
    pub fn position(&self) -> (usize, usize, usize) {
        (self.file, self.group, self.rule)
    }
}

impl Plan {
    /// Asks what each rule reads. The order of the files holds where it can.
    pub fn new<P: Past>(files: &[RuleFile], terms: &Terms, past: &P) -> Result<Plan, String> {
        let mut steps = Vec::new();
        for (file, content) in files.iter().enumerate() {
            for (group, content) in content.groups.iter().enumerate() {
                let labels = &content.labels;
                for (rule, content) in content.rules.iter().enumerate() {
                    if let Some(why) = past.end() {
                        return Err(why);
                    }
                    let labels = labels.values().chain(content.labels.values());
                    let reads = match may_query(&content.kind, labels) {
                        true => Reads::Anything,
                        false => past.reads(&content.expr),
                    };
                    let start_ms = terms.start_ms;
                    steps.push(Step { file, group, rule, reads, start_ms });
                }
            }
        }
        // What reads anything may read what rules record. `ALERTS` is read by name.
        let recorded = |step: &Step| match &step.rule(files).kind {
            Kind::Recording { record } => Some(record.clone()),
            Kind::Alerting { .. } => None,
        };
        let written: BTreeSet<&str> =
            steps.iter().flat_map(|step| series_names(&step.rule(files).kind)).collect();
        let mut kept = BTreeSet::new();
        for step in &steps {
            if let Reads::Names(read) = &step.reads {
                let read = read.iter().filter(|name| written.contains(name.as_str()));
                kept.extend(read.cloned());
            }
        }
        if steps.iter().any(|step| step.reads == Reads::Anything) {
            kept.extend(steps.iter().filter_map(recorded));
        }
        let (mut steps, circular) = ordered(steps, files);
        begin_earlier(&mut steps, files, past, &kept)?;
        Ok(Plan { steps, kept, circular })
    }
}

/// Puts each rule behind all that write what it reads. Returns the names of the rules for which
/// that is not possible. Alerts of rules that read `ALERTS` are read in the order of the files.
fn ordered(steps: Vec<Step>, files: &[RuleFile]) -> (Vec<Step>, BTreeSet<String>) {
    let written = |step: &Step| -> Vec<String> {
        let rule = step.rule(files);
        let reads_alerts = match &step.reads {
            Reads::Names(read) => read.contains(ALERTS) || read.contains(ALERTS_FOR_STATE),
            Reads::Anything => false,
        };
        match &rule.kind {
            Kind::Alerting { .. } if reads_alerts => Vec::new(),
            _ => series_names(&rule.kind).into_iter().map(str::to_owned).collect(),
        }
    };
    // Number of rules left that write a name, and the rules that wait for it.
    let mut writers: BTreeMap<String, usize> = BTreeMap::new();
    for name in steps.iter().flat_map(written) {
        *writers.entry(name).or_default() += 1;
    }
    let mut readers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut missing = vec![0; steps.len()];
    for (at, step) in steps.iter().enumerate() {
        let Reads::Names(read) = &step.reads else { continue };
        for name in read.iter().filter(|name| writers.contains_key(*name)) {
            readers.entry(name).or_default().push(at);
            missing[at] += 1;
        }
    }
    // Rules that read anything come after those that are ready before them.
    let key = |at: usize| (steps[at].reads == Reads::Anything, at);
    let mut left: BTreeSet<(bool, usize)> = (0..steps.len()).map(key).collect();
    let mut ready: BTreeSet<(bool, usize)> =
        left.iter().copied().filter(|(_, at)| missing[*at] == 0).collect();
    let (mut order, mut circular) = (Vec::new(), BTreeSet::new());
    while let Some(next) = ready.first().or(left.first()).copied() {
        left.remove(&next);
        let step = &steps[next.1];
        if !ready.remove(&next) {
            circular.insert(step.rule(files).name().to_owned());
        }
        order.push(next.1);
        for name in written(step) {
            let count = writers.entry(name.clone()).or_default();
            *count = count.saturating_sub(1);
            if *count > 0 {
                continue;
            }
            for at in readers.remove(name.as_str()).unwrap_or_default() {
                missing[at] -= 1;
                if missing[at] == 0 && left.contains(&key(at)) {
                    ready.insert(key(at));
                }
            }
        }
    }
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    (order.into_iter().filter_map(|at| steps[at].take()).collect(), circular)
}

/// Has recording rules begin early enough that those which read their series find them from the
/// start on. Alerting rules begin at the start, whatever reads them.
fn begin_earlier<P: Past>(
    steps: &mut [Step],
    files: &[RuleFile],
    past: &P,
    kept: &BTreeSet<String>,
) -> Result<(), String> {
    let mut begins: BTreeMap<String, i64> = BTreeMap::new();
    for step in steps.iter_mut().rev() {
        let rule = step.rule(files);
        if let Kind::Recording { record } = &rule.kind {
            let begin = begins.get(record.as_str()).copied();
            step.start_ms = step.start_ms.min(begin.unwrap_or(i64::MAX));
        }
        let Reads::Names(read) = &step.reads else { continue };
        if read.is_disjoint(kept) {
            continue;
        }
        // A mistake of the expression is reported by its evaluation.
        let Ok(oldest_ms) = past.oldest_read_ms(&rule.expr, step.start_ms) else { continue };
        if let Some(why) = past.end() {
            return Err(why);
        }
        for name in read.intersection(kept) {
            let begin = begins.entry(name.clone()).or_insert(oldest_ms);
            *begin = oldest_ms.min(*begin);
        }
    }
    Ok(())
}
