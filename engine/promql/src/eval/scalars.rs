//! Scalar arguments.

use super::column::Column;
use super::series::Series;
use crate::plan::{Port, ScalarArg};

/// The scalar arguments of an operator.
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
    /// Those of a plan.
    pub fn new(args: &[ScalarArg]) -> Scalars {
        let arg = |arg: &ScalarArg| match arg {
            ScalarArg::Constant(constant) => Arg { port: None, constant: *constant, column: None },
            ScalarArg::Port(port) => Arg { port: Some(*port), constant: f64::NAN, column: None },
        };
        let args: Vec<Arg> = args.iter().map(arg).collect();
        let at = args.iter().map(|arg| arg.constant).collect();
        Scalars { args, at }
    }

    /// Takes the values of an argument, if this input is one.
    pub fn set(&mut self, port: Port, series: Series) -> Option<Series> {
        match self.args.iter_mut().find(|arg| arg.port == Some(port)) {
            Some(arg) => {
                arg.column = Some(series.column);
                None
            }
            None => Some(series),
        }
    }

    /// All arguments at a step.
    #[inline]
    pub fn at(&mut self, step: usize) -> &[f64] {
        for (arg, value) in self.args.iter().zip(&mut self.at) {
            if let Some(column) = &arg.column {
                *value = column.floats()[step];
            }
        }
        &self.at
    }

    /// One argument at a step.
    pub fn one(&self, number: usize, step: usize) -> f64 {
        let arg = &self.args[number];
        arg.column.as_ref().map_or(arg.constant, |column| column.floats()[step])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.args.len()
    }
}
