//! Cache of answers to range queries. When a range has moved on, only steps that are new, or whose
//! samples may have changed, are evaluated.
//!
//! ```text
//!              kept answer
//! ├────────────────────────────────┤ ┆ since then a sample was stored here
//!        ├────────────────────────┼─────────┤
//!        reused                    evaluated     the range that is asked for
//! ```
//!
//! A step is reused only if nothing that it may have read has changed since its evaluation: no
//! sample at its time or before was stored, and nothing was deleted, lost or imported ([`Ledger`]).
//! An answer is cached only if its steps depend on nothing else, as the engine reports. Nothing is
//! cached if annotations differ from step to step ([`notes`]).
//!
//! The cache has the texts of values ([`points`]) as the engine wrote them ([`reader`]), so an
//! answer is byte for byte the engine's, without formatting numbers again. The cache is bounded and
//! counts towards the memory limit for reads. The least recently used answer is evicted first.

mod answer;
mod joined;
mod labels;
mod notes;
mod points;
mod reader;
mod steps;
#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use joined::{Joined, Source};
pub use notes::{NOTES_MAX, Notes};
pub use reader::Reader;
pub use steps::Steps;

use super::queries::QueryFeatures;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidepool_runtime::MemoryPool;
use tidepool_store::reading::{Ledger, Moment};
use tidepool_telemetry::MetricsText;

/// Maximum number of queries that are remembered because their annotations differ by step.
const UNSTEADY_MAX: usize = 256;

/// An answer may have at most the cache's size divided by this number.
const ANSWER_PART: usize = 4;

/// The cache may have at most the memory limit for reads divided by this number.
const READS_PART: usize = 8;

/// Everything except the range that changes an answer. Steps with equal keys are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub text: String,
    pub step_ms: i64,
    /// Remainder of the first step's time divided by the step.
    pub phase_ms: i64,
    pub lookback_ms: i64,
    /// Step of subqueries that state none.
    pub subquery_step_ms: i64,
    pub samples_max: u64,
    pub features: QueryFeatures,
}

/// A cached answer, and the state of the store that it reflects.
#[derive(Clone)]
pub struct CachedAnswer {
    pub answer: Arc<Answer>,
    /// State of the store before the evaluation. The answer may not reflect later changes.
    moment: Moment,
    /// The largest number of steps that a query has requested at once.
    pub widest: u64,
}

/// The result of a lookup.
pub struct Known {
    /// State of the store before the evaluation begins.
    pub moment: Moment,
    /// A cached answer and its steps that are still valid, if any of these was requested.
    pub found: Option<(CachedAnswer, Steps)>,
}

pub struct Results {
    bytes_max: usize,
    pool: Arc<MemoryPool>,
    /// Records changes of the store, which invalidate steps.
    ledger: Arc<Ledger>,
    answers: Arc<Mutex<Answers>>,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// Cached answers by key and by last use.
#[derive(Default)]
struct Answers {
    by_key: HashMap<Arc<Key>, (u64, CachedAnswer)>,
    by_use: BTreeMap<u64, Arc<Key>>,
    uses: u64,
    bytes: usize,
    shared_bytes: usize,
    /// Hashes of keys whose annotations differ from step to step, newest last.
    unsteady: VecDeque<u64>,
}

impl Results {
    /// Creates a cache of at most `bytes_max` bytes and an eighth of the memory limit for reads.
    /// With 0, nothing is cached. Changes of the store other than writes drop all answers.
    pub fn new(bytes_max: u64, pool: &Arc<MemoryPool>, ledger: &Arc<Ledger>) -> Results {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let answers: Arc<Mutex<Answers>> = Arc::default();
        // Weak, because the ledger outlives the cache and would keep its memory.
        let kept = Arc::downgrade(&answers);
        ledger.on_change(move || {
            let Some(answers) = kept.upgrade() else { return };
            // The lock is released first, because freeing the answers takes time.
            let dropped = std::mem::take(&mut *lock(&answers));
            drop(dropped);
        });
        Results {
            bytes_max: bytes_max.min(pool.bytes_max() / READS_PART),
            pool: Arc::clone(pool),
            ledger: Arc::clone(ledger),
            answers,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    pub fn are_kept(&self) -> bool {
        self.bytes_max > 0
    }

    pub fn answer_bytes_max(&self) -> usize {
        self.bytes_max / ANSWER_PART
    }

    /// Looks up the steps that are still valid. Must be called before the query is evaluated.
    pub fn known(&self, key: &Key, asked: Steps) -> Known {
        let kept = lock(&self.answers).get(key);
        // An evaluation may not reflect changes after this point.
        let moment = self.ledger.moment();
        let found = kept.and_then(|kept| {
            let before_ms = self.ledger.unchanged_before_ms(kept.moment)?;
            let right = kept.answer.steps.before(before_ms)?;
            // An answer without any of the requested steps is a miss.
            right.intersect(asked)?;
            Some((kept, right))
        });
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Relaxed);
        Known { moment, found }
    }

    /// Returns a parser that collects an answer for the cache while it is sent.
    pub fn reader(&self, steps: Steps) -> Reader {
        Reader::new(steps, self.answer_bytes_max(), self.pool.share())
    }

    /// Joins consecutive pieces to one answer.
    pub fn join(&self, pieces: &[(&Answer, Steps)]) -> Option<Answer> {
        Answer::join(pieces, self.answer_bytes_max(), self.pool.share())
    }

    /// Caches an answer that was evaluated after `moment`. Replaces the answer with the same key.
    pub fn keep(&self, key: Key, moment: Moment, answer: Arc<Answer>, widest: u64) {
        let bytes = entry_bytes(&key, &answer);
        if bytes > self.answer_bytes_max() || self.moment_is_over(moment) {
            return;
        }
        let mut answers = lock(&self.answers);
        if !answer.notes().is_empty() && answers.unsteady.contains(&hash_of(&key)) {
            return;
        }
        let mut dropped = vec![answers.remove(&key)];
        // The replaced answer is already removed, so its bytes are not counted.
        while answers.bytes + bytes > self.bytes_max {
            let Some((_, oldest)) = answers.by_use.first_key_value() else { break };
            let oldest = Arc::clone(oldest);
            dropped.push(answers.remove(&oldest));
            self.evictions.fetch_add(1, Relaxed);
        }
        answers.insert(key, CachedAnswer { answer, moment, widest });
        // Answers may be large, so they are freed after the lock is released.
        drop(answers);
        drop(dropped);
    }

    /// Drops an answer with changing annotations. Its key is cached again only without annotations.
    pub fn forget_unsteady(&self, key: &Key) {
        let mut answers = lock(&self.answers);
        let dropped = answers.remove(key);
        let hash = hash_of(key);
        if !answers.unsteady.contains(&hash) {
            if answers.unsteady.len() >= UNSTEADY_MAX {
                answers.unsteady.pop_front();
            }
            answers.unsteady.push_back(hash);
        }
        drop(answers);
        drop(dropped);
    }

    /// Returns whether a change since `moment` has invalidated all steps.
    fn moment_is_over(&self, moment: Moment) -> bool {
        self.ledger.unchanged_before_ms(moment).is_none()
    }

    /// Returns the bytes that cached answers have reserved in the memory limit for reads.
    pub fn shared_bytes(&self) -> usize {
        lock(&self.answers).shared_bytes
    }

    /// Writes the metrics of the cache.
    pub fn show(&self, text: &mut MetricsText) {
        let (count, bytes) = {
            let answers = lock(&self.answers);
            (answers.by_key.len(), answers.bytes)
        };
        text.counter(
            "tidepool_query_cache_hits_total",
            "Range queries of which some steps were answered from the query cache.",
            self.hits.load(Relaxed),
        );
        text.counter(
            "tidepool_query_cache_misses_total",
            "Range queries that asked the query cache in vain.",
            self.misses.load(Relaxed),
        );
        text.counter(
            "tidepool_query_cache_evictions_total",
            "Answers that left the query cache because it was full.",
            self.evictions.load(Relaxed),
        );
        text.gauge("tidepool_query_cache_entries", "Answers in the query cache.", count);
        text.gauge("tidepool_query_cache_bytes", "Memory of the query cache.", bytes);
        let max = self.bytes_max;
        text.gauge("tidepool_query_cache_limit_bytes", "Maximum memory of the query cache.", max);
    }
}

impl Answers {
    fn get(&mut self, key: &Key) -> Option<CachedAnswer> {
        let (used, kept) = self.by_key.get_mut(key)?;
        self.uses += 1;
        if let Some(key) = self.by_use.remove(used) {
            self.by_use.insert(self.uses, key);
        }
        *used = self.uses;
        Some(kept.clone())
    }

    fn insert(&mut self, key: Key, kept: CachedAnswer) {
        self.uses += 1;
        self.bytes += entry_bytes(&key, &kept.answer);
        self.shared_bytes += kept.answer.shared_bytes();
        let key = Arc::new(key);
        self.by_use.insert(self.uses, Arc::clone(&key));
        self.by_key.insert(key, (self.uses, kept));
    }

    fn remove(&mut self, key: &Key) -> Option<CachedAnswer> {
        let (used, kept) = self.by_key.remove(key)?;
        self.by_use.remove(&used);
        self.bytes -= entry_bytes(key, &kept.answer);
        self.shared_bytes -= kept.answer.shared_bytes();
        Some(kept)
    }
}

/// Hashes a key. A collision, which is rare, only keeps an answer from being cached.
fn hash_of(key: &Key) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

/// Returns the memory of an entry: the answer, two map entries, the key and reference counts.
fn entry_bytes(key: &Key, answer: &Answer) -> usize {
    const MAPS_BYTES: usize = 128;
    MAPS_BYTES
        + size_of::<Key>()
        + key.text.capacity()
        + size_of::<CachedAnswer>()
        + size_of::<Answer>()
        + answer.bytes()
}

/// Locks a mutex. Poison is ignored, because the state stays valid if a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
