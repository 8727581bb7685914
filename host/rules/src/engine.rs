//! What evaluates expressions and stores samples, as rules see it.

use crate::labels::LabelSet;
use crate::template::{self, SampleValue};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A store with its query engine, and the time.
pub trait Engine {
    /// A native histogram, of which this crate knows the text for templates only.
    type Histogram: Clone + fmt::Display;

    /// Evaluates an expression at a time. The answer has to be bounded.
    fn query(&self, query: &Query<'_>) -> Result<Answer<Self::Histogram>, String>;

    /// Returns which series an expression reads.
    fn reads(&self, _expression: &str) -> Reads {
        Reads::Anything
    }

    /// Stores the samples of rules before it returns, so that the next query sees them. Returns
    /// what was refused, with its position in `samples`; an error says that nothing was stored.
    ///
    /// A sample that is older than the newest one of its series has to be refused, also where
    /// others may be written out of order: a series that another rule took over gets no marker in
    /// its past.
    fn append(
        &mut self,
        origin: &Origin<'_>,
        samples: &[NewSample<Self::Histogram>],
    ) -> Result<Vec<(usize, Refusal)>, String>;

    fn now(&self) -> Moment;

    /// Whether the rules that are left are not to be evaluated.
    fn is_stopping(&self) -> bool {
        false
    }
}

/// Which series an expression reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reads {
    Anything,
    /// Only series of these names.
    Names(BTreeSet<String>),
}

/// A time of two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub wall_ms: i64,
    /// Of a clock that is never set, from any beginning.
    pub monotonic: Duration,
}

/// The rule on whose behalf something is done, for logs of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    pub file: &'a str,
    pub group: &'a str,
    /// Empty for what a group does itself.
    pub rule: &'a str,
    pub is_alert: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub expression: &'a str,
    pub time_ms: i64,
    pub origin: Origin<'a>,
}

#[derive(Clone, Debug)]
pub enum Answer<H> {
    /// No two samples have the same labels.
    Vector(Vec<Sample<H>>),
    Scalar(f64),
    /// A matrix or a string.
    Other,
}

#[derive(Clone, Debug)]
pub struct Sample<H> {
    pub labels: LabelSet,
    pub value: Value<H>,
}

/// A series of an answer over several times.
#[derive(Clone, Debug)]
pub struct Series<H> {
    pub labels: LabelSet,
    /// With times in milliseconds, ascending.
    pub samples: Vec<(i64, Value<H>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value<H> {
    Float(f64),
    Histogram(H),
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewSample<H> {
    pub series: LabelSet,
    pub time_ms: i64,
    pub value: NewValue<H>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NewValue<H> {
    Float(f64),
    Histogram(H),
    /// The marker of a series that ended.
    Stale,
}

/// Why a sample was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("out of order sample")]
    OutOfOrder,
    #[error("too old sample")]
    TooOld,
    #[error("duplicate sample for timestamp")]
    Duplicate,
    #[error("{0}")]
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule result is not a vector or scalar")]
pub struct NotAVector;

impl<H> Answer<H> {
    /// Returns the samples, of which a scalar is one without labels.
    pub fn into_vector(self) -> Result<Vec<Sample<H>>, NotAVector> {
        match self {
            Answer::Vector(samples) => Ok(samples),
            Answer::Scalar(value) => {
                Ok(vec![Sample { labels: LabelSet::default(), value: Value::Float(value) }])
            }
            Answer::Other => Err(NotAVector),
        }
    }
}

impl<H: fmt::Display> Value<H> {
    /// The value as templates see it.
    pub fn shown(&self) -> SampleValue {
        match self {
            Value::Float(value) => SampleValue::Float(*value),
            Value::Histogram(histogram) => SampleValue::Histogram(histogram.to_string().into()),
        }
    }
}

impl<H> From<Value<H>> for NewValue<H> {
    fn from(value: Value<H>) -> NewValue<H> {
        match value {
            Value::Float(value) => NewValue::Float(value),
            Value::Histogram(histogram) => NewValue::Histogram(histogram),
        }
    }
}

/// Queries of templates, which are at the time of the slot without the offset.
pub(crate) struct Queries<'a, E: ?Sized> {
    pub engine: &'a E,
    pub origin: Origin<'a>,
    pub time_ms: i64,
    /// Monotonic time from which on no query begins.
    pub until: Duration,
}

impl<E: Engine + ?Sized> template::Source for Queries<'_, E> {
    fn query(&self, expression: &str) -> Result<Vec<template::Sample>, String> {
        if self.engine.is_stopping() || self.engine.now().monotonic > self.until {
            return Err("the rule has no time left".to_owned());
        }
        let query = Query { expression, time_ms: self.time_ms, origin: self.origin };
        let samples =
            self.engine.query(&query)?.into_vector().map_err(|error| error.to_string())?;
        let shown = |sample: Sample<E::Histogram>| template::Sample {
            labels: Arc::new(sample.labels.to_map()),
            value: sample.value.shown(),
        };
        Ok(samples.into_iter().map(shown).collect())
    }

    fn time_ms(&self) -> i64 {
        self.time_ms
    }
}
