//! Cache of answers of range queries. When a range has moved on, only the steps that are new, or
//! whose samples changed, are evaluated again.
//!
//! ```text
//!              kept answer
//! ├────────────────────────────────┤ ┆ since then a sample was stored here
//!        ├────────────────────────┼─────────┤
//!        reused                    evaluated     the range that is asked for
//! ```
//!
//! A step is reused only if nothing that it may have read has changed since its evaluation began:
//! no sample at its time or before was stored, and nothing was deleted, lost or otherwise added
//! ([`Ledger`]). Only answers whose steps depend on nothing else, as the engine states, are cached.
//! If annotations differ from step to step, nothing is cached ([`notes`]).
//!
//! The cache holds the texts of values ([`points`]) as the engine wrote them ([`reader`]), so an
//! answer is byte for byte what the engine would write, without formatting numbers. Its memory is
//! bounded and is part of the memory of reads; the least recently used answer is evicted first.

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

/// Maximum number of remembered queries whose annotations change; the oldest is dropped first.
const UNSTEADY_MAX: usize = 256;

/// Divisor of the cache's size that gives the maximum size of one answer.
const ANSWER_PART: usize = 4;

/// Divisor of the memory of reads that gives the maximum size of the cache.
const READS_PART: usize = 8;

/// Everything that changes an answer besides its range; equal keys have interchangeable steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub text: String,
    pub step_ms: i64,
    /// Remainder of the first step's time divided by the step.
    pub phase_ms: i64,
    pub lookback_ms: i64,
    /// Step of subqueries without one.
    pub subquery_step_ms: i64,
    pub samples_max: u64,
    pub features: QueryFeatures,
}

/// A cached answer, and the moment to which its validity is compared.
#[derive(Clone)]
pub struct CachedAnswer {
    pub answer: Arc<Answer>,
    /// Taken before the evaluation; a change after it may be missing in the answer.
    moment: Moment,
    /// The largest number of steps requested at once.
    pub widest: u64,
}

/// The result of a lookup.
pub struct Known {
    /// The moment before the evaluation begins.
    pub moment: Moment,
    /// An answer with its steps that are still valid, if any requested step is among them.
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
    /// Hashes of keys whose annotations change from step to step, newest last.
    unsteady: VecDeque<u64>,
}

impl Results {
    /// Creates a cache of at most this many bytes of the memory of reads, and an eighth of that
    /// memory. With 0 it caches nothing. Any change of the store but a write drops all answers.
    pub fn new(bytes_max: u64, pool: &Arc<MemoryPool>, ledger: &Arc<Ledger>) -> Results {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let answers: Arc<Mutex<Answers>> = Arc::default();
        // Weak, since the ledger outlives the cache and would keep its memory.
        let kept = Arc::downgrade(&answers);
        ledger.on_change(move || {
            let Some(answers) = kept.upgrade() else { return };
            // The guard is dropped first: freeing the answers takes time that lookups would wait.
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

    /// Looks up valid steps of the requested ones. Must be called before the query is evaluated.
    pub fn known(&self, key: &Key, asked: Steps) -> Known {
        let kept = lock(&self.answers).get(key);
        // A change after this moment may be missing in the evaluation.
        let moment = self.ledger.moment();
        let found = kept.and_then(|kept| {
            let before_ms = self.ledger.unchanged_before_ms(kept.moment)?;
            let right = kept.answer.steps.before(before_ms)?;
            // A cached answer that has none of the requested steps is no hit.
            right.intersect(asked)?;
            Some((kept, right))
        });
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Relaxed);
        Known { moment, found }
    }

    /// Returns a reader for an answer that passes.
    pub fn reader(&self, steps: Steps) -> Reader {
        Reader::new(steps, self.answer_bytes_max(), self.pool.share())
    }

    /// Joins consecutive pieces to one answer.
    pub fn join(&self, pieces: &[(&Answer, Steps)]) -> Option<Answer> {
        Answer::join(pieces, self.answer_bytes_max(), self.pool.share())
    }

    /// Caches an answer evaluated after `moment`, in place of the one with the same key.
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
        // The replaced answer is gone already, so its bytes are not counted against the new one.
        while answers.bytes + bytes > self.bytes_max {
            let Some((_, oldest)) = answers.by_use.first_key_value() else { break };
            let oldest = Arc::clone(oldest);
            dropped.push(answers.remove(&oldest));
            self.evictions.fetch_add(1, Relaxed);
        }
        answers.insert(key, CachedAnswer { answer, moment, widest });
        // Answers may be large, so they are freed after the lock.
        drop(answers);
        drop(dropped);
    }

    /// Drops an answer whose annotations change, and refuses others of its key that have any.
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

    /// Returns whether a change since a moment has invalidated all steps.
    fn moment_is_over(&self, moment: Moment) -> bool {
        self.ledger.unchanged_before_ms(moment).is_none()
    }

    /// Size of cached answers in the memory of reads, in bytes.
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

/// Hashes a key. In the rare case of a collision, an answer that could be cached is not.
fn hash_of(key: &Key) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

/// Memory of an entry: the answer, two map entries, the key, and reference counts.
fn entry_bytes(key: &Key, answer: &Answer) -> usize {
    const MAPS_BYTES: usize = 128;
    MAPS_BYTES
        + size_of::<Key>()
        + key.text.capacity()
        + size_of::<CachedAnswer>()
        + size_of::<Answer>()
        + answer.bytes()
}

/// Locks a mutex. The state remains valid if another holder panicked, so poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
