//! Range queries that reuse steps of a cached answer (`results`) and evaluate the others.

use super::Shared;
use super::expression::Expression;
use super::results::{Answer, CachedAnswer, Key, Known, Reader, Results, Steps};
use std::sync::Arc;
use tidepool_runtime::{QueryTimes, ResultFormat};
use tidepool_store::{StoreError, millis};

/// A range query and the part of its answer that is cached.
pub(super) struct Repeated<'a> {
    results: &'a Results,
    key: Key,
    asked: Steps,
    known: Known,
}

impl<'a> Repeated<'a> {
    /// Looks a query up in the cache. Returns `None` if its answer must not be cached.
    pub fn of(expression: &Expression, shared: &'a Shared) -> Option<Repeated<'a>> {
        let results = &shared.results;
        // The cache has whole answers in JSON, without the statistics of each step.
        if !results.are_kept()
            || expression.is_fresh
            || expression.per_step
            || expression.series_max > 0
            || expression.format != ResultFormat::Json
        {
            return None;
        }
        let asked = Steps::of(expression.times)?;
        // Blocks that another program added or removed must drop stale answers before the lookup.
        shared.reading.look_at_blocks();
        let queries = shared.config();
        let key = Key {
            // Everything that changes an answer, so a reload never hits an old one.
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
        // The steps that caused the annotations must be requested, too.
        let is_whole = right.intersect(self.asked) == Some(self.asked)
            && kept.answer.notes().are_of(self.asked);
        is_whole.then(|| (Arc::clone(&kept.answer), self.asked))
    }

    /// Evaluates the missing steps and joins them with the cached ones. Returns `None` if nothing
    /// is cached, or if the pieces do not make an answer.
    pub fn complete(
        &self,
        mut evaluate: impl FnMut(QueryTimes, Reader) -> Result<Option<Answer>, StoreError>,
    ) -> Result<Option<(Arc<Answer>, Steps)>, StoreError> {
        let Some((kept, right)) = &self.known.found else { return Ok(None) };
        let asked = self.asked;
        let mut new = Vec::new();
        // At most two gaps exist, since the reusable steps are one run: before it and after it.
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
            // All steps are cached, but the annotations may be those of steps that are not
            // requested.
            return Ok(None);
        }
        // With equal notes it does not matter which cached steps are left out (see `notes`).
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

    /// The largest number of steps requested so far. As many steps are kept, so that two clients
    /// with ranges of different lengths do not shorten each other's answers.
    fn widest(&self) -> u64 {
        let before = self.known.found.as_ref().map_or(0, |(kept, _)| kept.widest);
        before.max(self.asked.count())
    }

    /// Joins the new pieces and the cached steps between them.
    fn join(
        &self,
        kept: &CachedAnswer,
        right: Steps,
        new: &[Option<(Answer, Steps)>],
    ) -> Option<Arc<Answer>> {
        let asked = self.asked;
        // The newest steps are kept: ranges move forward, so the next request starts later.
        let last_ms = right.last_ms.max(asked.last_ms);
        let widest_ms = i64::try_from(self.widest() - 1).ok()?.saturating_mul(asked.step_ms);
        let first_ms = right.first_ms.max(last_ms.saturating_sub(widest_ms));
        // If the answer with unrequested steps is too large, the requested steps alone may fit.
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
