//! What rules of one evaluation store, together until it may be read: each call of the store costs
//! more than a few samples.

use crate::engine::{Engine, NewSample, NewValue, Origin, Reads, Refusal};
use crate::error::RuleError;
use crate::group::RuleReport;
use crate::group::rule::{Rule, series_names};
use crate::labels::LabelSet;
use std::collections::HashSet;

/// Maximum number of samples that wait.
const SAMPLES_MAX: usize = 10_000;

/// Samples of rules that wait to be stored.
pub(super) struct Batch<'a, H> {
    /// What stores them.
    origin: Origin<'a>,
    samples: Vec<NewSample<H>>,
    parts: Vec<Part>,
    /// Names of the series of these rules.
    names: HashSet<String>,
    series: HashSet<LabelSet>,
}

/// The samples of a rule.
struct Part {
    /// Position of the rule and of its report.
    rule: usize,
    /// Number of its samples; markers follow.
    count: usize,
    markers: usize,
}

impl<'a, H: Clone> Batch<'a, H> {
    pub fn new(origin: Origin<'a>) -> Batch<'a, H> {
        let (names, series) = Default::default();
        Batch { origin, samples: Vec::new(), parts: Vec::new(), names, series }
    }

    /// Whether a rule may read what waits.
    pub fn may_be_read(&self, reads: &Reads) -> bool {
        match reads {
            Reads::Anything => !self.parts.is_empty(),
            Reads::Names(names) => names.iter().any(|name| self.names.contains(name)),
        }
    }

    /// Whether samples of a rule have to wait for those that are here: of two samples of a series,
    /// the first counts.
    pub fn is_before(&self, samples: &[NewSample<H>]) -> bool {
        self.samples.len() + samples.len() > SAMPLES_MAX
            || samples.iter().any(|sample| self.series.contains(&sample.series))
    }

    /// Adds the samples of the rule at a position. The last `markers` of them are markers.
    pub fn add(
        &mut self,
        position: usize,
        rule: &Rule,
        samples: Vec<NewSample<H>>,
        markers: usize,
    ) {
        let count = samples.len() - markers;
        self.parts.push(Part { rule: position, count, markers });
        self.names.extend(series_names(&rule.definition.kind).into_iter().map(str::to_owned));
        self.series.extend(samples.iter().map(|sample| sample.series.clone()));
        self.samples.extend(samples);
    }

    /// Stores what waits, and notes with the rules and in their reports what became of it.
    pub fn store<E: Engine<Histogram = H> + ?Sized>(
        &mut self,
        rules: &mut [Rule],
        reports: &mut [RuleReport],
        engine: &mut E,
    ) {
        let samples = std::mem::take(&mut self.samples);
        let stored = match samples.is_empty() {
            true => Ok(Vec::new()),
            false => engine.append(&self.origin, &samples),
        };
        let mut refusals = vec![None; samples.len()];
        for (position, refusal) in stored.iter().flatten() {
            if let Some(place) = refusals.get_mut(*position) {
                *place = Some(refusal.clone());
            }
        }
        let mut rows = samples.into_iter().zip(refusals);
        for Part { rule, count, markers } in self.parts.drain(..) {
            let mut part = rows.by_ref().take(count + markers);
            let (Some(rule), Some(report)) = (rules.get_mut(rule), reports.get_mut(rule)) else {
                part.for_each(drop);
                continue;
            };
            match &stored {
                Ok(_) => {
                    rule.note_stored(part.by_ref().take(count), report);
                    part.filter_map(|(_, refusal)| refusal)
                        .for_each(|refusal| report.note_marker(refusal));
                }
                Err(error) => {
                    part.for_each(drop);
                    let error = RuleError::Append(error.clone());
                    report.result = Err(error.clone());
                    rule.last_error = Some(error);
                }
            }
        }
        self.names.clear();
        self.series.clear();
    }
}

impl Rule {
    /// Notes the samples of an evaluation that were stored or refused.
    fn note_stored<H>(
        &mut self,
        samples: impl Iterator<Item = (NewSample<H>, Option<Refusal>)>,
        report: &mut RuleReport,
    ) {
        self.series.clear();
        self.last_error = None;
        for (sample, refusal) in samples {
            match refusal {
                None => self.series.push(sample.series),
                // Its series gets no marker either: that would be refused for the same reason, at
                // the same time.
                Some(refusal) => {
                    report.refused.count(&refusal);
                    self.last_error = Some(refusal.into());
                }
            }
        }
        self.series.sort_unstable();
    }

    /// Returns markers for the series of the last evaluation that samples have not.
    pub(super) fn markers<H>(&self, samples: &[NewSample<H>], time_ms: i64) -> Vec<NewSample<H>> {
        let found: HashSet<&LabelSet> = samples.iter().map(|sample| &sample.series).collect();
        let gone = self.series.iter().filter(|series| !found.contains(series));
        gone.map(|series| marker(series, time_ms)).collect()
    }
}

impl RuleReport {
    /// Notes the refusal of a marker: that its series went on in another rule counts least.
    fn note_marker(&mut self, refusal: Refusal) {
        if let Refusal::Other(_) = refusal {
            self.marker = Some(refusal);
        }
    }
}

pub(super) fn marker<H>(series: &LabelSet, time_ms: i64) -> NewSample<H> {
    NewSample { series: series.clone(), time_ms, value: NewValue::Stale }
}
