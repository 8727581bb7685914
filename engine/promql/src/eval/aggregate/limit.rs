//! `limitk`, `limit_ratio`: a part of the series, chosen in the order of arrival or by hash.

use super::param::Param;
use crate::annotations::Note;
use crate::error::EvalError;
use crate::eval::budget::Usage;
use crate::eval::key::KeyIndex;
use crate::eval::pipeline::{Operator, Out};
use crate::eval::series::Series;
use crate::model::hash_labels;
use crate::plan::{AggregatePlan, Grid, Port, ScalarArg};
use crate::syntax::{AggregateOp, Span};

pub struct LimitOf {
    plan: AggregatePlan,
    grid: Grid,
    span: Span,
    param: Param,
    series_port: Port,
    is_open: Option<bool>,
    index: KeyIndex,
    /// For `limitk`: number of values that each group has emitted at each step.
    given: Vec<Vec<u32>>,
    held: Usage,
}

pub fn series_port(plan: &AggregatePlan) -> Port {
    usize::from(matches!(plan.param, Some(ScalarArg::Port(_))))
}

/// Returns whether any count is at least 1; fails if a count does not fit a 64-bit integer.
pub fn check_count(param: &Param) -> Result<bool, EvalError> {
    let extent = param.extent();
    // NaN fails this comparison, so NaN is refused below.
    if extent.max < 1.0 {
        return Ok(false);
    }
    let error = |text: String| Err(EvalError::execution(text));
    if extent.has_nan {
        return error("Parameter value is NaN".to_string());
    }
    if extent.min <= i64::MIN as f64 {
        return error(format!(
            "Scalar value {} underflows int64",
            tidepool_model::number::general(extent.min)
        ));
    }
    if extent.max >= i64::MAX as f64 {
        return error(format!(
            "Scalar value {} overflows int64",
            tidepool_model::number::general(extent.max)
        ));
    }
    Ok(true)
}

impl LimitOf {
    pub fn new(plan: AggregatePlan, grid: Grid, span: Span) -> LimitOf {
        LimitOf {
            param: Param::new(plan.param),
            series_port: series_port(&plan),
            plan,
            grid,
            span,
            is_open: None,
            index: KeyIndex::default(),
            given: Vec::new(),
            held: Usage::default(),
        }
    }

    /// Checks the parameter once; returns whether any series passes.
    fn open(&mut self, out: &mut Out<'_>) -> Result<bool, EvalError> {
        if let Some(is_open) = self.is_open {
            return Ok(is_open);
        }
        let is_open = match self.plan.op {
            AggregateOp::Limitk => check_count(&self.param)?,
            _ => self.check_ratio(out)?,
        };
        self.is_open = Some(is_open);
        Ok(is_open)
    }

    fn check_ratio(&self, out: &mut Out<'_>) -> Result<bool, EvalError> {
        let extent = self.param.extent();
        if extent.max == 0.0 && extent.min == 0.0 {
            return Ok(false);
        }
        if extent.has_nan {
            return Err(EvalError::execution("Ratio value is NaN"));
        }
        for (ratio, capped) in [(extent.max, 1.0), (extent.min, -1.0)] {
            if (capped > 0.0 && ratio > capped) || (capped < 0.0 && ratio < capped) {
                let note = Note::InvalidRatio(ratio, capped);
                out.context.annotations.note(note, "", self.plan.param_span);
            }
        }
        Ok(true)
    }

    fn limit_ratio(&self, series: &mut Series) {
        // A hash, not a random number: every query chooses the same series.
        let place = hash_labels(series.labels.iter()) as f64 / u64::MAX as f64;
        for step in 0..series.column.len() {
            let ratio = self.param.at(step).clamp(-1.0, 1.0);
            let is_kept = match ratio {
                0.0 => false,
                ratio if ratio > 0.0 => place < ratio,
                // The complement of the series that the positive ratio `1 + ratio` selects.
                ratio => place >= 1.0 + ratio,
            };
            if !is_kept {
                series.column.clear_step(step);
            }
        }
    }

    fn limit_count(&mut self, series: &mut Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        let (number, is_new) = self.index.insert(&self.plan.by, &series.labels);
        if is_new {
            let bytes = self.grid.steps * 4 + self.index.labels(number).bytes();
            let held = Usage { bytes, samples: 0 };
            self.held.bytes += held.bytes;
            out.context.budget.take(held, self.span)?;
            self.given.push(vec![0; self.grid.steps]);
        }
        for (step, given) in self.given[number].iter_mut().enumerate() {
            if !series.column.has(step) {
                continue;
            }
            if f64::from(*given) < self.param.at(step).trunc() {
                *given += 1;
            } else {
                series.column.clear_step(step);
            }
        }
        Ok(())
    }
}

impl Operator for LimitOf {
    fn push(&mut self, port: Port, mut series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port != self.series_port {
            self.param.set(series.column);
            return Ok(());
        }
        if !self.open(out)? {
            return Ok(());
        }
        match self.plan.op {
            AggregateOp::Limitk => self.limit_count(&mut series, out)?,
            _ => self.limit_ratio(&mut series),
        }
        out.emit(series)
    }

    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port == self.series_port {
            self.open(out)?;
            out.context.budget.give(std::mem::take(&mut self.held));
        }
        Ok(())
    }
}
