//! Operators that emit one series, computed from the time, from scalars or from all input series.

use super::column::{Bits, Column};
use super::pipeline::{Operator, Out};
use super::scalars::Scalars;
use super::series::Series;
use crate::binop;
use crate::error::EvalError;
use crate::functions::{Body, Entry, of_time};
use crate::model::Labels;
use crate::plan::{Grid, Port, ScalarArg};
use crate::syntax::BinaryOp;

/// Emits a value for each step, computed from the time alone.
pub struct Generate<F> {
    grid: Grid,
    value: F,
}

impl<F: FnMut(i64) -> Option<f64>> Generate<F> {
    pub fn new(grid: Grid, value: F) -> Self {
        Generate { grid, value }
    }
}

impl<F: FnMut(i64) -> Option<f64>> Operator for Generate<F> {
    fn push(&mut self, _: Port, _: Series, _: &mut Out<'_>) -> Result<(), EvalError> {
        Ok(())
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        let mut column = out.context.column(self.grid.steps);
        for step in 0..self.grid.steps {
            if let Some(value) = (self.value)(self.grid.time(step)) {
                column.set_float(step, value);
            }
        }
        out.emit(Series::scalar(column))
    }
}

pub fn date(grid: Grid, entry: &'static Entry) -> impl Operator {
    Generate::new(grid, move |time_ms| of_time(entry, time_ms))
}

#[derive(Clone, Copy)]
pub enum OfScalars {
    Call(&'static Entry),
    Binary(BinaryOp),
}

pub struct Compute {
    what: OfScalars,
    scalars: Scalars,
    last_port: Port,
    steps: usize,
}

impl Compute {
    pub fn new(what: OfScalars, args: &[ScalarArg], ports: usize, steps: usize) -> Compute {
        Compute { what, scalars: Scalars::new(args), last_port: ports.saturating_sub(1), steps }
    }
}

impl Operator for Compute {
    fn push(&mut self, port: Port, series: Series, _: &mut Out<'_>) -> Result<(), EvalError> {
        let _ = self.scalars.set(port, series);
        Ok(())
    }

    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        // All arguments are complete once the last port ends.
        if port != self.last_port {
            return Ok(());
        }
        let mut column = out.context.column(self.steps);
        for step in 0..self.steps {
            let args = self.scalars.at(step);
            let value = match self.what {
                OfScalars::Binary(op) => binop::scalars(op, args[0], args[1]),
                OfScalars::Call(entry) => match entry.body {
                    Body::Scalar(apply) => apply(args),
                    _ => f64::NAN,
                },
            };
            column.set_float(step, value);
        }
        out.emit(Series::scalar(column))
    }
}

/// `scalar`: the float of the only series at each step, otherwise NaN.
pub struct ToScalar {
    column: Column,
    several: Bits,
}

impl ToScalar {
    pub fn new(steps: usize) -> ToScalar {
        ToScalar { column: Column::new(steps), several: Bits::new(steps) }
    }
}

impl Operator for ToScalar {
    fn push(&mut self, _: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        // Upstream's `scalar` ignores histograms.
        for step in series.column.present().iter() {
            if self.column.present().get(step) {
                self.several.set(step);
            }
            self.column.set_float(step, series.column.floats()[step]);
        }
        out.context.recycle(series.column);
        Ok(())
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        let mut column = std::mem::take(&mut self.column);
        for step in 0..column.len() {
            if !column.present().get(step) || self.several.get(step) {
                column.set_float(step, f64::NAN);
            }
        }
        out.emit(Series::scalar(column))
    }
}

/// `absent`: 1 at steps where no series has a value.
pub struct Absent {
    labels: Labels,
    seen: Bits,
}

impl Absent {
    pub fn new(labels: Labels, steps: usize) -> Absent {
        Absent { labels, seen: Bits::new(steps) }
    }
}

impl Operator for Absent {
    fn push(&mut self, _: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        series.column.mark(&mut self.seen);
        out.context.recycle(series.column);
        Ok(())
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        let mut column = out.context.column(self.seen.len());
        for step in 0..self.seen.len() {
            if !self.seen.get(step) {
                column.set_float(step, 1.0);
            }
        }
        let labels = std::mem::take(&mut self.labels);
        // `absent_labels` leaves the name out, so no name has to be dropped.
        out.emit(Series { labels, drop_name: false, column })
    }
}
