//! Cache of a target between scrapes. It maps the text of a series to the store's reference, so
//! that the labels of an unchanged series are neither parsed nor relabeled again.
//!
//! Entries are in one list, their texts in one buffer. A lookup first tries the entry that followed
//! the last found entry in the previous scrape, and then a table of text hashes. Series that
//! relabeling drops have entries, too. Labels are not kept: the few series that need labels after
//! the first scrape get them from the text and its form.
//!
//! An iteration is one scrape, good or failed. [`Cache::finish`] ends it exactly once, so that a
//! series of a failed scrape is no duplicate in the next (prometheus/prometheus#16160). An entry is
//! *seen* if the iteration's scrape had its text, and *tracked* if its series gets a staleness
//! marker when it vanishes. Source: `scrapeCache` in `scrape/scrape.go` of prometheus/prometheus.

mod families;
mod texts;

pub use families::Families;

use crate::labels::Labels;
use crate::series_text::Form;
use crate::store::SeriesRef;
use hashbrown::{HashSet, HashTable};
use std::collections::HashMap;
use texts::{TextPlace, Texts};
use tidepool_remote_write::{bytes_equal, hash_bytes};

/// Failing scrapes may fill the cache up to this number of entries above twice the number after the
/// last good scrape; then the cache is flushed.
const GROWTH_FREE: usize = 1000;

/// Placeholder for the reference of a series that the store has not numbered yet.
const UNRESOLVED: SeriesRef = SeriesRef::MAX;

/// Index of an entry in its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

/// Result of looking a text up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    New,
    Dropped,
    Known {
        slot: Slot,
        /// Whether the current scrape has had the text before.
        is_repeated: bool,
    },
}

/// The series of one target: texts, references and tracking.
#[derive(Debug)]
pub struct Cache {
    entries: Vec<Entry>,
    texts: Texts,
    /// Indexes of free entries.
    free: Vec<u32>,
    table: HashTable<u32>,
    /// Final labels of the series that need labels in each scrape.
    labels: HashMap<Slot, Labels>,
    /// Bytes of the labels in `labels`.
    labels_bytes: usize,
    /// Newest stored exemplar of a series, with the time of its sample. Only exemplars without a
    /// time of their own are kept.
    exemplars: HashMap<Slot, (TimelessExemplar, i64)>,
    /// Random seed of the hashes, so that targets cannot craft collisions.
    seed: u64,
    /// Number of the current iteration. It starts at 2, so that the 0 in [`Entry::tracked`] is
    /// neither the current nor the previous iteration.
    iteration: u32,
    /// Index of the entry of the last lookup.
    last: u32,
    /// Whether the last lookup found the expected entry. If not, [`Cache::expected`] returns
    /// `None`.
    is_in_order: bool,
    /// Entries seen in this iteration.
    seen: usize,
    /// Entries tracked in the previous iteration.
    tracked_before: usize,
    /// Entries tracked in this iteration.
    tracked: usize,
    /// Entries tracked in both the previous and this iteration.
    tracked_still: usize,
    /// Number of entries and families after the last good scrape.
    count_at_success: usize,
}

#[derive(Debug)]
struct Entry {
    /// Place of the exposed text; empty if the entry is free.
    text: TextPlace,
    /// Syntax of the text; `None` if relabeling drops the series.
    form: Option<Form>,
    reference: SeriesRef,
    /// The last iteration that had the text.
    seen: u32,
    /// The last iteration in which the series was tracked.
    tracked: u32,
    /// Whether the iteration before `tracked` tracked the series, too.
    was_tracked: bool,
    /// Index of the entry that followed this entry in the last scrape.
    next: u32,
}

/// An exemplar without a time of its own.
#[derive(Clone, Debug)]
pub struct TimelessExemplar {
    pub labels: Labels,
    pub value: f64,
}

/// Parts of a stored exemplar that are compared with later exemplars of its series.
#[derive(Clone, Debug)]
pub struct StoredExemplar {
    pub slot: Slot,
    /// Own time of the exemplar, or that of its sample.
    pub at_ms: i64,
    /// Labels and value, unless the exemplar has a time of its own.
    pub timeless: Option<TimelessExemplar>,
}

/// A series that needs a marker and was removed from the cache.
#[derive(Debug)]
pub struct Ended {
    pub reference: SeriesRef,
    /// Text of the series as it was exposed.
    pub text: Box<[u8]>,
    pub form: Form,
}

/// Result of ending an iteration.
#[derive(Debug, Default)]
pub struct Finished {
    /// Whether the cache was flushed because failing scrapes had made it grow too far.
    pub is_forced: bool,
    /// Removed series that need markers.
    pub ended: Vec<Ended>,
}

// Entries stay small, because a node may have hundreds of thousands of entries.
const _: () = assert!(size_of::<Entry>() <= 32);

impl Default for Cache {
    fn default() -> Cache {
        Cache::new(0)
    }
}

impl Cache {
    /// Creates an empty cache. The seed is a random number.
    pub fn new(seed: u64) -> Cache {
        Cache {
            entries: Vec::new(),
            texts: Texts::default(),
            free: Vec::new(),
            table: HashTable::new(),
            labels: HashMap::new(),
            labels_bytes: 0,
            exemplars: HashMap::new(),
            seed,
            iteration: 2,
            last: u32::MAX,
            is_in_order: false,
            seen: 0,
            tracked_before: 0,
            tracked: 0,
            tracked_still: 0,
            count_at_success: 0,
        }
    }

    /// Moves the content out, and leaves an empty cache with the same seed.
    pub fn take(&mut self) -> Cache {
        let seed = self.seed;
        std::mem::replace(self, Cache::new(seed))
    }

    /// Finds a text and marks it as seen.
    #[inline]
    pub fn look_up(&mut self, text: &[u8]) -> Lookup {
        let expected = self.expected_place();
        let place = match self.entries.get(expected as usize) {
            Some(entry) if bytes_equal(self.texts.get(entry.text), text) => {
                self.is_in_order = true;
                expected
            }
            _ => match self.find(text) {
                Some(place) => {
                    self.is_in_order = false;
                    self.follow(place);
                    place
                }
                None => return Lookup::New,
            },
        };
        let is_repeated = self.see(Slot(place));
        match self.entries[place as usize].form {
            None => Lookup::Dropped,
            Some(_) => Lookup::Known { slot: Slot(place), is_repeated },
        }
    }

    /// Returns the series after the last found series in the previous scrape, with its text. `None`
    /// if it is dropped, already seen or without a reference, or if the order has changed.
    #[inline]
    pub fn expected(&self) -> Option<(Slot, &[u8])> {
        if !self.is_in_order {
            return None;
        }
        let place = self.expected_place();
        let entry = self.entries.get(place as usize)?;
        let is_new_here = entry.seen != self.iteration;
        (entry.form.is_some() && is_new_here && entry.reference != UNRESOLVED)
            .then(|| (Slot(place), self.texts.get(entry.text)))
    }

    fn expected_place(&self) -> u32 {
        // At the start of an iteration there is no last entry; then the first entry is expected.
        self.entries.get(self.last as usize).map_or(0, |last| last.next)
    }

    /// Marks a series as seen; returns whether this iteration has had it before.
    #[inline]
    pub fn see(&mut self, slot: Slot) -> bool {
        self.last = slot.0;
        let Some(entry) = self.entries.get_mut(slot.0 as usize) else { return false };
        let is_repeated = entry.seen == self.iteration;
        if !is_repeated {
            entry.seen = self.iteration;
            self.seen += 1;
        }
        is_repeated
    }

    #[cold]
    fn find(&self, text: &[u8]) -> Option<u32> {
        let hash = hash_bytes(self.seed, text);
        let is_same = |place: &u32| bytes_equal(self.text_at(*place), text);
        self.table.find(hash, is_same).copied()
    }

    fn text_at(&self, place: u32) -> &[u8] {
        self.texts.get(self.entries[place as usize].text)
    }

    /// Records that an entry followed the entry of the last lookup.
    fn follow(&mut self, place: u32) {
        if let Some(last) = self.entries.get_mut(self.last as usize) {
            last.next = place;
        }
    }

    /// Adds a text that [`Cache::look_up`] does not know, and marks it as seen. Its form is `None`
    /// if relabeling drops the series.
    pub fn insert(&mut self, text: &[u8], form: Option<Form>) -> Slot {
        let entry = Entry {
            text: self.texts.add(text),
            form,
            reference: UNRESOLVED,
            seen: self.iteration,
            tracked: 0,
            was_tracked: false,
            next: 0,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                reserve_some(&mut self.entries, 1);
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        let (entries, texts, seed) = (&self.entries, &self.texts, self.seed);
        let hash_of = |place: &u32| hash_bytes(seed, texts.get(entries[*place as usize].text));
        self.table.insert_unique(hash_bytes(seed, text), place, hash_of);
        self.follow(place);
        self.last = place;
        self.seen += 1;
        Slot(place)
    }

    /// Returns the store's reference of a series, once it is known.
    #[inline]
    pub fn reference(&self, slot: Slot) -> Option<SeriesRef> {
        let reference = self.entries.get(slot.0 as usize)?.reference;
        (reference != UNRESOLVED).then_some(reference)
    }

    /// Sets or removes the store's reference of a series.
    pub fn set_reference(&mut self, slot: Slot, reference: Option<SeriesRef>) {
        if let Some(entry) = self.entries.get_mut(slot.0 as usize) {
            entry.reference = reference.unwrap_or(UNRESOLVED);
        }
    }

    /// Returns the text of a series that relabeling keeps, and its form.
    pub fn text(&self, slot: Slot) -> Option<(&[u8], Form)> {
        let entry = self.entries.get(slot.0 as usize)?;
        Some((self.texts.get(entry.text), entry.form?))
    }

    /// Returns the final labels of a series, if they are kept.
    pub fn kept_labels(&self, slot: Slot) -> Option<&Labels> {
        self.labels.get(&slot)
    }

    /// Keeps the final labels of a series until it is removed.
    pub fn keep_labels(&mut self, slot: Slot, labels: &Labels) {
        let labels_bytes = &mut self.labels_bytes;
        self.labels.entry(slot).or_insert_with(|| {
            *labels_bytes += labels.bytes();
            labels.clone()
        });
    }

    /// Returns whether the exemplar equals the newest stored exemplar of its series: then the
    /// target still exposes the stored exemplar. Upstream: `Exemplar.Equals`.
    pub fn is_repeated(&self, slot: Slot, exemplar: &TimelessExemplar) -> bool {
        self.exemplars.get(&slot).is_some_and(|(known, _)| {
            known.value == exemplar.value && known.labels == exemplar.labels
        })
    }

    /// Records an exemplar that was stored.
    pub fn note_exemplar(&mut self, exemplar: StoredExemplar) {
        let StoredExemplar { slot, at_ms, timeless } = exemplar;
        // An exemplar that is older than the known exemplar is not the newest of its series.
        if self.exemplars.get(&slot).is_some_and(|(_, newest_ms)| *newest_ms > at_ms) {
            return;
        }
        match timeless {
            Some(timeless) => drop(self.exemplars.insert(slot, (timeless, at_ms))),
            None => drop(self.exemplars.remove(&slot)),
        }
    }

    /// Tracks a series: it gets a marker when a later scrape lacks it.
    #[inline]
    pub fn track(&mut self, slot: Slot) {
        let iteration = self.iteration;
        let Some(entry) = self.entries.get_mut(slot.0 as usize) else { return };
        // A second call would clear `was_tracked`, because `tracked` is this iteration by then.
        if entry.tracked == iteration {
            return;
        }
        entry.was_tracked = entry.tracked == iteration - 1;
        entry.tracked = iteration;
        self.tracked += 1;
        self.tracked_still += usize::from(entry.was_tracked);
    }

    /// Undoes the tracking of this iteration: its scrape has no complete body and counts as empty.
    pub fn untrack(&mut self) {
        for entry in self.entries.iter_mut().filter(|entry| entry.tracked == self.iteration) {
            entry.tracked = if entry.was_tracked { self.iteration - 1 } else { 0 };
        }
        (self.tracked, self.tracked_still) = (0, 0);
    }

    /// Undoes the tracking in the last iteration of series for which `is_refused` returns true,
    /// because the store refused all their samples. Returns the series among these that were also
    /// tracked one iteration earlier: such series have ended.
    pub fn untrack_refused(&mut self, is_refused: impl Fn(SeriesRef) -> bool) -> Vec<SeriesRef> {
        let last = self.iteration - 1;
        let mut ended = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| entry.tracked == last) {
            if entry.reference == UNRESOLVED || !is_refused(entry.reference) {
                continue;
            }
            entry.tracked = 0;
            self.tracked_before -= 1;
            if entry.was_tracked {
                ended.push(entry.reference);
            }
        }
        ended
    }

    /// Returns the series that the previous iteration tracked and this iteration tracks under no
    /// text. References ascend, without duplicates.
    pub fn stale(&self) -> Vec<SeriesRef> {
        // The usual case looks at no entry: all series tracked before are tracked again.
        if self.tracked_still == self.tracked_before {
            return Vec::new();
        }
        let of = |iteration: u32| {
            let entries = self.entries.iter();
            entries
                .filter(move |entry| entry.tracked == iteration && entry.reference != UNRESOLVED)
                .map(|entry| entry.reference)
        };
        let mut stale: Vec<SeriesRef> = of(self.iteration - 1).collect();
        if self.tracked > 0 {
            let now: HashSet<SeriesRef, numbers::State> = of(self.iteration).collect();
            // A series that this scrape exposes under another text has not ended.
            stale.retain(|known| !now.contains(known));
        }
        // Two texts of one series make one marker.
        stale.sort_unstable();
        stale.dedup();
        stale
    }

    /// Returns all references with their slots, for renewal after the store dropped a series.
    pub fn slots(&self) -> impl Iterator<Item = (SeriesRef, Slot)> {
        let entries = self.entries.iter().enumerate();
        entries
            .filter(|(_, entry)| entry.reference != UNRESOLVED)
            .map(|(place, entry)| (entry.reference, Slot(place as u32)))
    }

    /// Ends the iteration. After a good scrape, removes entries that the scrape did not have. After
    /// a failed scrape, removes them only if the cache has grown far beyond the last good scrape.
    /// `stale` is the result of [`Cache::stale`].
    pub fn finish(
        &mut self,
        is_good: bool,
        stale: &[SeriesRef],
        families: &mut Families,
    ) -> Finished {
        let mut ended = Vec::new();
        let count = self.len() + families.len();
        // Upstream's bound, for a target that keeps failing while its series change.
        let is_forced = !is_good && count > self.count_at_success * 2 + GROWTH_FREE;
        if is_good {
            self.count_at_success = count;
        }
        if is_good || is_forced {
            ended = self.flush(stale);
        }
        families.finish(is_good || is_forced);
        self.tracked_before = self.tracked;
        (self.tracked, self.tracked_still, self.seen) = (0, 0, 0);
        // The next scrape is expected to begin at the first entry.
        self.last = u32::MAX;
        self.is_in_order = true;
        self.iteration += 1;
        Finished { is_forced, ended }
    }

    fn flush(&mut self, stale: &[SeriesRef]) -> Vec<Ended> {
        let mut ended = Vec::new();
        // The usual case looks at no entry: all entries were seen.
        if self.seen == self.len() {
            return ended;
        }
        for place in 0..self.entries.len() as u32 {
            let entry = &self.entries[place as usize];
            if entry.text.is_empty() || entry.seen == self.iteration {
                continue;
            }
            let (text, form, reference) = self.remove(place);
            if let Some(form) = form
                && stale.binary_search(&reference).is_ok()
            {
                // The removed text stays in the buffer until texts are moved.
                let text = self.texts.get(text).into();
                ended.push(Ended { reference, text, form });
            }
        }
        ended
    }

    /// Removes an entry. Its text stays in the buffer until texts are moved.
    fn remove(&mut self, place: u32) -> (TextPlace, Option<Form>, SeriesRef) {
        let entry = &mut self.entries[place as usize];
        let hash = hash_bytes(self.seed, self.texts.get(entry.text));
        if let Ok(found) = self.table.find_entry(hash, |found| *found == place) {
            found.remove();
        }
        let (text, form) = (std::mem::take(&mut entry.text), entry.form.take());
        self.texts.remove(text);
        let reference = std::mem::replace(&mut entry.reference, UNRESOLVED);
        entry.tracked = 0;
        if let Some(labels) = self.labels.remove(&Slot(place)) {
            self.labels_bytes -= labels.bytes();
        }
        self.exemplars.remove(&Slot(place));
        self.free.push(place);
        (text, form, reference)
    }

    /// Removes series without a reference, which were not stored because memory was short, and
    /// frees memory. Entries move, so every [`Slot`] from before is invalid.
    pub fn remove_unresolved(&mut self, families: &mut Families) {
        for place in 0..self.entries.len() as u32 {
            let entry = &self.entries[place as usize];
            if !entry.text.is_empty() && entry.reference == UNRESOLVED {
                self.remove(place);
            }
        }
        families.remove_changed();
        self.shrink();
    }

    pub fn memory_bytes(&self) -> usize {
        let slot = size_of::<Slot>();
        self.entries.capacity() * size_of::<Entry>()
            + self.texts.bytes()
            + (self.table.capacity() + self.free.capacity()) * (slot + 1)
            + self.labels.capacity() * (slot + size_of::<Labels>())
            + self.labels_bytes
            + self.exemplars.capacity() * size_of::<(Slot, (TimelessExemplar, i64))>()
    }

    /// Returns whether [`Cache::shrink`] would free memory.
    pub fn is_loose(&self) -> bool {
        self.texts.are_mostly_removed() || self.has_free_places()
    }

    fn has_free_places(&self) -> bool {
        self.free.len() >= GROWTH_FREE && self.free.len() >= self.entries.len() / 2
    }

    /// Frees memory if most of the texts or half of the entries are unused. Entries move, so every
    /// [`Slot`] from before is invalid.
    pub fn shrink(&mut self) {
        if self.texts.are_mostly_removed() {
            let entries = self.entries.iter_mut().map(|entry| &mut entry.text);
            self.texts.keep(entries);
        }
        if !self.has_free_places() {
            return;
        }
        // Exemplars move with their entries, because unlike labels they cannot be made again.
        let mut exemplars = std::mem::take(&mut self.exemplars);
        let (mut before, mut place) = (0, 0);
        self.entries.retain(|entry| {
            let is_kept = !entry.text.is_empty();
            if is_kept {
                let known = exemplars.remove(&Slot(before)).map(|known| (Slot(place), known));
                self.exemplars.extend(known);
                place += 1;
            }
            before += 1;
            is_kept
        });
        self.entries.shrink_to_fit();
        // The labels are keyed by the old slots. Each is kept again when its series needs it.
        (self.labels, self.labels_bytes) = (HashMap::new(), 0);
        self.free = Vec::new();
        let (entries, texts, seed) = (&self.entries, &self.texts, self.seed);
        let hash_of = |place: &u32| hash_bytes(seed, texts.get(entries[*place as usize].text));
        let mut table = HashTable::with_capacity(entries.len());
        for place in 0..entries.len() as u32 {
            table.insert_unique(hash_of(&place), place, hash_of);
        }
        self.table = table;
    }

    /// Returns the number of series, including those that relabeling drops.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of entries, including free entries: the cost of visiting all.
    pub fn places(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reserves room for `more` items and a quarter of the length: doubling would leave half of the
/// memory unused in thousands of targets.
fn reserve_some<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more + list.len() / 4);
    }
}

/// Hasher of the store's references. It has no seed, because no target chooses a reference.
mod numbers {
    use std::hash::{BuildHasherDefault, Hasher};
    use tidepool_remote_write::hash_word;

    pub type State = BuildHasherDefault<Word>;

    #[derive(Default)]
    pub struct Word(u64);

    impl Hasher for Word {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            bytes.iter().for_each(|byte| self.0 = hash_word(self.0, u64::from(*byte)));
        }
        fn write_u64(&mut self, word: u64) {
            self.0 = hash_word(self.0, word);
        }
    }
}

#[cfg(test)]
mod tests;
