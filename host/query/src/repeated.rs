//! Range queries that reuse steps of a cached answer (`results`) and evaluate the other steps.

use super::Shared;
use super::expression::Expression;
use super::results::{Answer, CachedAnswer, Key, Known, Reader, Results, Steps};
use std::sync::Arc;
use tidepool_runtime::{QueryTimes, ResultFormat};
use tidepool_store::{StoreError, millis};

/// A range query, and the cached answer that has some of its steps, if any.
pub(super) struct Repeated<'a> {
    results: &'a Results,
    key: Key,
    asked: Steps,
    known: Known,
}

impl<'a> Repeated<'a> {
    /// Looks up a query in the cache. Returns `None` if its answer must not be cached.
    pub fn of(expression: &Expression, shared: &'a Shared) -> Option<Repeated<'a>> {
        let results = &shared.results;
        // The cache has complete answers in JSON, without statistics per step.
        if !results.are_kept()
            || expression.is_fresh
            || expression.per_step
            || expression.series_max > 0
            || expression.format != ResultFormat::Json
        {
            return None;
        }
        let asked = Steps::of(expression.times)?;
        // Blocks that another program added or removed must invalidate answers before the lookup.
        shared.reading.look_at_blocks();
        let queries = shared.config();
        let key = Key {
            // Everything that changes an answer, so that old answers do not match after a reload.
            text: expression.text.clone(),
            step_ms: asked.step_ms,
            phase_ms: asked.first_ms.rem_euclid(asked.step_ms),
            lookback_ms: millis(expression.lookback.unwrap_or(queries.lookback)),
            subquery_step_ms: millis(queries.subquery_step),
            samples_max: queries.samples_max,
            features: queries.features,
        };
        let known = results.known(&key, asked);
        Some(Repeated { results, key, asked, known })
    }

    /// Returns the cached answer if it has all requested steps.
    pub fn whole(&self) -> Option<(Arc<Answer>, Steps)> {
        let (kept, right) = self.known.found.as_ref()?;
        // The steps that caused the annotations must be among the requested steps.
        let is_whole = right.intersect(self.asked) == Some(self.asked)
            && kept.answer.notes().are_of(self.asked);
        is_whole.then(|| (Arc::clone(&kept.answer), self.asked))
    }

    /// Evaluates the missing steps and joins them with the cached steps. Returns `None` if no step
    /// is cached, or if the pieces cannot be joined to an answer.
    pub fn complete(
        &self,
        mut evaluate: impl FnMut(QueryTimes, Reader) -> Result<Option<Answer>, StoreError>,
    ) -> Result<Option<(Arc<Answer>, Steps)>, StoreError> {
        let Some((kept, right)) = &self.known.found else { return Ok(None) };
        let asked = self.asked;
        let mut new = Vec::new();
        // The reusable steps are contiguous, so steps are missing at most before and after them.
        for missing in [
            asked.between(asked.first_ms, right.first_ms - asked.step_ms),
            asked.between(right.last_ms + asked.step_ms, asked.last_ms),
        ] {
            let answer = match missing {
                Some(steps) => {
                    let answer = evaluate(steps.times(), self.results.reader(steps))?;
                    let Some(answer) = answer else { return Ok(None) };
                    Some((answer, steps))
                }
                None => None,
            };
            new.push(answer);
        }
        if new.iter().all(Option::is_none) {
            // All steps are cached, but steps that are not requested may have caused the
            // annotations.
            return Ok(None);
        }
        // With equal annotations it does not matter which cached steps are dropped (see `notes`).
        let notes = kept.answer.notes();
        let are_same = |(answer, _): &(Answer, Steps)| answer.notes().are_those(notes);
        if !new.iter().flatten().all(are_same) {
            self.results.forget_unsteady(&self.key);
            return Ok(None);
        }
        let joined = self.join(kept, *right, &new);
        Ok(joined.map(|answer| {
            self.keep_shared(Arc::clone(&answer));
            (answer, asked)
        }))
    }

    /// Returns a reader for an answer to all requested steps.
    pub fn reader(&self) -> Reader {
        self.results.reader(self.asked)
    }

    /// Caches an answer to all requested steps.
    pub fn keep(&self, answer: Answer) {
        self.keep_shared(Arc::new(answer));
    }

    fn keep_shared(&self, answer: Arc<Answer>) {
        self.results.keep(self.key.clone(), self.known.moment, answer, self.widest());
    }

    /// Returns the largest number of steps requested so far. As many steps are kept, so that
    /// clients with different ranges do not shorten each other's answers.
    fn widest(&self) -> u64 {
        let before = self.known.found.as_ref().map_or(0, |(kept, _)| kept.widest);
        before.max(self.asked.count())
    }

    /// Joins the new pieces and the cached steps between them to one answer.
    fn join(
        &self,
        kept: &CachedAnswer,
        right: Steps,
        new: &[Option<(Answer, Steps)>],
    ) -> Option<Arc<Answer>> {
        let asked = self.asked;
        // The newest steps are kept, because the next request usually starts later.
        let last_ms = right.last_ms.max(asked.last_ms);
        let widest_ms = i64::try_from(self.widest() - 1).ok()?.saturating_mul(asked.step_ms);
        let first_ms = right.first_ms.max(last_ms.saturating_sub(widest_ms));
        // If the answer is too large with steps that were not requested, they are dropped.
        let long = right.between(first_ms.min(asked.first_ms.max(right.first_ms)), right.last_ms);
        [long, right.intersect(asked)].into_iter().flatten().find_map(|middle| {
            let piece = |place: usize| {
                let piece: &Option<(Answer, Steps)> = &new[place];
                piece.as_ref().map(|(answer, steps)| (answer, *steps))
            };
            let pieces = [piece(0), Some((&*kept.answer, middle)), piece(1)];
            let pieces: Vec<_> = pieces.into_iter().flatten().collect();
            self.results.join(&pieces).map(Arc::new)
        })
    }
}
