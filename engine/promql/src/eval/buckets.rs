//! Quantiles and fractions of classic and native histograms.
//!
//! Source: prometheus/prometheus, `promql/functions.go` (`funcHistogramQuantile` and others).

use super::budget::Usage;
use super::column::Column;
use super::context::Context;
use super::key::KeyIndex;
use super::pipeline::{Operator, Out};
use super::scalars::Scalars;
use super::series::Series;
use super::series_union::SeriesUnion;
use crate::annotations::Note;
use crate::error::EvalError;
use crate::functions::Dropped;
use crate::model::{Histogram, KeyLabels, Labels, NAME, has_metadata};
use crate::plan::{Buckets, BucketsOf, Grid, Names, Port};
use crate::quantile::{
    ClassicBucket, Skew, bucket_fraction, bucket_quantile, histogram_fraction, histogram_quantile,
};
use crate::syntax::Span;
use tidepool_model::sort;

/// Label with the upper bound of a classic bucket.
const UPPER: &str = "le";

pub struct OfBuckets {
    plan: Buckets,
    grid: Grid,
    span: Span,
    names: Names,
    scalars: Scalars,
    series_port: Port,
    by: KeyLabels,
    index: KeyIndex,
    groups: Vec<Group>,
    unite: SeriesUnion,
    held: Usage,
}

/// A histogram: classic buckets, native values, or both.
#[derive(Default)]
struct Group {
    buckets: Vec<(f64, Column)>,
    native: Option<Column>,
}

impl OfBuckets {
    pub fn new(
        plan: Buckets,
        grid: Grid,
        series_port: Port,
        names: Names,
        span: Span,
    ) -> OfBuckets {
        OfBuckets {
            scalars: Scalars::new(&plan.args),
            plan,
            grid,
            span,
            names,
            series_port,
            by: KeyLabels::all_but(UPPER),
            index: KeyIndex::default(),
            groups: Vec::new(),
            unite: SeriesUnion::default(),
            held: Usage::default(),
        }
    }

    fn note(&self, note: Note<'_>, metric: &str, context: &mut Context) {
        // Upstream names the metric only with delayed removal, which keeps the name.
        let metric = if context.is_delayed { metric } else { "" };
        context.annotations.note(note, metric, self.plan.series_span);
    }

    fn buffer(&mut self, series: Series, context: &mut Context) -> Result<(), EvalError> {
        let mut column = series.column;
        let held =
            Usage { bytes: column.bytes() + series.labels.bytes(), samples: column.samples() };
        self.held.bytes += held.bytes;
        self.held.samples += held.samples;
        context.budget.take(held, self.span)?;
        // A native series is a histogram of its own, so its whole label set is the key.
        if column.has_histograms() {
            let (number, _) = self.index.insert_all(&series.labels);
            let mut native = column.clone();
            native.drop_floats();
            self.group(number).native = Some(native);
            column.drop_histograms();
        }
        if column.present().is_empty() {
            return Ok(());
        }
        let upper = series.labels.get(UPPER);
        match upper.parse() {
            Ok(bound) => {
                let (number, _) = self.index.insert(&self.by, &series.labels);
                self.group(number).buckets.push((bound, column));
            }
            Err(_) => {
                self.note(Note::BadBucketLabel(upper), series.labels.get(NAME), context);
            }
        }
        Ok(())
    }

    fn group(&mut self, number: usize) -> &mut Group {
        if self.groups.len() <= number {
            self.groups.resize_with(number + 1, Group::default);
        }
        &mut self.groups[number]
    }

    /// Annotates invalid quantiles, even if the input has no series.
    fn check_quantiles(&self, context: &mut Context) {
        if matches!(self.plan.what, BucketsOf::Fraction) {
            return;
        }
        for (number, span) in self.plan.arg_spans.iter().enumerate() {
            let mut last = None;
            for step in 0..self.grid.steps {
                let quantile = self.scalars.one(number, step);
                // Equal neighbours would add the same annotation again.
                if last != Some(quantile.to_bits()) && !(0.0..=1.0).contains(&quantile) {
                    context.annotations.note(Note::InvalidQuantile(quantile), "", *span);
                }
                last = Some(quantile.to_bits());
            }
        }
    }

    /// Computes the result of one histogram from the scalar arguments with these `numbers`. If
    /// `only` is set, steps with any other quantile are left out.
    fn column(
        &self,
        group: &Group,
        labels: &Labels,
        numbers: (usize, usize),
        only: Option<f64>,
        context: &mut Context,
    ) -> Column {
        let name = labels.get(NAME);
        let mut column = context.column(self.grid.steps);
        let mut buckets = Vec::new();
        for step in 0..self.grid.steps {
            buckets.clear();
            buckets.extend(group.buckets.iter().filter_map(|(upper, column)| {
                Some(ClassicBucket { upper: *upper, count: column.float(step)? })
            }));
            let native = group.native.as_ref().and_then(|native| native.histogram(step));
            let args = (self.scalars.one(numbers.0, step), self.scalars.one(numbers.1, step));
            if only.is_some_and(|quantile| quantile.to_bits() != args.0.to_bits()) {
                continue;
            }
            let value = match native {
                None if buckets.is_empty() => continue,
                None => self.classic(&mut buckets, args, step, name, context),
                Some(_) if !buckets.is_empty() => {
                    self.note(Note::MixedClassicNativeHistograms, name, context);
                    continue;
                }
                Some(histogram) => self.native(histogram, args, name, context),
            };
            column.set_float(step, value);
        }
        column
    }

    /// Returns the distinct values of an argument over all steps, ascending.
    fn quantiles(&self, number: usize) -> Vec<f64> {
        let all = (0..self.grid.steps).map(|step| self.scalars.one(number, step));
        let mut all: Vec<f64> = all.collect();
        sort::sort_by(&mut all, f64::total_cmp);
        all.dedup_by_key(|quantile| quantile.to_bits());
        all
    }

    fn classic(
        &self,
        buckets: &mut Vec<ClassicBucket>,
        args: (f64, f64),
        step: usize,
        name: &str,
        context: &mut Context,
    ) -> f64 {
        if matches!(self.plan.what, BucketsOf::Fraction) {
            return bucket_fraction(args.0, args.1, buckets);
        }
        let (value, raised) = bucket_quantile(args.0, buckets, self.grid.time(step));
        if let Some(raised) = raised {
            self.note(Note::ForcedMonotonicity(raised), name, context);
        }
        value
    }

    fn native(
        &self,
        histogram: &Histogram,
        args: (f64, f64),
        name: &str,
        context: &mut Context,
    ) -> f64 {
        let is_fraction = matches!(self.plan.what, BucketsOf::Fraction);
        let (value, skew) = match is_fraction {
            true => histogram_fraction(args.0, args.1, histogram),
            false => histogram_quantile(args.0, histogram),
        };
        let note = match skew {
            Skew::Nothing => return value,
            _ if is_fraction => Note::FractionNan,
            Skew::Lost => Note::QuantileNanResult,
            Skew::Skewed => Note::QuantileNanSkew,
        };
        self.note(note, name, context);
        value
    }

    fn emit(
        &mut self,
        group: &Group,
        labels: &Labels,
        numbers: (usize, usize),
        quantile: Option<(&str, f64)>,
        out: &mut Out<'_>,
    ) -> Result<(), EvalError> {
        let only = quantile.map(|(_, quantile)| quantile);
        let column = self.column(group, labels, numbers, only, out.context);
        let mut series = Series { labels: labels.clone(), drop_name: false, column };
        series.drop(Dropped::Metadata, out.context.is_delayed);
        // Set after the name was dropped, because the label may be `__name__`.
        if let Some((label, quantile)) = quantile {
            series.labels.set(label, &open_metrics(quantile));
        }
        // The quantile's label may overwrite a label that distinguished two series.
        let is_distinct = self.names != Names::Any && quantile.is_none() && !has_metadata(labels);
        self.unite.push(series, is_distinct, self.span, out)
    }
}

impl Operator for OfBuckets {
    fn push(&mut self, port: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        match self.scalars.set(port, series) {
            Some(series) => self.buffer(series, out.context),
            None => Ok(()),
        }
    }

    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port != self.series_port {
            return Ok(());
        }
        self.check_quantiles(out.context);
        let groups = std::mem::take(&mut self.groups);
        let groups = std::mem::take(&mut self.index).into_groups(groups, self.grid);
        for (labels, group) in &groups {
            match self.plan.what.clone() {
                BucketsOf::Quantile => self.emit(group, labels, (0, 0), None, out)?,
                BucketsOf::Fraction => self.emit(group, labels, (0, 1), None, out)?,
                BucketsOf::Quantiles(label) => {
                    for number in 0..self.scalars.len() {
                        // Each value of a quantile that changes over time has a series of its own.
                        for quantile in self.quantiles(number) {
                            let quantile = Some((label.as_str(), quantile));
                            self.emit(group, labels, (number, number), quantile, out)?;
                        }
                    }
                }
            }
        }
        out.context.budget.give(std::mem::take(&mut self.held));
        self.unite.end(out)
    }
}

/// Formats a number as OpenMetrics does in labels: always with a point or an exponent.
fn open_metrics(value: f64) -> String {
    let mut text = tidepool_model::number::general(value);
    if value.is_finite() && !text.contains(['.', 'e']) {
        text.push_str(".0");
    }
    text
}
