//! Answers of range queries that are kept for the next time, when their range has moved on: only
//! the steps that are new, or of which samples changed, are evaluated again.
//!
//! ```text
//!              kept answer
//! ├────────────────────────────────┤ ┆ since then a sample was stored here
//!        ├────────────────────────┼─────────┤
//!        reused                    evaluated     the range that is asked for
//! ```
//!
//! A step at a time is reused only if nothing that it may have read changed since its evaluation
//! began: no sample at that time or before was stored, and nothing was deleted, lost or added
//! otherwise ([`Ledger`]). What is kept are answers of which the engine says that each step depends
//! on nothing else. Where warnings and infos come and go from step to step, nothing is kept
//! ([`notes`]).
//!
//! Kept are the texts of values ([`points`]), as the engine wrote them ([`reader`]): what is
//! answered from them is byte for byte what it would write, without formatting numbers. All of it
//! is bounded, and is part of the memory of reads; the answer that was not used for longest goes
//! first.

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

/// Queries whose warnings and infos are known to change. Others are not thought of any more.
const UNSTEADY_MAX: usize = 256;

/// The largest part of all that one answer may take.
const ANSWER_PART: usize = 4;

/// The largest part of the memory of reads.
const READS_PART: usize = 8;

/// What answers must have in common for one to be of use to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The expression.
    pub text: String,
    /// Milliseconds between two steps.
    pub step_ms: i64,
    /// The part of a step by which steps are behind its multiples.
    pub phase_ms: i64,
    /// How far back instant selectors look.
    pub lookback_ms: i64,
    /// Milliseconds between steps of subqueries that name none.
    pub subquery_step_ms: i64,
    /// Most samples that are held.
    pub samples_max: u64,
    /// What of the language is on.
    pub features: QueryFeatures,
}

/// An answer that was kept, and until when it is what the store would give.
#[derive(Clone)]
pub struct Kept {
    /// The answer.
    pub answer: Arc<Answer>,
    /// Nothing that it was made of had changed by then, at the steps that are reused.
    moment: Moment,
    /// The most steps that were asked for at once.
    pub widest: u64,
}

/// What is known before an evaluation.
pub struct Known {
    /// The moment before it begins.
    pub moment: Moment,
    /// An answer with the steps of it that are still right, if any of them is asked for.
    pub found: Option<(Kept, Steps)>,
}

/// The answers that are kept.
pub struct Results {
    bytes_max: usize,
    pool: Arc<MemoryPool>,
    /// What changed in the store since an answer was evaluated.
    ledger: Arc<Ledger>,
    answers: Arc<Mutex<Answers>>,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// All answers, by their keys and by when they were last used.
#[derive(Default)]
struct Answers {
    by_key: HashMap<Arc<Key>, (u64, Kept)>,
    by_use: BTreeMap<u64, Arc<Key>>,
    uses: u64,
    bytes: usize,
    shared_bytes: usize,
    /// Hashes of the keys of answers whose warnings and infos change from step to step, newest
    /// last.
    unsteady: VecDeque<u64>,
}

impl Results {
    /// Keeps answers of so many bytes together, and takes them from the memory of reads, of which
    /// it never takes more than an eighth. With 0 it keeps none. Anything but a write drops all.
    pub fn new(bytes_max: u64, pool: &Arc<MemoryPool>, ledger: &Arc<Ledger>) -> Results {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let answers: Arc<Mutex<Answers>> = Arc::default();
        let kept = Arc::downgrade(&answers);
        ledger.on_change(move || {
            let Some(answers) = kept.upgrade() else { return };
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

    /// Whether answers are kept at all.
    pub fn are_kept(&self) -> bool {
        self.bytes_max > 0
    }

    /// The most bytes that one answer may take.
    pub fn answer_bytes_max(&self) -> usize {
        self.bytes_max / ANSWER_PART
    }

    /// What is known of the steps that a query asks for. To be asked before the query is evaluated.
    pub fn known(&self, key: &Key, asked: Steps) -> Known {
        let kept = lock(&self.answers).get(key);
        // What changes after this moment may be missing in what is evaluated.
        let moment = self.ledger.moment();
        let found = kept.and_then(|kept| {
            let before_ms = self.ledger.unchanged_before_ms(kept.moment)?;
            let right = kept.answer.steps.before(before_ms)?;
            right.intersect(asked)?;
            Some((kept, right))
        });
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Relaxed);
        Known { moment, found }
    }

    /// Reads an answer on its way.
    pub fn reader(&self, steps: Steps) -> Reader {
        Reader::new(steps, self.answer_bytes_max(), self.pool.share())
    }

    /// Joins pieces that follow one another to one answer.
    pub fn join(&self, pieces: &[(&Answer, Steps)]) -> Option<Answer> {
        Answer::join(pieces, self.answer_bytes_max(), self.pool.share())
    }

    /// Keeps an answer that was right at a moment, in place of the one with the same key.
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
        while answers.bytes + bytes > self.bytes_max {
            let Some((_, oldest)) = answers.by_use.first_key_value() else { break };
            let oldest = Arc::clone(oldest);
            dropped.push(answers.remove(&oldest));
            self.evictions.fetch_add(1, Relaxed);
        }
        answers.insert(key, Kept { answer, moment, widest });
        drop(answers);
        drop(dropped);
    }

    /// Forgets an answer whose warnings and infos are not those of newer steps, and keeps none of
    /// the same key that has any.
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

    /// Whether nothing of what was right at a moment is known to be right now.
    fn moment_is_over(&self, moment: Moment) -> bool {
        self.ledger.unchanged_before_ms(moment).is_none()
    }

    /// Bytes of the memory of reads that kept answers take.
    pub fn shared_bytes(&self) -> usize {
        lock(&self.answers).shared_bytes
    }

    /// Shows what was counted.
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
    fn get(&mut self, key: &Key) -> Option<Kept> {
        let (used, kept) = self.by_key.get_mut(key)?;
        self.uses += 1;
        if let Some(key) = self.by_use.remove(used) {
            self.by_use.insert(self.uses, key);
        }
        *used = self.uses;
        Some(kept.clone())
    }

    fn insert(&mut self, key: Key, kept: Kept) {
        self.uses += 1;
        self.bytes += entry_bytes(&key, &kept.answer);
        self.shared_bytes += kept.answer.shared_bytes();
        let key = Arc::new(key);
        self.by_use.insert(self.uses, Arc::clone(&key));
        self.by_key.insert(key, (self.uses, kept));
    }

    fn remove(&mut self, key: &Key) -> Option<Kept> {
        let (used, kept) = self.by_key.remove(key)?;
        self.by_use.remove(&used);
        self.bytes -= entry_bytes(key, &kept.answer);
        self.shared_bytes -= kept.answer.shared_bytes();
        Some(kept)
    }
}

/// Two keys with one hash are rare, and then an answer is not kept that could be.
fn hash_of(key: &Key) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

/// Memory of an answer with what is around it: two entries in maps, the key, the counts of both.
fn entry_bytes(key: &Key, answer: &Answer) -> usize {
    const MAPS_BYTES: usize = 128;
    MAPS_BYTES
        + size_of::<Key>()
        + key.text.capacity()
        + size_of::<Kept>()
        + size_of::<Answer>()
        + answer.bytes()
}

/// Locks; a panic of another holder left nothing half-done that matters here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
