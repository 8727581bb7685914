//! Scalar arguments of operators: constants, or columns from an input.

use super::column::Column;
use super::series::Series;
use crate::plan::{Port, ScalarArg};

#[derive(Debug)]
pub struct Scalars {
    args: Vec<Arg>,
    at: Vec<f64>,
}

#[derive(Debug)]
struct Arg {
    port: Option<Port>,
    constant: f64,
    column: Option<Column>,
}

impl Scalars {
    pub fn new(args: &[ScalarArg]) -> Scalars {
        let arg = |arg: &ScalarArg| match arg {
            ScalarArg::Constant(constant) => Arg { port: None, constant: *constant, column: None },
            ScalarArg::Port(port) => Arg { port: Some(*port), constant: f64::NAN, column: None },
        };
        let args: Vec<Arg> = args.iter().map(arg).collect();
        let at = args.iter().map(|arg| arg.constant).collect();
        Scalars { args, at }
    }

    /// Stores the series as an argument if `port` is that of an argument, else returns the series.
    pub fn set(&mut self, port: Port, series: Series) -> Option<Series> {
        match self.args.iter_mut().find(|arg| arg.port == Some(port)) {
            Some(arg) => {
                arg.column = Some(series.column);
                None
            }
            None => Some(series),
        }
    }

    #[inline]
    pub fn at(&mut self, step: usize) -> &[f64] {
        for (arg, value) in self.args.iter().zip(&mut self.at) {
            if let Some(column) = &arg.column {
                // Scalars have a value at every step, so presence is not checked.
                *value = column.floats()[step];
            }
        }
        &self.at
    }

    pub fn one(&self, number: usize, step: usize) -> f64 {
        let arg = &self.args[number];
        arg.column.as_ref().map_or(arg.constant, |column| column.floats()[step])
    }

    pub fn len(&self) -> usize {
        self.args.len()
    }
}
