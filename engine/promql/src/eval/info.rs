//! `info`: adds labels of info metrics to the series of a vector.
//!
//! Source: prometheus/prometheus, `promql/info.go`.

use super::budget::Usage;
use super::column::Column;
use super::context::Context;
use super::key::KeyIndex;
use super::pipeline::{Operator, Out};
use super::series::Series;
use super::series_union::SeriesUnion;
use crate::error::EvalError;
use crate::model::{KeyLabels, Labels, NAME};
use crate::plan::{InfoPlan, Port};
use crate::syntax::Span;
use std::collections::BTreeMap;

/// Labels by which info metrics are matched with series.
const IDENTIFYING: [&str; 2] = ["instance", "job"];

/// Approximate memory of an entry of [`Info::groups`] in bytes, without name and series.
const GROUP_BYTES: usize = 64;

/// `info`: joins series with info metrics by identifying labels.
pub struct Info {
    plan: InfoPlan,
    by: KeyLabels,
    index: KeyIndex,
    /// Series of each info metric by name, for each key.
    groups: Vec<BTreeMap<String, Vec<InfoSeries>>>,
    unite: SeriesUnion,
    held: Usage,
    span: Span,
}

/// A series of an info metric, with the times of its samples in milliseconds.
struct InfoSeries {
    labels: Labels,
    times: Column,
}

impl Info {
    pub fn new(plan: InfoPlan, span: Span) -> Info {
        Info {
            plan,
            by: KeyLabels::with(&IDENTIFYING.map(String::from)),
            index: KeyIndex::default(),
            groups: Vec::new(),
            unite: SeriesUnion::default(),
            held: Usage::default(),
            span,
        }
    }

    fn buffer(&mut self, series: Series, context: &mut Context) -> Result<(), EvalError> {
        let mut held = series.held();
        let index_bytes = self.index.bytes();
        let (number, is_new) = self.index.insert(&self.by, &series.labels);
        if is_new {
            self.groups.push(BTreeMap::new());
        }
        let name = series.labels.get(NAME).to_string();
        held.bytes += self.index.bytes() - index_bytes + name.len() + GROUP_BYTES;
        self.held.bytes += held.bytes;
        self.held.samples += held.samples;
        context.budget.take(held, self.span)?;
        let info = InfoSeries { labels: series.labels, times: series.column };
        self.groups[number].entry(name).or_default().push(info);
        Ok(())
    }

    /// Returns the labels that info metrics add to a series, and whether a metric is present.
    fn labels_at(
        &self,
        metrics: &[&[InfoSeries]],
        chosen: &[Option<usize>],
        base: &Labels,
    ) -> Result<(Labels, bool), EvalError> {
        let mut added = Labels::default();
        let mut has_any = false;
        for (series, number) in metrics.iter().zip(chosen) {
            let Some(number) = number else { continue };
            has_any = true;
            for (name, value) in series[*number].labels.iter() {
                let is_wanted =
                    self.plan.data.is_empty() || self.plan.data.iter().any(|n| n == name);
                if name == NAME || !is_wanted {
                    continue;
                }
                // Upstream fails if two info metrics disagree on a label.
                let before = added.get(name);
                if !before.is_empty() && before != value {
                    return Err(EvalError::execution(format!("conflicting label: {name}")));
                }
                // Labels of the series win over labels of info metrics.
                if base.get(name).is_empty() {
                    added.set(name, value);
                }
            }
        }
        Ok((added, has_any))
    }

    fn flow(&mut self, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        // Info metrics themselves pass unchanged, as in upstream.
        if self.plan.names.iter().all(|condition| condition.holds(series.labels.get(NAME))) {
            return self.unite.push(series, false, self.span, out);
        }
        // Without identifying labels, a series would match all info metrics that lack them, too.
        let is_identified = IDENTIFYING.iter().any(|name| !series.labels.get(name).is_empty());
        let number = match is_identified {
            true => self.index.find(&self.by, &series.labels),
            false => None,
        };
        let Some(number) = number else {
            return match self.plan.keeps_bare {
                true => self.unite.push(series, false, self.span, out),
                false => Ok(()),
            };
        };
        let metrics: Vec<&[InfoSeries]> = self.groups[number].values().map(Vec::as_slice).collect();
        // Labels may change from step to step; steps with the same info series form one result.
        let mut parts: Vec<(Vec<Option<usize>>, Option<Series>)> = Vec::new();
        for step in 0..series.column.len() {
            let Some(value) = series.column.value(step) else { continue };
            let chosen = metrics.iter().map(|metric| newest(metric, step));
            let chosen = chosen.collect::<Result<Vec<_>, EvalError>>()?;
            let part = match parts.iter().position(|(other, _)| *other == chosen) {
                Some(part) => part,
                None => {
                    let (added, has_any) = self.labels_at(&metrics, &chosen, &series.labels)?;
                    let mut labels = series.labels.clone();
                    added.iter().for_each(|(name, value)| labels.set(name, value));
                    let column = Column::new(series.column.len());
                    let drop_name = series.drop_name;
                    let is_kept = has_any || self.plan.keeps_bare;
                    parts.push((chosen, is_kept.then_some(Series { labels, drop_name, column })));
                    parts.len() - 1
                }
            };
            if let Some(series) = &mut parts[part].1 {
                series.column.put(step, Some(value));
            }
        }
        for (_, series) in parts {
            if let Some(series) = series {
                self.unite.push(series, false, self.span, out)?;
            }
        }
        Ok(())
    }
}

/// Returns the series with the newest sample at a step; two samples of that time are an error.
fn newest(metric: &[InfoSeries], step: usize) -> Result<Option<usize>, EvalError> {
    let mut best: Option<(usize, f64)> = None;
    for (number, series) in metric.iter().enumerate() {
        // The `InfoTime` fold returns the time of a float sample, but a histogram sample as it is.
        if series.times.histogram(step).is_some() {
            return Err(EvalError::execution(format!(
                "this should be an info metric, with float samples: {}",
                series.labels
            )));
        }
        let Some(time) = series.times.float(step) else { continue };
        match best {
            Some((other, newest)) if newest == time => {
                return Err(EvalError::execution(format!(
                    "found duplicate series for info metric: existing {} @ {newest}, new {} @ {time}",
                    metric[other].labels, series.labels
                )));
            }
            Some((_, newest)) if newest > time => {}
            _ => best = Some((number, time)),
        }
    }
    Ok(best.map(|(number, _)| number))
}

impl Operator for Info {
    fn push(&mut self, port: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        match port {
            0 => self.buffer(series, out.context),
            _ => self.flow(series, out),
        }
    }

    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port == 0 {
            return Ok(());
        }
        self.groups.clear();
        self.index = KeyIndex::default();
        out.context.budget.give(std::mem::take(&mut self.held));
        self.unite.end(out)
    }
}
