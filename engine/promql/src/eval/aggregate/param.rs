//! The parameter of an aggregation.

use crate::eval::column::Column;
use crate::functions::{max, min};
use crate::plan::ScalarArg;

/// A scalar for each step.
#[derive(Debug, Default)]
pub struct Param {
    constant: f64,
    column: Option<Column>,
}

/// What all steps have in common.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// Whether a value is no number.
    pub has_nan: bool,
}

impl Param {
    /// The parameter of a plan.
    pub fn new(arg: Option<ScalarArg>) -> Param {
        match arg {
            Some(ScalarArg::Constant(constant)) => Param { constant, column: None },
            _ => Param::default(),
        }
    }

    /// Takes its values.
    pub fn set(&mut self, column: Column) {
        self.column = Some(column);
    }

    /// The value at a step.
    #[inline]
    pub fn at(&self, step: usize) -> f64 {
        self.column.as_ref().map_or(self.constant, |column| column.floats()[step])
    }

    /// What all steps have in common.
    pub fn extent(&self) -> Extent {
        let Some(column) = &self.column else {
            let value = self.constant;
            return Extent { min: value, max: value, has_nan: value.is_nan() };
        };
        let mut extent = Extent { min: f64::MAX, max: f64::MIN, has_nan: false };
        for value in column.floats() {
            extent.max = max(extent.max, *value);
            extent.min = min(extent.min, *value);
            extent.has_nan |= value.is_nan();
        }
        extent
    }
}
