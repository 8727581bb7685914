//! The parameter of an aggregation.

use crate::eval::column::Column;
use crate::functions::{max, min};
use crate::plan::ScalarArg;

#[derive(Debug, Default)]
pub struct Param {
    constant: f64,
    column: Option<Column>,
}

#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub min: f64,
    pub max: f64,
    pub has_nan: bool,
}

impl Param {
    pub fn new(arg: Option<ScalarArg>) -> Param {
        match arg {
            Some(ScalarArg::Constant(constant)) => Param { constant, column: None },
            _ => Param::default(),
        }
    }

    pub fn set(&mut self, column: Column) {
        self.column = Some(column);
    }

    #[inline]
    pub fn at(&self, step: usize) -> f64 {
        self.column.as_ref().map_or(self.constant, |column| column.floats()[step])
    }

    pub fn extent(&self) -> Extent {
        let Some(column) = &self.column else {
            let value = self.constant;
            return Extent { min: value, max: value, has_nan: value.is_nan() };
        };
        let mut extent = Extent { min: f64::MAX, max: f64::MIN, has_nan: false };
        for value in column.floats() {
            // Unlike `f64::max`, this `max` propagates NaN, as Go's does.
            extent.max = max(extent.max, *value);
            extent.min = min(extent.min, *value);
            extent.has_nan |= value.is_nan();
        }
        extent
    }
}
