//! Selections for an evaluation.

use super::series::StoreSeries;
use crate::error::{Error, Result};
use crate::model::{MatchOp, MatcherSpec, TimeRange};
use crate::select::SeriesSource;
use std::cell::RefCell;
use std::rc::Rc;
use tidepool_promql::source::{Selection, SeriesSet, Source, SourceError};
use tidepool_promql::syntax;

/// Opens the series that all matchers select in a range.
type Open = dyn Fn(&[MatcherSpec], TimeRange) -> Result<Box<dyn SeriesSource>>;

/// The error that ended an evaluation. The evaluation itself knows no more than its text.
pub(super) type Failure = Rc<RefCell<Option<Error>>>;

/// A store as an evaluation reads it.
pub struct StoreSource {
    open: Box<Open>,
    failure: Failure,
}

impl StoreSource {
    /// A store of which `open` opens series, such as
    /// [`Engine::series_of`](crate::engine::Engine::series_of).
    pub fn new(
        open: impl Fn(&[MatcherSpec], TimeRange) -> Result<Box<dyn SeriesSource>> + 'static,
    ) -> StoreSource {
        StoreSource { open: Box::new(open), failure: Failure::default() }
    }

    /// The error of the store that ended the evaluation, if one did.
    pub fn take_failure(&self) -> Option<Error> {
        self.failure.take()
    }
}

impl Source for StoreSource {
    fn select(
        &self,
        selection: &Selection,
    ) -> std::result::Result<Box<dyn SeriesSet>, SourceError> {
        let specs: Vec<MatcherSpec> = selection.matchers.iter().map(spec).collect();
        let range = TimeRange { start_ms: selection.start_ms, end_ms: selection.end_ms };
        match (self.open)(&specs, range) {
            Ok(source) => {
                let hints = selection.hints;
                Ok(Box::new(StoreSeries::new(source, range, hints, Rc::clone(&self.failure))))
            }
            Err(error) => Err(failed(&self.failure, error)),
        }
    }
}

/// Keeps an error, and returns its text.
pub(super) fn failed(failure: &Failure, error: Error) -> SourceError {
    let text = error.to_string();
    failure.replace(Some(error));
    SourceError { text }
}

fn spec(matcher: &syntax::Matcher) -> MatcherSpec {
    let op = match matcher.op {
        syntax::MatchOp::Equal => MatchOp::Equal,
        syntax::MatchOp::NotEqual => MatchOp::NotEqual,
        syntax::MatchOp::Regex => MatchOp::Regex,
        syntax::MatchOp::NotRegex => MatchOp::NotRegex,
    };
    MatcherSpec { name: matcher.name.clone(), op, value: matcher.value.clone() }
}
