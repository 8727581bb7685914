//! Opens selections of the store for an evaluation.

use super::series::StoreSeries;
use crate::engine::{First, Projection, View};
use crate::error::{Error, Result};
use crate::model::{MatcherSpec, TimeRange};
use crate::select::Windows;
use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use tidepool_promql::source::{Selection, SeriesSet, Source, SourceError};
use tidepool_promql::syntax;

/// Returns a view of the store in a range, given its first selection.
type Take = dyn Fn(TimeRange, First<'_>) -> Result<View>;

/// The store's error that ended an evaluation; the evaluation has only the error's text.
pub(super) type Failure = Rc<RefCell<Option<Error>>>;

/// The store as the source of an evaluation.
pub struct StoreSource {
    take: Box<Take>,
    /// The view that all selections share, or the range for which it will be made.
    state: RefCell<State>,
    failure: Failure,
    left_out: RefCell<BTreeMap<String, String>>,
}

#[derive(Default)]
enum State {
    /// Each selection takes a view of its own.
    #[default]
    Idle,
    Begun(TimeRange),
    Taken(Rc<View>),
}

impl StoreSource {
    /// Makes a source of the views that `take` returns, as
    /// [`Engine::view`](crate::engine::Engine::view).
    pub fn new(take: impl Fn(TimeRange, First<'_>) -> Result<View> + 'static) -> StoreSource {
        StoreSource {
            take: Box::new(take),
            state: RefCell::default(),
            failure: Failure::default(),
            left_out: RefCell::default(),
        }
    }

    /// Returns the damaged blocks that the evaluation left out, by ULID, with the reasons.
    pub fn left_out(&self) -> Ref<'_, BTreeMap<String, String>> {
        self.left_out.borrow()
    }

    fn take(&self, range: TimeRange, first: First<'_>) -> Result<Rc<View>> {
        let view = (self.take)(range, first)?;
        // Kept longer than the view, because warnings are read at the end.
        let damaged = view.left_out().iter().map(|bad| (bad.block.clone(), bad.reason.clone()));
        self.left_out.borrow_mut().extend(damaged);
        Ok(Rc::new(view))
    }

    fn view(&self, selection: First<'_>) -> Result<Rc<View>> {
        let mut state = self.state.borrow_mut();
        match &*state {
            State::Idle => self.take(selection.range, selection),
            State::Taken(view) => Ok(Rc::clone(view)),
            State::Begun(range) => {
                // One view for all selections, which must show the same moment.
                let view = self.take(*range, selection)?;
                *state = State::Taken(Rc::clone(&view));
                Ok(view)
            }
        }
    }

    fn open(&self, selection: &Selection) -> Result<StoreSeries> {
        let specs: Vec<MatcherSpec> = selection.matchers.iter().map(spec).collect();
        let range = TimeRange { start_ms: selection.start_ms, end_ms: selection.end_ms };
        let hints = selection.hints;
        let windows = Windows { range, step_ms: hints.step_ms, width_ms: hints.range_ms };
        let taken = if hints.labels_only { Projection::Labels } else { Projection::Series };
        let view = self.view(First { matchers: &specs, range, taken })?;
        let series = match hints.labels_only {
            true => (view.labels(&specs, range)?, 0),
            false => view.series(&specs, windows)?,
        };
        Ok(StoreSeries::new(series, windows, hints, Rc::clone(&self.failure)))
    }

    /// Takes the store's error that ended the evaluation, if there is one.
    pub fn take_failure(&self) -> Option<Error> {
        self.failure.take()
    }
}

impl Source for StoreSource {
    fn begin(&self, start_ms: i64, end_ms: i64) {
        self.state.replace(State::Begun(TimeRange { start_ms, end_ms }));
    }

    fn end(&self) {
        self.state.replace(State::Idle);
    }

    fn select(
        &self,
        selection: &Selection,
    ) -> std::result::Result<Box<dyn SeriesSet>, SourceError> {
        match self.open(selection) {
            Ok(series) => Ok(Box::new(series)),
            Err(error) => Err(failed(&self.failure, error)),
        }
    }
}

pub(super) fn failed(failure: &Failure, error: Error) -> SourceError {
    let text = error.to_string();
    failure.replace(Some(error));
    SourceError { text }
}

fn spec(matcher: &syntax::Matcher) -> MatcherSpec {
    let syntax::Matcher { name, op, value } = matcher.clone();
    MatcherSpec { name, op, value }
}
