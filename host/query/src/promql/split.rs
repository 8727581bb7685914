//! Evaluates a large range query on several threads: each has its own engine instance and a part of
//! the steps. Their answers are joined.
//!
//! The joined answer is byte for byte that of one instance. An expression is split only if each
//! step depends only on its own time and on samples that are not newer, and if its series are in
//! label order. The engine reports both properties.

use super::evaluator::{ANNOTATIONS_MAX, Evaluator, PART_BYTES, finish};
use super::{Expression, QueryEnd, QueryPart};
use crate::Shared;
use crate::repeated::Repeated;
use crate::results::{Joined, Source, Steps};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use tidepool_runtime::{
    Estimate, EvaluationHandle, Instance, QueryOptions, QueryStats, ResultFormat, ValueType,
};
use tidepool_store::StoreError;
use tidepool_store::reading::ReceiverGone;

/// A part must have at least `thread_samples` divided by this number of samples per series, because
/// the labels and groups of a series are processed again in every part.
const SERIES_PER_THREAD: u64 = 200;

/// Assumed scrape interval of a series, in milliseconds.
const INTERVAL_MS: u64 = 15_000;

/// Maximum number of messages of a helping thread that wait for the joining thread.
const WAITING_MAX: usize = 2;

/// The state that all threads of a query use.
pub(super) struct Splitter<'a> {
    pub expression: &'a Expression,
    pub options: QueryOptions,
    pub shared: &'a Shared,
    pub deadline: Option<Instant>,
    /// Returns whether the client has disconnected.
    pub is_gone: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Returns the number of parts into which the steps should be split.
fn parts_of(estimate: Estimate, steps: Steps, thread_samples: u64) -> u64 {
    let span_ms = steps.last_ms.abs_diff(steps.first_ms);
    let read_ms = estimate.end_ms.abs_diff(estimate.start_ms);
    let of_series = span_ms / INTERVAL_MS;
    let of_all = estimate.series.saturating_mul(of_series);
    // Each part also reads a window before its range, which must be at most a fourth of the range.
    let window_ms = read_ms.saturating_sub(span_ms).max(1);
    let of_series_min = (thread_samples / SERIES_PER_THREAD).max(1);
    // The minimum of three bounds: samples of all series, samples per series, range per window.
    (of_all / thread_samples).min(of_series / of_series_min).min(span_ms / 4 / window_ms)
}

impl Splitter<'_> {
    /// Splits the steps; returns `None` if one thread is enough. Opens the selectors' series.
    pub fn parts(
        &self,
        evaluator: &mut Evaluator<'_>,
        evaluation: EvaluationHandle,
    ) -> Result<Option<Vec<Steps>>, StoreError> {
        let expression = self.expression;
        let queries = self.shared.config();
        let threads_max = queries.threads_max as u64;
        let Some(steps) = Steps::of(expression.times) else { return Ok(None) };
        // A series limit is for the whole answer, and a joined answer has no counts per step.
        if threads_max < 2
            || steps.count() < 2
            || expression.format != ResultFormat::Json
            || expression.series_max > 0
            || self.options.stats_per_step
        {
            return Ok(None);
        }
        // By its plan, the engine can already exclude expressions that can never be joined.
        if !can_be_joined(evaluator.instance, evaluation)? {
            return Ok(None);
        }
        let estimate = evaluator.prepare(evaluation)??;
        let parts = parts_of(estimate, steps, queries.thread_samples).min(threads_max);
        Ok((parts > 1).then(|| steps.split(parts)))
    }

    /// Evaluates the parts, the first on this thread, and sends the joined answer. Returns false if
    /// the parts cannot be joined; then nothing was sent.
    pub fn give(
        &self,
        evaluator: &mut Evaluator<'_>,
        parts: &[Steps],
        repeated: Option<&Repeated<'_>>,
        send: &dyn Fn(QueryPart) -> Result<(), ReceiverGone>,
    ) -> Result<bool, StoreError> {
        let [first, others @ ..] = parts else { return Ok(false) };
        let reading = &self.shared.reading;
        let ledger = reading.ledger();
        // Taken before any series is opened, so that a later write cannot go unnoticed.
        let (moment, blocks) = (ledger.moment(), reading.block_changes());
        let own = evaluator.begin(first.times())??;
        evaluator.prepare(own)??;
        // When dropped, stops the helping threads, even if this function returns an error.
        let nobody_waits = Flag(Arc::default());
        let others: Result<Vec<_>, _> =
            others.iter().map(|steps| self.start(*steps, &nobody_waits.0)).collect();
        let mut others = others?;
        let mut is_fit = true;
        for other in &mut others {
            is_fit &= other.is_open()?;
        }
        // All parts must see the same data. Only the last part reads samples after this time.
        let last_ms = parts.iter().rev().nth(1).map_or(i64::MAX, |steps| steps.last_ms);
        is_fit = is_fit
            && reading.block_changes() == blocks
            && ledger.is_unchanged_until(last_ms, moment);
        let mut firsts = Vec::new();
        if is_fit {
            // All first bytes are awaited before any is sent: until then, one instance can answer.
            match evaluator.next(own, ResultFormat::Json)?.map_err(StoreError::from) {
                Ok(bytes) => {
                    firsts.push(bytes);
                    is_fit = can_be_joined(evaluator.instance, own)?;
                }
                Err(StoreError::Evaluation(_)) => is_fit = false,
                Err(error) => return Err(error),
            }
        }
        for other in &mut others {
            match if is_fit { other.first()? } else { None } {
                Some(bytes) => firsts.push(bytes),
                None => is_fit = false,
            }
        }
        if !is_fit {
            evaluator.end(own)?;
            return Ok(false);
        }
        self.shared.figures.add_split();
        let mut kept = repeated.map(|repeated| (repeated, repeated.reader()));
        if send(QueryPart::Begin { kind: ValueType::Matrix, text: String::new() }).is_err() {
            return Ok(true);
        }
        let own_parts = || Ok(evaluator.next(own, ResultFormat::Json)??);
        let mut sources: Vec<Source<'_>> = vec![Box::new(own_parts)];
        sources.extend(others.iter_mut().map(|it| -> Source<'_> { Box::new(|| it.next()) }));
        let mut joined = Joined::new(firsts.into_iter().zip(sources));
        let mut answer_bytes = 0;
        loop {
            let bytes = joined.next_part(PART_BYTES as usize)?;
            if bytes.is_empty() {
                break;
            }
            answer_bytes += bytes.len() as u64;
            kept = kept.and_then(|(to, mut reader)| reader.read(&bytes).map(|()| (to, reader)));
            if send(QueryPart::Bytes(bytes.into())).is_err() {
                return Ok(true);
            }
        }
        drop(joined);
        evaluator.cost.answer_bytes += answer_bytes;
        // An answer is cached only if every part reports that its steps are independent.
        let (mut may_be_kept, mut costs) = (true, Vec::new());
        for other in others {
            let (waited, end) = other.end()?;
            // The engine merges annotations, so that their limit is for the whole answer.
            evaluator.instance.add_remarks(own, &end.remarks)??;
            may_be_kept &= end.is_stepwise;
            costs.push((waited, end.stats));
        }
        may_be_kept &= evaluator.instance.is_stepwise(own)?;
        let annotations = evaluator.instance.annotations(own, ANNOTATIONS_MAX)?;
        evaluator.end(own)?;
        costs.into_iter().for_each(|(waited, stats)| evaluator.cost.add_other(waited, stats));
        if let Some((repeated, reader)) = kept
            && may_be_kept
            && let Some(answer) = finish(reader, annotations.clone())
        {
            repeated.keep(answer);
        }
        // A send fails only if the client has disconnected.
        let _ = send(QueryPart::End(Box::new(QueryEnd {
            annotations,
            stats: evaluator.cost.stats(),
            samples_per_step: Vec::new(),
            timings: evaluator.cost.timings,
        })));
        Ok(true)
    }

    /// Starts a thread that evaluates one part.
    fn start(&self, steps: Steps, nobody_waits: &Arc<AtomicBool>) -> Result<Other, StoreError> {
        let (says, said) = sync_channel(WAITING_MAX);
        let reading = self.shared.reading.clone();
        let (deadline, options) = (self.deadline, self.options);
        let text = self.expression.text.clone();
        let (is_gone, nobody_waits) = (Arc::clone(&self.is_gone), Arc::clone(nobody_waits));
        self.shared.reading.run(move || {
            let is_gone = move || nobody_waits.load(Relaxed) || is_gone();
            let done = reading.with_instance(deadline, is_gone, |instance| {
                let evaluation = instance.evaluate(&text, steps.times(), options)??;
                say_all(instance, evaluation, &says)
            });
            if let Err(error) = done {
                // The send fails only if the query has ended and dropped the receiver.
                let _ = says.send(Err(error));
            }
        })?;
        Ok(Other { said, waited: Duration::ZERO, end: None })
    }
}

/// A flag that is set on drop.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Messages of a helping thread, which are sent in the order of the variants.
enum Said {
    Opened,
    /// The next bytes, and whether they can be joined with answers of other parts.
    Bytes(Vec<u8>, bool),
    End(Box<End>),
}

/// The annotations and cost of an evaluated part.
struct End {
    remarks: Vec<u8>,
    stats: QueryStats,
    is_stepwise: bool,
}

/// Sends all messages of an evaluation. Stops if the receiver was dropped.
fn say_all(
    instance: &mut Instance,
    evaluation: EvaluationHandle,
    says: &SyncSender<Result<Said, StoreError>>,
) -> Result<(), StoreError> {
    instance.prepare_evaluation(evaluation)??;
    let mut is_heard = says.send(Ok(Said::Opened)).is_ok();
    while is_heard {
        let bytes = instance.next_of_query(evaluation, ResultFormat::Json, PART_BYTES)??;
        let is_fit = can_be_joined(instance, evaluation)?;
        if bytes.is_empty() {
            let remarks = instance.remarks(evaluation)?;
            let stats = instance.query_stats(evaluation)?;
            let end = End { remarks, stats, is_stepwise: is_fit };
            let _ = says.send(Ok(Said::End(Box::new(end))));
            break;
        }
        is_heard = says.send(Ok(Said::Bytes(bytes, is_fit))).is_ok();
    }
    Ok(instance.close_evaluation(evaluation)?)
}

/// Returns whether an answer whose evaluation has begun can be joined with other parts.
fn can_be_joined(
    instance: &mut Instance,
    evaluation: EvaluationHandle,
) -> Result<bool, StoreError> {
    Ok(instance.is_stepwise(evaluation)? && instance.is_sorted(evaluation)?)
}

/// A helping thread that evaluates one part, as seen by the joining thread.
struct Other {
    said: Receiver<Result<Said, StoreError>>,
    waited: Duration,
    end: Option<Box<End>>,
}

impl Other {
    fn hear(&mut self) -> Result<Said, StoreError> {
        let begun = Instant::now();
        // A thread ends without a last message only when the process stops.
        let said = self.said.recv().unwrap_or(Err(StoreError::Stopped));
        self.waited += begun.elapsed();
        said
    }

    /// Waits until the series are open. Returns false if there is not enough memory for the thread.
    fn is_open(&mut self) -> Result<bool, StoreError> {
        match self.hear() {
            Ok(said) => Ok(matches!(said, Said::Opened)),
            Err(StoreError::NeedsTooMuchMemory) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the first bytes, or `None` if they cannot be joined with other parts.
    fn first(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.hear() {
            Ok(Said::Bytes(bytes, true)) => Ok(Some(bytes)),
            // One instance then evaluates the query, and reports errors as without a split.
            Ok(_) | Err(StoreError::NeedsTooMuchMemory | StoreError::Evaluation(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the next bytes, or none at the end.
    fn next(&mut self) -> Result<Vec<u8>, StoreError> {
        if self.end.is_none() {
            match self.hear()? {
                Said::Bytes(bytes, _) => return Ok(bytes),
                Said::End(end) => self.end = Some(end),
                Said::Opened => {}
            }
        }
        Ok(Vec::new())
    }

    /// Returns the part's annotations and cost, and the time that the caller waited for the thread.
    fn end(mut self) -> Result<(Duration, End), StoreError> {
        // The joining stops after the last series, so the end may not have been read yet.
        while self.end.is_none() {
            self.next()?;
        }
        let end = self.end.ok_or(StoreError::Stopped)?;
        Ok((self.waited, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_runtime::QueryTimes;

    #[test]
    fn parts_are_worth_their_thread() {
        let hour_ms = 3_600_000;
        let steps = |hours| {
            let times = QueryTimes::Range { start_ms: 0, end_ms: hours * hour_ms, step_ms: 60_000 };
            Steps::of(times).expect("steps")
        };
        let of = |series, hours, window_ms: i64| {
            let steps = steps(hours);
            let estimate = Estimate { series, start_ms: -window_ms, end_ms: steps.last_ms };
            parts_of(estimate, steps, 500_000)
        };
        // A series has 5760 samples a day.
        assert_eq!([86, 87, 174, 1000].map(|series| of(series, 24, 60_000)), [0, 1, 2, 2]);
        // A part has at least 2500 samples of each series: ten hours and a half.
        assert_eq!([8, 10, 11, 21, 168].map(|hours| of(1000, hours, 60_000)), [0, 0, 1, 2, 16]);
        // Parts with long windows repeat the work of their neighbours.
        assert_eq!([1, 3, 6, 7].map(|hours| of(1000, 24, hours * hour_ms)), [2, 2, 1, 0]);
        let once = QueryTimes::Range { start_ms: 5, end_ms: 5, step_ms: 1 };
        let once = Steps::of(once).expect("a step");
        let estimate = Estimate { series: u64::MAX, start_ms: i64::MIN, end_ms: i64::MAX };
        assert_eq!(parts_of(estimate, once, 1), 0);
    }
}
