//! The past as an engine for one rule: its expression is answered by columns, which cover many
//! evaluations at once.

use super::{Past, Times};
use crate::engine::{
    Answer, Engine, Moment, NewSample, NewValue, Origin, Query, Refusal, Sample, Series,
};
use crate::labels::METRIC_NAME;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Maximum number of evaluations that one query covers.
const STEPS_MAX: i64 = 1024;

/// Maximum number of series of a rule that are counted.
const SERIES_MAX: usize = 1_000_000;

/// How much shorter the next query is after one that failed, and longer after one that did not. A
/// failure may concern one time only, or be that so many do not fit into the memory.
const FACTOR: i64 = 8;

pub struct Replay<'a, P: Past> {
    past: &'a mut P,
    expression: &'a str,
    times: Times,
    /// Names of the computed series that are read later.
    kept: &'a BTreeSet<String>,
    window: RefCell<Window<P::Histogram>>,
    /// Hashes of the series that the rule wrote.
    pub series: HashSet<u64>,
}

struct Window<H> {
    /// Number of evaluations that the next query covers.
    steps: i64,
    /// Times that the columns cover; none if the start is after the end.
    start_ms: i64,
    end_ms: i64,
    /// Time of the next evaluation, or of the last one.
    at_ms: i64,
    columns: Vec<Cursor<H>>,
}

/// A column, and the position of its first sample that is not older than what was asked for.
struct Cursor<H> {
    column: Series<H>,
    next: usize,
}

impl<'a, P: Past> Replay<'a, P> {
    /// Prepares the evaluation of an expression at times that follow one another.
    pub fn new(
        past: &'a mut P,
        expression: &'a str,
        times: Times,
        kept: &'a BTreeSet<String>,
    ) -> Replay<'a, P> {
        let window = Window {
            steps: STEPS_MAX,
            start_ms: 0,
            end_ms: -1,
            at_ms: times.start_ms,
            columns: Vec::new(),
        };
        let (window, series) = (RefCell::new(window), HashSet::new());
        Replay { past, expression, times, kept, window, series }
    }

    pub fn end(&self) -> Option<String> {
        self.past.end()
    }

    /// Has columns cover a time and those after it.
    fn load(&self, window: &mut Window<P::Histogram>, time_ms: i64) -> Result<(), String> {
        let step_ms = self.times.step_ms;
        loop {
            let span_ms = (window.steps - 1).saturating_mul(step_ms);
            let end_ms = time_ms.saturating_add(span_ms).min(self.times.end_ms.max(time_ms));
            let times = Times { start_ms: time_ms, end_ms, step_ms };
            match self.past.columns(self.expression, times) {
                Ok(columns) => {
                    let cursor = |column| Cursor { column, next: 0 };
                    window.columns = columns.into_iter().map(cursor).collect();
                    (window.start_ms, window.end_ms) = (time_ms, end_ms);
                    window.steps = (window.steps * FACTOR).min(STEPS_MAX);
                    return Ok(());
                }
                Err(error) if end_ms == time_ms || self.past.end().is_some() => return Err(error),
                Err(_) => window.steps = (window.steps / FACTOR).max(1),
            }
        }
    }
}

impl<P: Past> Engine for Replay<'_, P> {
    type Histogram = P::Histogram;

    fn query(&self, query: &Query<'_>) -> Result<Answer<P::Histogram>, String> {
        let time_ms = query.time_ms;
        let mut window = self.window.borrow_mut();
        // Queries of templates have other expressions, or other times if there is an offset.
        let is_next = time_ms == window.at_ms || time_ms == window.at_ms + self.times.step_ms;
        if query.expression != self.expression || !is_next {
            return self.past.instant(query);
        }
        window.at_ms = time_ms;
        if time_ms > window.end_ms || window.end_ms < window.start_ms {
            self.load(&mut window, time_ms)?;
        }
        let at_time = |cursor: &mut Cursor<P::Histogram>| {
            let points = &cursor.column.samples;
            while points.get(cursor.next).is_some_and(|(at_ms, _)| *at_ms < time_ms) {
                cursor.next += 1;
            }
            let (_, value) = points.get(cursor.next).filter(|(at_ms, _)| *at_ms == time_ms)?;
            Some(Sample { labels: cursor.column.labels.clone(), value: value.clone() })
        };
        Ok(Answer::Vector(window.columns.iter_mut().filter_map(at_time).collect()))
    }

    fn append(
        &mut self,
        _origin: &Origin<'_>,
        samples: &[NewSample<P::Histogram>],
    ) -> Result<Vec<(usize, Refusal)>, String> {
        for sample in samples.iter().filter(|sample| !matches!(sample.value, NewValue::Stale)) {
            if self.series.len() < SERIES_MAX {
                let mut hasher = DefaultHasher::new();
                sample.series.hash(&mut hasher);
                self.series.insert(hasher.finish());
            }
        }
        // All samples of a rule are kept, or none: only an alerting rule has two names, and both
        // are read seldom.
        let is_kept = |sample: &NewSample<_>| self.kept.contains(sample.series.get(METRIC_NAME));
        if samples.iter().any(is_kept) { self.past.compute(samples) } else { Ok(Vec::new()) }
    }

    fn now(&self) -> Moment {
        self.past.now()
    }

    fn is_stopping(&self) -> bool {
        self.past.end().is_some()
    }
}
