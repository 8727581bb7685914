//! Evaluates an expression in an instance and sends its answer, or sends a cached answer.

use super::{Cost, Expression, QueryEnd, QueryPart};
use crate::repeated::Repeated;
use crate::results::{Answer, NOTES_MAX, Notes, Reader, Steps};
use std::time::Instant;
use tidepool_runtime::{
    Annotation, Estimate, EvaluationHandle, Instance, QueryError, QueryOptions, QueryTimes,
    ResultFormat, ValueType,
};
use tidepool_store::StoreError;
use tidepool_store::reading::ReceiverGone;

/// Minimum size in bytes of each part that an instance returns, except for the last.
pub(super) const PART_BYTES: u32 = 64 * 1024;

/// Maximum number of annotations of each kind in an answer, as in Prometheus. Others are counted.
pub(super) const ANNOTATIONS_MAX: u32 = NOTES_MAX;

/// An expression, the engine instance that evaluates it, and the cost so far.
pub(super) struct Evaluator<'a> {
    pub expression: &'a Expression,
    pub options: QueryOptions,
    pub instance: &'a mut Instance,
    pub cost: &'a mut Cost,
}

impl Evaluator<'_> {
    pub fn begin(
        &mut self,
        times: QueryTimes,
    ) -> Result<Result<EvaluationHandle, QueryError>, StoreError> {
        let begun = Instant::now();
        let evaluation = self.instance.evaluate(&self.expression.text, times, self.options);
        self.cost.add_preparation(begun);
        Ok(evaluation?)
    }

    pub fn prepare(
        &mut self,
        evaluation: EvaluationHandle,
    ) -> Result<Result<Estimate, QueryError>, StoreError> {
        let begun = Instant::now();
        let estimate = self.instance.prepare_evaluation(evaluation);
        self.cost.add_preparation(begun);
        Ok(estimate?)
    }

    pub fn next(
        &mut self,
        evaluation: EvaluationHandle,
        format: ResultFormat,
    ) -> Result<Result<Vec<u8>, QueryError>, StoreError> {
        let begun = Instant::now();
        let next = self.instance.next_of_query(evaluation, format, PART_BYTES);
        self.cost.timings.evaluation += begun.elapsed();
        let bytes = next?;
        // A failed evaluation has a cost as well. Fails if the instance has ended.
        self.cost.set_stats(self.instance.query_stats(evaluation)?);
        Ok(bytes)
    }

    pub fn end(&mut self, evaluation: EvaluationHandle) -> Result<(), StoreError> {
        self.cost.before = self.cost.stats();
        Ok(self.instance.close_evaluation(evaluation)?)
    }

    /// Evaluates some of the steps. Returns `None` if the answer must not be cached. The caller
    /// then evaluates all steps at once, which also reports any error.
    pub fn piece(
        &mut self,
        times: QueryTimes,
        mut reader: Reader,
    ) -> Result<Option<Answer>, StoreError> {
        let Ok(evaluation) = self.begin(times)? else { return Ok(None) };
        let is_read = loop {
            match self.next(evaluation, ResultFormat::Json)? {
                Ok(bytes) if bytes.is_empty() => break self.instance.is_stepwise(evaluation)?,
                Ok(bytes) if reader.read(&bytes).is_some() => {}
                Ok(_) | Err(_) => break false,
            }
        };
        let annotations = self.instance.annotations(evaluation, ANNOTATIONS_MAX)?;
        self.end(evaluation)?;
        Ok(if is_read { finish(reader, annotations) } else { None })
    }

    /// Sends all parts and the end, and caches the answer if it can be reused.
    pub fn give(
        &mut self,
        evaluation: EvaluationHandle,
        repeated: Option<&Repeated<'_>>,
        send: &dyn Fn(QueryPart) -> Result<(), ReceiverGone>,
    ) -> Result<(), StoreError> {
        let mut reader = repeated.map(Repeated::reader);
        loop {
            let bytes = self.next(evaluation, self.expression.format)??;
            self.cost.answer_bytes += bytes.len() as u64;
            let is_end = bytes.is_empty();
            if reader.as_mut().is_some_and(|reader| reader.read(&bytes).is_none()) {
                reader = None;
            }
            let part = match is_end {
                false => QueryPart::Bytes(bytes.into()),
                true => {
                    let annotations = self.instance.annotations(evaluation, ANNOTATIONS_MAX)?;
                    if let (Some(repeated), Some(reader)) = (repeated, reader.take())
                        && self.instance.is_stepwise(evaluation)?
                        && let Some(answer) = finish(reader, annotations.clone())
                    {
                        repeated.keep(answer);
                    }
                    QueryPart::End(Box::new(QueryEnd {
                        annotations,
                        stats: self.cost.stats(),
                        samples_per_step: self.instance.samples_per_step(evaluation)?,
                        timings: self.cost.timings,
                    }))
                }
            };
            if send(part).is_err() || is_end {
                return Ok(());
            }
        }
    }
}

/// Builds an answer for the cache. The caller has checked that its steps are independent.
pub(super) fn finish(reader: Reader, annotations: Vec<Annotation>) -> Option<Answer> {
    let answer = reader.finish()?;
    let notes = Notes::new(annotations, answer.steps)?;
    answer.with_notes(notes)
}

/// Sends a cached answer in parts of the usual size.
pub(super) fn give_known(
    answer: &Answer,
    steps: Steps,
    cost: &mut Cost,
    send: &dyn Fn(QueryPart) -> Result<(), ReceiverGone>,
) -> Result<(), StoreError> {
    // The lookup is counted as preparation, unless steps were evaluated before.
    if !cost.is_prepared {
        cost.add_preparation(cost.begun);
    }
    // Only range queries are cached, so the type is always matrix.
    if send(QueryPart::Begin { kind: ValueType::Matrix, text: String::new() }).is_err() {
        return Ok(());
    }
    let mut writer = answer.write(steps);
    loop {
        let begun = Instant::now();
        let bytes = writer.next_part(PART_BYTES as usize);
        cost.timings.evaluation += begun.elapsed();
        if bytes.is_empty() {
            break;
        }
        cost.answer_bytes += bytes.len() as u64;
        if send(QueryPart::Bytes(bytes.into())).is_err() {
            return Ok(());
        }
    }
    let end = QueryEnd {
        annotations: answer.notes().all().to_vec(),
        stats: cost.stats(),
        samples_per_step: Vec::new(),
        timings: cost.timings,
    };
    // A send fails only if the client has disconnected.
    let _ = send(QueryPart::End(Box::new(end)));
    Ok(())
}
