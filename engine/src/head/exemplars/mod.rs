//! The newest exemplars of all series together: a ring that drops the oldest arrival.
//!
//! Rules, row by row: an exemplar that is kept already counts as written and changes nothing, so
//! that a batch may be sent twice. An exemplar is accepted if it is not older than the newest one
//! of its series, or within the out-of-order window. It is refused if it is older, further ahead of
//! the clock than a sample may be, or has more label text than OpenMetrics allows.

mod state;

pub(super) use state::{RingLoader, RingSaver};

use super::window::Window;
use super::{Batch, RefusalReason, Slot};
use crate::codec::{hash_bytes, hash_word};
use crate::model::{Labels, TimeRange};
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Largest number of characters in an exemplar's label names and values together (OpenMetrics 1.0,
/// "Exemplars").
pub const EXEMPLAR_LABELS_CHARS_MAX: usize = 128;

/// Largest number of exemplars that one call of a scan visits.
const SCANNED_MAX: usize = 8 * 1024;

/// Approximate size of an exemplar in bytes, besides its labels.
const EXEMPLAR_BYTES: usize = 32;

/// One observation with labels of its own, such as the trace it was part of.
#[derive(Clone, Debug)]
pub struct Exemplar {
    /// Labels of the exemplar, not those of its series.
    pub labels: Labels,
    /// Observed value, of which the exemplar is an example.
    pub value: f64,
    /// Milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
}

/// A series with its exemplars, by ascending time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesExemplars {
    /// Labels of the series itself.
    pub labels: Labels,
    /// Exemplars of the series, by ascending time.
    pub exemplars: Vec<Exemplar>,
}

/// Position among the exemplars that were kept when the scan began, by arrival number.
pub struct ExemplarScan {
    range: TimeRange,
    next: u64,
    end: u64,
}

/// Ring of the newest exemplars, with an index by content.
pub struct Exemplars {
    max: u64,
    seed: u64,
    entries: VecDeque<Entry>,
    /// Number of the first entry; entries are numbered as they arrive.
    first: u64,
    /// Numbers of entries by content, to find exemplars that are kept already.
    by_content: HashTable<u64>,
    series: FxHashMap<Labels, Rc<RingSeries>>,
}

struct Entry {
    series: Rc<RingSeries>,
    exemplar: Exemplar,
    hash: u64,
}

/// A series that has exemplars in the ring.
struct RingSeries {
    labels: Labels,
    newest_ms: Cell<i64>,
}

impl Exemplars {
    /// Creates an empty ring for `max` exemplars; 0 keeps none.
    pub fn new(max: u64, seed: u64) -> Exemplars {
        Exemplars {
            max,
            seed,
            entries: VecDeque::new(),
            first: 0,
            by_content: HashTable::new(),
            series: FxHashMap::default(),
        }
    }

    /// Number of exemplars that are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no exemplar is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an exemplar unless it is kept already; drops the oldest if the ring is full.
    pub fn add(&mut self, series: &Labels, exemplar: Exemplar) {
        if self.max == 0 || self.contains(series, &exemplar) {
            return;
        }
        while self.entries.len() as u64 >= self.max {
            self.drop_oldest();
        }
        let series = match self.series.get(series) {
            Some(known) => Rc::clone(known),
            None => {
                let newest_ms = Cell::new(exemplar.timestamp_ms);
                let new = Rc::new(RingSeries { labels: series.clone(), newest_ms });
                self.series.insert(series.clone(), Rc::clone(&new));
                new
            }
        };
        series.newest_ms.set(series.newest_ms.get().max(exemplar.timestamp_ms));
        let hash = self.hash(&series.labels, &exemplar);
        let number = self.first + self.entries.len() as u64;
        self.entries.push_back(Entry { series, exemplar, hash });
        let (entries, first) = (&self.entries, self.first);
        self.by_content.insert_unique(hash, number, |n| entries[(n - first) as usize].hash);
    }

    fn drop_oldest(&mut self) {
        let Some(oldest) = self.entries.pop_front() else { return };
        let number = self.first;
        if let Ok(entry) = self.by_content.find_entry(oldest.hash, |n| *n == number) {
            entry.remove();
        }
        self.first += 1;
        // Two references are left: the one in `series` and `oldest.series`.
        if Rc::strong_count(&oldest.series) == 2 {
            self.series.remove(&oldest.series.labels);
        }
    }

    fn contains(&self, series: &Labels, exemplar: &Exemplar) -> bool {
        let is_it = |number: &u64| {
            let entry = &self.entries[(number - self.first) as usize];
            entry.exemplar == *exemplar && entry.series.labels == *series
        };
        self.by_content.find(self.hash(series, exemplar), is_it).is_some()
    }

    fn newest_ms(&self, series: &Labels) -> Option<i64> {
        self.series.get(series).map(|known| known.newest_ms.get())
    }

    fn hash(&self, series: &Labels, exemplar: &Exemplar) -> u64 {
        let hash = hash_bytes(self.seed, series.packed());
        let hash = hash_word(hash, hash_bytes(self.seed, exemplar.labels.packed()));
        let hash = hash_word(hash, exemplar.timestamp_ms as u64);
        hash_word(hash, exemplar.value.to_bits())
    }

    /// Returns a position before the oldest arrival that is kept now.
    pub fn scan(&self, range: TimeRange) -> ExemplarScan {
        ExemplarScan { range, next: self.first, end: self.first + self.entries.len() as u64 }
    }

    /// Returns the next exemplars of a scan, about `bytes_max` bytes, by series in no order; `None`
    /// at the end. A page may be empty, since a call visits a limited number of exemplars.
    pub fn next_page(
        &self,
        scan: &mut ExemplarScan,
        bytes_max: u32,
    ) -> Option<Vec<SeriesExemplars>> {
        // Entries of the scan may have been dropped for newer ones.
        let first = scan.next.max(self.first);
        if first >= scan.end {
            return None;
        }
        let mut page: Vec<SeriesExemplars> = Vec::new();
        // Entries of a series share one allocation, so its address identifies the series.
        let mut places: FxHashMap<*const RingSeries, usize> = FxHashMap::default();
        let (mut bytes, mut looked_at) = (0, 0);
        let entries = self.entries.range((first - self.first) as usize..);
        for Entry { series, exemplar, .. } in entries.take((scan.end - first) as usize) {
            // A page has one exemplar at least, or a scan with a small bound would never end.
            let is_full = bytes >= bytes_max as usize && !page.is_empty();
            if is_full || looked_at == SCANNED_MAX {
                break;
            }
            looked_at += 1;
            if !scan.range.contains(exemplar.timestamp_ms) {
                continue;
            }
            let place = *places.entry(Rc::as_ptr(series)).or_insert_with(|| {
                let labels = series.labels.clone();
                bytes += labels.packed().len();
                page.push(SeriesExemplars { labels, exemplars: Vec::new() });
                page.len() - 1
            });
            bytes += exemplar.labels.packed().len() + EXEMPLAR_BYTES;
            if let Some(of_series) = page.get_mut(place) {
                of_series.exemplars.push(exemplar.clone());
            }
        }
        scan.next = first + looked_at as u64;
        Some(page)
    }
}

impl Exemplars {
    /// Checks an exemplar of a series; adds it to the batch or counts its refusal.
    pub(super) fn check(
        &self,
        window: &Window,
        batch: &mut Batch,
        (slot, series): (Slot, &Labels),
        exemplar: Exemplar,
    ) {
        let time_ms = exemplar.timestamp_ms;
        if let Some((reason, why)) = self.refusal(window, series, &exemplar) {
            batch.refuse(reason, time_ms, 1, || {
                format!("exemplar of {series} at {time_ms} ms: {why}")
            });
            return;
        }
        batch.outcome.exemplars_written += 1;
        // A repeated exemplar counts as written and is not logged again.
        if !self.contains(series, &exemplar) {
            batch.exemplars.push((slot, exemplar));
        }
    }

    fn refusal(
        &self,
        window: &Window,
        series: &Labels,
        exemplar: &Exemplar,
    ) -> Option<(RefusalReason, String)> {
        let time_ms = exemplar.timestamp_ms;
        if self.max == 0 {
            let why = "exemplars are not stored here";
            return Some((RefusalReason::ExemplarsOff, why.into()));
        }
        let strings = exemplar.labels.iter().flat_map(|(name, value)| [name, value]);
        let chars = strings.map(|text| text.chars().count()).sum::<usize>();
        if chars > EXEMPLAR_LABELS_CHARS_MAX {
            let why = format!(
                "its labels have {chars} characters, more than {EXEMPLAR_LABELS_CHARS_MAX}"
            );
            return Some((RefusalReason::InvalidExemplar, why));
        }
        if time_ms > window.clock_limit_ms() {
            let why = "too far in the future".into();
            return Some((RefusalReason::TooFarInFuture, why));
        }
        let is_older = self.newest_ms(series).is_some_and(|newest| time_ms < newest);
        if is_older && time_ms < window.out_of_order_from_ms() && !self.contains(series, exemplar) {
            let why = "out of order: a newer one is kept".into();
            return Some((RefusalReason::OutOfOrder, why));
        }
        None
    }
}

impl PartialEq for Exemplar {
    /// Values are compared by their bits, so that NaN equals itself.
    fn eq(&self, other: &Self) -> bool {
        self.timestamp_ms == other.timestamp_ms
            && self.value.to_bits() == other.value.to_bits()
            && self.labels == other.labels
    }
}

impl Eq for Exemplar {}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str) -> Labels {
        Labels::from_sorted([("__name__", name)])
    }

    fn exemplar(trace: &str, timestamp_ms: i64) -> Exemplar {
        Exemplar { labels: Labels::from_sorted([("trace_id", trace)]), value: 1.0, timestamp_ms }
    }

    /// Names and times of what is left of a scan, page by page.
    fn pages(ring: &Exemplars, scan: &mut ExemplarScan, bytes_max: u32) -> Vec<Vec<(String, i64)>> {
        let next = || ring.next_page(scan, bytes_max);
        let rows = |page: Vec<SeriesExemplars>| {
            let of_series = |series: SeriesExemplars| {
                let name = series.labels.get("__name__").to_owned();
                series.exemplars.into_iter().map(move |e| (name.clone(), e.timestamp_ms))
            };
            page.into_iter().flat_map(of_series).collect()
        };
        std::iter::from_fn(next).map(rows).collect()
    }

    fn times(pages: &[Vec<(String, i64)>]) -> Vec<i64> {
        pages.iter().flatten().map(|(_, time_ms)| *time_ms).collect()
    }

    #[test]
    fn the_ring_keeps_the_newest_arrivals_once_each() {
        let mut ring = Exemplars::new(3, 5);
        for (name, trace, time_ms) in
            [("a", "1", 10), ("b", "2", 20), ("a", "1", 10), ("a", "4", 30), ("a", "3", 25)]
        {
            ring.add(&series(name), exemplar(trace, time_ms));
        }
        let kept = [("b".into(), 20), ("a".into(), 30), ("a".into(), 25)];
        assert_eq!(pages(&ring, &mut ring.scan(TimeRange::ALL), u32::MAX), [kept]);
        for time_ms in 0..3 {
            ring.add(&series("c"), exemplar("5", time_ms));
        }
        assert_eq!((ring.len(), ring.series.len(), ring.by_content.len()), (3, 1, 3));
    }

    #[test]
    fn a_scan_gives_pages_of_one_moment() {
        let mut ring = Exemplars::new(100, 5);
        for (name, time_ms) in [("a", 10), ("b", 20), ("c", 30), ("b", 40)] {
            ring.add(&series(name), exemplar("1", time_ms));
        }
        let range = TimeRange { start_ms: 15, end_ms: 40 };
        let mut scan = ring.scan(range);
        ring.add(&series("b"), exemplar("2", 40));
        let by_one = pages(&ring, &mut scan, 0);
        let wanted = [("b".into(), 20), ("c".into(), 30), ("b".into(), 40)];
        assert_eq!(by_one, wanted.map(|row| vec![row]));
        assert!(pages(&ring, &mut scan, 0).is_empty(), "it has ended");
        let none = TimeRange { start_ms: 1, end_ms: 0 };
        assert!(times(&pages(&ring, &mut ring.scan(none), 0)).is_empty());
    }

    #[test]
    fn what_made_room_is_not_given_and_one_page_looks_at_so_many() {
        let count = 2 * SCANNED_MAX as i64;
        let mut ring = Exemplars::new(count as u64, 5);
        (0..count).for_each(|time_ms| ring.add(&series("a"), exemplar("1", time_ms)));
        let last = TimeRange { start_ms: count - 1, end_ms: i64::MAX };
        let found = pages(&ring, &mut ring.scan(last), u32::MAX);
        assert_eq!(found, [vec![], vec![("a".to_owned(), count - 1)]]);
        let mut scan = ring.scan(TimeRange::ALL);
        assert!(ring.next_page(&mut scan, 1000).is_some_and(|page| page.len() == 1));
        // All but five of those that are scanned make room.
        (0..count - 5).for_each(|time_ms| ring.add(&series("b"), exemplar("1", count + time_ms)));
        let rest = pages(&ring, &mut scan, u32::MAX);
        assert_eq!(times(&rest), (count - 5..count).collect::<Vec<_>>());
    }
}
