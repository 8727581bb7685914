//! One evaluation of a group: its rules in order, each after what it may read is stored.

use crate::alert::Terms;
use crate::clock::Step;
use crate::engine::{Engine, NewSample, Origin, Query};
use crate::error::RuleError;
use crate::group::batch::{Batch, marker};
use crate::group::rule::{Body, Rule};
use crate::group::{Group, Options, RefusedCounts, Report, RuleReport};
use crate::labels::LabelSet;
use std::time::Duration;

/// What the rules of one evaluation have in common.
struct Run<'a> {
    file: &'a str,
    group: &'a str,
    slot_ms: i64,
    query_offset_ms: i64,
    interval_ms: i64,
    limit: i64,
    step: Step,
    options: &'a Options,
}

impl Group {
    /// Evaluates the rules at a slot, in their order.
    pub fn evaluate<E: Engine + ?Sized>(
        &mut self,
        slot_ms: i64,
        engine: &mut E,
        options: &Options,
    ) -> Report {
        self.find_reads(engine);
        let interval_ms = self.step_interval_ms;
        let (last_ms, before) = (self.last_slot_ms, &mut self.before);
        let step = Step::new(last_ms, slot_ms, interval_ms, options.trust, before);
        let run = Run {
            file: &self.file,
            group: &self.name,
            slot_ms,
            query_offset_ms: self.query_offset_ms,
            interval_ms: self.slots.interval_ms(),
            limit: self.limit,
            step,
            options,
        };
        let begun = engine.now();
        let mut report = Report { is_held: step.is_held, ..Report::default() };
        let counts: Vec<usize> = self.rules.iter().map(Rule::alert_count).collect();
        let mut alerts = counts.iter().sum::<usize>().saturating_add(options.alerts_elsewhere);
        if step != Step::default() {
            let rules = self.rules.iter_mut().filter_map(Rule::alerting_mut);
            rules.for_each(|rule| rule.pass(step, slot_ms));
        }
        let origin = Origin { file: &self.file, group: &self.name, rule: "", is_alert: false };
        let mut batch = Batch::new(origin);
        for (position, count) in counts.into_iter().enumerate() {
            let (rules, reports) = (&mut self.rules, &mut report.rules);
            if batch.may_be_read(&rules[position].reads) {
                batch.store(rules, reports, engine);
            }
            if engine.is_stopping() {
                break;
            }
            let others = alerts - count;
            let left = options.alerts_max.saturating_sub(others).min(options.rule_alerts_max);
            let rule = &mut rules[position];
            let (evaluated, samples) = rule.evaluate(&run, left, engine);
            alerts = others + rule.alert_count();
            report.samples += evaluated.result.as_ref().copied().unwrap_or(0);
            reports.push(evaluated);
            if let Some(mut samples) = samples {
                let markers = rule.markers(&samples, run.time_ms());
                let count = markers.len();
                samples.extend(markers);
                if batch.is_before(&samples) {
                    batch.store(rules, reports, engine);
                }
                batch.add(position, &rules[position], samples, count);
            }
        }
        batch.store(&mut self.rules, &mut report.rules, engine);
        let is_complete = report.rules.len() == self.rules.len();
        if is_complete && !self.stale.is_empty() {
            let time_ms = slot_ms.saturating_sub(self.query_offset_ms);
            match write_markers(&self.stale, time_ms, engine, origin) {
                Ok(()) => self.stale = Vec::new(),
                Err(error) => report.markers = Some(error),
            }
        }
        self.evaluated =
            Some((begun.wall_ms, engine.now().monotonic.saturating_sub(begun.monotonic)));
        self.last_slot_ms = Some(slot_ms);
        self.step_interval_ms = self.slots.interval_ms();
        self.is_held = step.is_held;
        report
    }
}

impl Rule {
    /// Evaluates the rule; returns what is to be stored, unless it failed.
    fn evaluate<E: Engine + ?Sized>(
        &mut self,
        run: &Run<'_>,
        alerts_max: usize,
        engine: &E,
    ) -> (RuleReport, Option<Vec<NewSample<E::Histogram>>>) {
        let begun = engine.now();
        let mut report = RuleReport {
            result: Ok(0),
            refused: RefusedCounts::default(),
            marker: None,
            template_failures: 0,
            transitions: Vec::new(),
            notices: Vec::new(),
            took: Duration::ZERO,
        };
        let samples = self.samples(run, alerts_max, engine, &mut report);
        if samples.is_ok()
            && let Some(rule) = self.alerting_mut()
        {
            let resend_delay_ms = run.options.resend_delay_ms;
            report.notices = rule.take_notices(run.slot_ms, resend_delay_ms, run.interval_ms);
        }
        report.result = samples.as_ref().map(Vec::len).map_err(RuleError::clone);
        let samples = samples.map_err(|error| self.last_error = Some(error)).ok();
        report.took = engine.now().monotonic.saturating_sub(begun.monotonic);
        self.evaluated = Some((begun.wall_ms, report.took));
        (report, samples)
    }

    /// Returns the samples that the rule has at a slot.
    fn samples<E: Engine + ?Sized>(
        &mut self,
        run: &Run<'_>,
        alerts_max: usize,
        engine: &E,
        report: &mut RuleReport,
    ) -> Result<Vec<NewSample<E::Histogram>>, RuleError> {
        let time_ms = run.time_ms();
        let origin = run.origin(&self.definition, &self.body);
        let query = Query { expression: &self.definition.expr, time_ms, origin };
        let mut found = engine.query(&query).map_err(RuleError::Query)?.into_vector()?;
        let rule = match &mut self.body {
            Body::Alerting(rule) => rule,
            Body::Recording => {
                self.definition.record(&mut found, run.limit)?;
                let sample = |series, value| NewSample { series, time_ms, value };
                let samples = found.into_iter();
                return Ok(samples.map(|found| sample(found.labels, found.value.into())).collect());
            }
        };
        // Before templates are expanded for all of them.
        if found.len() > alerts_max {
            return Err(RuleError::AlertsMax { alerts: found.len(), alerts_max });
        }
        let found = rule.find(found, run.slot_ms, engine, origin, &run.options.bounds())?;
        report.template_failures = found.template_failures;
        let terms = Terms {
            slot_ms: run.slot_ms,
            step: run.step,
            limit: run.limit,
            alerts_max,
            settle_ms: run.options.settle_ms,
        };
        rule.update(found.alerts, &terms, &mut report.transitions)?;
        Ok(rule.samples(time_ms))
    }
}

impl<'a> Run<'a> {
    /// Time of queries and samples.
    fn time_ms(&self) -> i64 {
        self.slot_ms.saturating_sub(self.query_offset_ms)
    }

    fn origin<'b>(&'b self, definition: &'b super::rule::Definition, body: &Body) -> Origin<'b> {
        let is_alert = matches!(body, Body::Alerting(_));
        Origin { file: self.file, group: self.group, rule: definition.name(), is_alert }
    }
}

/// Writes the markers of series whose rules are gone. That some are refused is usual: their series
/// go on in other rules. Returns an error if none could be written.
pub(super) fn write_markers<E: Engine + ?Sized>(
    series: &[LabelSet],
    time_ms: i64,
    engine: &mut E,
    origin: Origin<'_>,
) -> Result<(), String> {
    let markers: Vec<NewSample<E::Histogram>> =
        series.iter().map(|series| marker(series, time_ms)).collect();
    engine.append(&origin, &markers).map(|_refused| ())
}
