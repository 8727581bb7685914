//! Operators that change series one by one.

use super::column::Column;
use super::pipeline::{Operator, Out};
use super::scalars::Scalars;
use super::series::Series;
use super::series_union::SeriesUnion;
use super::step_annotations::StepAnnotations;
use crate::binop;
use crate::error::EvalError;
use crate::functions::{Body, Dropped, Entry};
use crate::model::{Histogram, Value, has_metadata};
use crate::plan::{Grid, Names, Port, ScalarArg, VectorScalar};
use crate::syntax::Span;
use std::rc::Rc;

pub trait Change {
    fn change(&mut self, series: &mut Series, scalars: &mut Scalars, is_delayed: bool);

    /// Checks in advance whether the change is possible; for changes that may make long labels.
    fn check(&self, _: &Series, _: Span) -> Result<(), EvalError> {
        Ok(())
    }

    /// Returns whether no other series can have the labels of the changed series. `was` is whether
    /// the labels of the input were unique even without name, type and unit.
    fn is_distinct(&self, was: bool) -> bool {
        was
    }

    fn end(&mut self, _: &mut Out<'_>) {}
}

/// Applies a change to each series; merges series whose labels become equal.
pub struct Transform<C> {
    change: C,
    names: Names,
    may_unite: bool,
    scalars: Scalars,
    unite: SeriesUnion,
    span: Span,
}

impl<C: Change> Transform<C> {
    /// Wraps a change; `may_unite` is whether the change may make labels equal.
    pub fn new(change: C, args: &[ScalarArg], may_unite: bool, names: Names, span: Span) -> Self {
        let scalars = Scalars::new(args);
        Transform { change, names, may_unite, scalars, unite: SeriesUnion::default(), span }
    }
}

impl<C: Change> Operator for Transform<C> {
    fn push(&mut self, port: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        let Some(mut series) = self.scalars.set(port, series) else { return Ok(()) };
        // Computed before the change, which may drop type and unit.
        let was_distinct = self.names != Names::Any && !has_metadata(&series.labels);
        self.change.check(&series, self.span)?;
        self.change.change(&mut series, &mut self.scalars, out.context.is_delayed);
        if !self.may_unite {
            return out.emit(series);
        }
        let is_distinct = self.change.is_distinct(was_distinct);
        self.unite.push(series, is_distinct, self.span, out)
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        self.change.end(out);
        self.unite.end(out)
    }
}

pub struct Function(pub &'static Entry);

impl Change for Function {
    fn change(&mut self, series: &mut Series, scalars: &mut Scalars, is_delayed: bool) {
        series.drop(self.0.dropped, is_delayed);
        let column = &mut series.column;
        match self.0.body {
            Body::Float(apply) => {
                // Functions of floats ignore histograms, as upstream's do.
                column.drop_histograms();
                for step in 0..column.len() {
                    let Some(value) = column.float(step) else { continue };
                    match apply(value, scalars.at(step)) {
                        Some(value) => column.set_float(step, value),
                        None => column.clear_step(step),
                    }
                }
            }
            Body::Histogram(apply) => {
                let steps = column.len();
                let histograms = std::mem::replace(column, Column::new(steps));
                for step in 0..steps {
                    if let Some(histogram) = histograms.histogram(step) {
                        column.set_float(step, apply(histogram));
                    }
                }
            }
            Body::Range(_) | Body::Scalar(_) => {}
        }
    }
}

pub struct Negate;

impl Change for Negate {
    fn change(&mut self, series: &mut Series, _: &mut Scalars, is_delayed: bool) {
        series.drop(Dropped::Metadata, is_delayed);
        let column = &mut series.column;
        // Floats of absent steps have no meaning, so they are negated as well, without a branch.
        column.floats_mut().iter_mut().for_each(|value| *value = -*value);
        if column.has_histograms() {
            for step in 0..column.len() {
                let Some(histogram) = column.histogram(step) else { continue };
                let mut histogram = Histogram::clone(histogram);
                histogram.scale(-1.0);
                column.set_histogram(step, Rc::new(histogram));
            }
        }
    }
}

/// `timestamp` of an expression other than a selector: the evaluation time.
pub struct Timestamps(pub Grid);

impl Change for Timestamps {
    fn change(&mut self, series: &mut Series, _: &mut Scalars, is_delayed: bool) {
        series.drop(Dropped::Metadata, is_delayed);
        let column = &mut series.column;
        for step in 0..column.len() {
            if column.has(step) {
                let seconds = self.0.time(step) as f64 / 1000.0;
                column.put(step, Some(Value::Float(seconds)));
            }
        }
    }
}

pub struct WithoutName;

impl Change for WithoutName {
    fn change(&mut self, series: &mut Series, _: &mut Scalars, is_delayed: bool) {
        series.drop(Dropped::Metadata, is_delayed);
    }
}

pub struct WithScalar {
    plan: VectorScalar,
    dropped: Dropped,
    annotations: StepAnnotations,
    span: Span,
}

impl WithScalar {
    pub fn new(plan: VectorScalar, dropped: Dropped, span: Span) -> WithScalar {
        WithScalar { plan, dropped, annotations: StepAnnotations::default(), span }
    }

    fn step(&mut self, column: &mut Column, step: usize, scalar: f64) {
        let Some(value) = column.value(step) else { return };
        let VectorScalar { op, is_left, returns_bool, .. } = self.plan;
        let scalar = Value::Float(scalar);
        let (left, right) = if is_left { (&scalar, &value) } else { (&value, &scalar) };
        let element = binop::values(op, left, right);
        if let Some(note) = element.note {
            self.annotations.set(step, column.len(), note);
        }
        let result = match element.value {
            None => None,
            Some(_) if returns_bool => Some(Value::Float(f64::from(u8::from(element.is_kept)))),
            Some(_) if !element.is_kept => None,
            // A comparison keeps the value of the series, even if the scalar is the left operand.
            Some(_) if op.is_comparison() => Some(value),
            result => result,
        };
        column.put(step, result);
    }
}

impl Change for WithScalar {
    fn change(&mut self, series: &mut Series, scalars: &mut Scalars, is_delayed: bool) {
        series.drop(self.dropped, is_delayed);
        let column = &mut series.column;
        let is_trim = matches!(
            self.plan.op,
            crate::syntax::BinaryOp::TrimLower | crate::syntax::BinaryOp::TrimUpper
        );
        // Comparisons and trims may remove values, and histograms need `binop::values`.
        if column.has_histograms() || self.plan.op.is_comparison() || is_trim {
            for step in 0..column.len() {
                self.step(column, step, scalars.one(0, step));
            }
            return;
        }
        let (op, is_left) = (self.plan.op, self.plan.is_left);
        // Absent steps are computed as well, because their floats have no meaning.
        for (step, value) in column.floats_mut().iter_mut().enumerate() {
            let scalar = scalars.one(0, step);
            let (left, right) = if is_left { (scalar, *value) } else { (*value, scalar) };
            *value = binop::arithmetic(op, left, right);
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.annotations.add_to(&mut out.context.annotations, self.span);
    }
}

pub struct Repeat(pub usize);

impl Change for Repeat {
    fn change(&mut self, series: &mut Series, _: &mut Scalars, _: bool) {
        series.column = match series.column.value(0) {
            Some(Value::Float(value)) => Column::constant(self.0, value),
            Some(Value::Histogram(histogram)) => {
                let mut column = Column::new(self.0);
                (0..self.0).for_each(|step| column.set_histogram(step, histogram.clone()));
                column
            }
            None => Column::new(self.0),
        };
    }
}

pub struct Pass;

impl Change for Pass {
    fn change(&mut self, _: &mut Series, _: &mut Scalars, _: bool) {}
}

pub struct Nothing;

impl Change for Nothing {
    fn change(&mut self, series: &mut Series, _: &mut Scalars, _: bool) {
        series.column = Column::new(series.column.len());
    }
}
