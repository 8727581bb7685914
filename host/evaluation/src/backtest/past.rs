//! The store as backtests see it: stored series, and series that rules compute.
//!
//! ```text
//! expression ─┬─ reads stored series only ─▶ the store
//!             └─ reads computed series ────▶ a store in memory: computed samples, and copies of the
//!                                            stored series that the expression reads as well
//! ```

use super::copies::{Copies, copied};
use crate::append::{Refused, Sample};
use crate::engine::{answer, evaluated, matrix, name, reads, within};
use crate::histogram::SharedHistogram;
use crate::memory_store::MemoryStore;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_rules::backtest::{Past, Times};
use tidepool_rules::engine::{Answer, Moment, Query, Reads, Series};
use tidepool_rules::labels::METRIC_NAME;
use tidepool_runtime::{Instance, MatchOp, Matcher, QueryOptions, QueryTimes, Runtime};
use tidepool_store::StoreError;

/// Part of the memory of an instance that an answer may take outside of it.
const ANSWER_PART: usize = 4;

/// Samples may be computed and copied in any order.
const ANY_AGE_MS: i64 = i64::MAX;

/// What answers queries over stored series.
pub trait Stored {
    /// Runs `work` with an instance that ends when a backtest has to.
    fn run<T>(
        &self,
        limits: &Limits,
        work: impl FnOnce(&mut Instance) -> Result<T, StoreError>,
    ) -> Result<T, StoreError>;
}

#[derive(Clone)]
pub struct Limits {
    pub options: QueryOptions,
    /// Maximum memory of an instance, in bytes.
    pub memory_bytes_max: usize,
    /// Maximum duration, if there is one.
    pub timeout: Option<Duration>,
    pub deadline: Option<Instant>,
    /// Whether nobody waits for the outcome any more.
    pub is_cancelled: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// An instance on a data directory without a server.
impl Stored for RefCell<Instance> {
    fn run<T>(
        &self,
        _: &Limits,
        work: impl FnOnce(&mut Instance) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        work(&mut self.borrow_mut())
    }
}

pub struct StoredPast<S> {
    stored: S,
    runtime: Runtime,
    limits: Limits,
    begin: Instant,
    /// Names of computed series that rules read.
    computed: BTreeSet<String>,
    /// Opened when it is needed.
    memory: RefCell<Option<Memory>>,
    /// Why the store in memory ended.
    ended: RefCell<Option<String>>,
    /// The last expression, with its selectors.
    parsed: RefCell<(String, Selectors)>,
}

/// The selectors of an expression, or why there are none.
type Selectors = Rc<Result<Vec<Vec<Matcher>>, String>>;

struct Memory {
    store: MemoryStore,
    copies: Copies,
}

impl<S: Stored> StoredPast<S> {
    pub fn new(stored: S, runtime: Runtime, limits: Limits) -> StoredPast<S> {
        StoredPast {
            stored,
            runtime,
            limits,
            begin: Instant::now(),
            computed: BTreeSet::new(),
            memory: RefCell::default(),
            ended: RefCell::default(),
            parsed: RefCell::new((String::new(), Rc::new(Ok(Vec::new())))),
        }
    }

    fn options(&self) -> QueryOptions {
        within(self.limits.options, self.limits.memory_bytes_max)
    }

    fn answer_bytes_max(&self) -> usize {
        self.limits.memory_bytes_max / ANSWER_PART
    }

    fn stored<T>(
        &self,
        work: impl FnOnce(&mut Instance) -> Result<T, StoreError>,
    ) -> Result<T, String> {
        self.stored.run(&self.limits, work).map_err(|error| error.to_string())
    }

    /// Runs `work` with the store in memory.
    fn in_memory<T>(
        &self,
        work: impl FnOnce(&mut Memory) -> Result<T, StoreError>,
    ) -> Result<T, String> {
        let mut memory = self.memory.borrow_mut();
        if memory.is_none() {
            let Limits { memory_bytes_max, deadline, .. } = self.limits;
            let store = MemoryStore::open(&self.runtime, memory_bytes_max, ANY_AGE_MS);
            let mut store = store.map_err(|error| StoreError::from(error).to_string())?;
            let is_cancelled = Arc::clone(&self.limits.is_cancelled);
            store.instance.end_when(deadline, move || is_cancelled());
            *memory = Some(Memory { store, copies: Copies::default() });
        }
        let Some(open) = memory.as_mut() else { return Err(String::new()) };
        work(open).map_err(|error| {
            let text = error.to_string();
            // Computed samples are gone with their instance.
            if open.store.instance.brief_stats().is_err() {
                let why = format!("the store of computed series ended: {text}");
                self.ended.borrow_mut().get_or_insert(why);
            }
            text
        })
    }

    fn selectors(&self, expression: &str) -> Selectors {
        let mut parsed = self.parsed.borrow_mut();
        if parsed.0 != expression {
            let found = self.stored(|instance| Ok(instance.selectors(expression, self.options())?));
            let found = found.and_then(|found| found.map_err(|error| error.text));
            *parsed = (expression.to_owned(), Rc::new(found));
        }
        Rc::clone(&parsed.1)
    }

    /// Evaluates an expression over the series that it reads, wherever they are.
    fn run<T>(
        &self,
        expression: &str,
        (start_ms, end_ms): (i64, i64),
        work: impl FnOnce(&mut Instance, QueryOptions) -> Result<T, StoreError>,
    ) -> Result<T, String> {
        let selectors = self.selectors(expression);
        let selectors = selectors.as_ref().as_ref().map_err(String::clone)?;
        let is_computed = |matchers: &Vec<Matcher>| {
            name(matchers).map_or(!self.computed.is_empty(), |name| self.computed.contains(name))
        };
        let options = self.options();
        if !selectors.iter().any(is_computed) {
            return self.stored(|instance| work(instance, options));
        }
        for matchers in selectors.iter().filter_map(|matchers| self.stored_part(matchers)) {
            let oldest_ms = self.oldest_read_ms(expression, start_ms)?;
            self.in_memory(|memory| {
                let Memory { store, copies } = memory;
                for range in copies.missing(&matchers, oldest_ms, end_ms) {
                    let bytes_max = self.answer_bytes_max();
                    self.stored.run(&self.limits, |instance| {
                        copied(instance, &matchers, range, bytes_max, |request| {
                            store.append_request(request, system_now_ms())
                        })
                    })?;
                }
                Ok(())
            })?;
        }
        self.in_memory(|memory| work(&mut memory.store.instance, options))
    }

    /// Returns matchers for those of the series that are not computed; `None` if all are.
    fn stored_part(&self, matchers: &[Matcher]) -> Option<Vec<Matcher>> {
        let mut matchers = matchers.to_vec();
        match name(&matchers) {
            Some(name) if self.computed.contains(name) => return None,
            Some(_) => {}
            None => matchers.extend(self.computed.iter().map(|computed| Matcher {
                name: METRIC_NAME.to_owned(),
                op: MatchOp::NotEqual,
                value: computed.clone(),
            })),
        }
        Some(matchers)
    }
}

impl<S: Stored> Past for StoredPast<S> {
    type Histogram = SharedHistogram;

    fn reads(&self, expression: &str) -> Reads {
        match self.selectors(expression).as_ref() {
            Ok(selectors) => reads(selectors),
            Err(_) => Reads::Names(BTreeSet::new()),
        }
    }

    fn computes(&mut self, names: &BTreeSet<String>) {
        self.computed = names.clone();
    }

    fn oldest_read_ms(&self, expression: &str, time_ms: i64) -> Result<i64, String> {
        let times = QueryTimes::Instant(time_ms);
        self.stored(|instance| {
            evaluated(instance, expression, times, self.options(), |instance, evaluation| {
                Ok(instance.prepare_evaluation(evaluation)??.start_ms)
            })
        })
    }

    fn columns(
        &self,
        expression: &str,
        Times { start_ms, end_ms, step_ms }: Times,
    ) -> Result<Vec<Series<SharedHistogram>>, String> {
        let times = QueryTimes::Range { start_ms, end_ms, step_ms };
        let bytes_max = self.answer_bytes_max();
        self.run(expression, (start_ms, end_ms), |instance, options| {
            evaluated(instance, expression, times, options, |instance, evaluation| {
                matrix(instance, evaluation, bytes_max)
            })
        })
    }

    fn instant(&self, query: &Query<'_>) -> Result<Answer<SharedHistogram>, String> {
        let &Query { expression, time_ms, .. } = query;
        let bytes_max = self.answer_bytes_max();
        self.run(expression, (time_ms, time_ms), |instance, options| {
            answer(instance, expression, time_ms, options, bytes_max)
        })
    }

    fn compute(&mut self, samples: &[Sample]) -> Result<Refused, String> {
        self.in_memory(|memory| memory.store.append(samples))
    }

    fn now(&self) -> Moment {
        Moment { wall_ms: system_now_ms(), monotonic: self.begin.elapsed() }
    }

    fn end(&self) -> Option<String> {
        let Limits { deadline, timeout, is_cancelled, .. } = &self.limits;
        if is_cancelled() {
            return Some("nobody waits for the outcome".to_owned());
        }
        if let (Some(deadline), Some(timeout)) = (deadline, timeout)
            && Instant::now() >= *deadline
        {
            return Some(format!(
                "the backtest took longer than {timeout:?} (--query-timeout); give a shorter range \
                 or fewer rules"
            ));
        }
        self.ended.borrow().clone()
    }
}
