//! What the caller provides.

use super::histogram::Histogram;
use crate::engine::{Engine, NewSample, Series};
use std::time::Duration;

/// Makes the stores of tests.
pub trait Laboratory {
    type Store: Store;

    /// Returns a store without samples, which ends when it is dropped.
    fn fresh(&mut self, conditions: &Conditions) -> Result<Self::Store, String>;
}

/// What a test asks of its store besides the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Time of the first sample and of the first evaluation.
    pub start_ms: i64,
    /// Time between evaluations of rules, and those of a subquery that gives none.
    pub evaluation_interval: Duration,
}

/// A store of one test. Its time is that of the test, so that nothing of it may be refused or
/// dropped because of its age.
pub trait Store: Engine {
    /// Stores samples of input series before it returns. They ascend by time, and are newer than
    /// those before.
    fn load(&mut self, samples: &[NewSample<Histogram>]) -> Result<(), String>;

    /// The buckets of a histogram of an answer.
    fn buckets_of(&self, histogram: &Self::Histogram) -> Histogram;

    /// Evaluates an expression that gives a matrix, with samples by series.
    fn dump(&self, expression: &str, time_ms: i64) -> Result<Vec<Series<Self::Histogram>>, String>;
}
