//! Heap of the values that `topk` or `bottomk` selects.
//!
//! Upstream's heap decides which of several equal values are kept and in which order they are
//! returned. This heap moves entries as Go's `container/heap` does, so that answers are the same.

use tidepool_model::sort;

/// Maximum number of entries that Go's sort keeps in order if their values are equal.
const STABLE_MAX: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    pub value: f64,
    pub series: u32,
}

/// The largest values with the smallest on top, or the smallest values with the largest on top.
#[derive(Clone, Debug, Default)]
pub struct Heap(Vec<Entry>);

/// Returns whether `a` belongs nearer to the top than `b`. NaN belongs above everything.
fn is_above(a: &Entry, b: &Entry, is_largest: bool) -> bool {
    a.value.is_nan() || if is_largest { a.value < b.value } else { a.value > b.value }
}

impl Heap {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds an entry while the heap has fewer than `room`; later an entry that beats the top
    /// replaces the top. Returns whether the entry was added, and the entry that was replaced.
    pub fn offer(&mut self, entry: Entry, room: i64, is_largest: bool) -> (bool, Option<Entry>) {
        let Heap(entries) = self;
        if (entries.len() as i64) < room {
            entries.push(entry);
            self.up(is_largest);
            return (true, None);
        }
        let Some(top) = entries.first().copied() else { return (false, None) };
        let is_ahead = if is_largest { top.value < entry.value } else { top.value > entry.value };
        // NaN loses against any number, but does not replace another NaN.
        if !is_ahead && (!top.value.is_nan() || entry.value.is_nan()) {
            return (false, None);
        }
        entries[0] = entry;
        self.down(is_largest);
        (true, Some(top))
    }

    fn up(&mut self, is_largest: bool) {
        let Heap(entries) = self;
        let mut at = entries.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !is_above(&entries[at], &entries[parent], is_largest) {
                return;
            }
            entries.swap(at, parent);
            at = parent;
        }
    }

    fn down(&mut self, is_largest: bool) {
        let Heap(entries) = self;
        let mut at = 0;
        while at * 2 + 1 < entries.len() {
            let mut child = at * 2 + 1;
            if child + 1 < entries.len()
                && is_above(&entries[child + 1], &entries[child], is_largest)
            {
                child += 1;
            }
            if !is_above(&entries[child], &entries[at], is_largest) {
                return;
            }
            entries.swap(at, child);
            at = child;
        }
    }

    /// Returns all entries, the best entry first.
    pub fn into_sorted(self, is_largest: bool) -> Vec<Entry> {
        let Heap(mut entries) = self;
        if entries.len() > STABLE_MAX {
            sort::sort_by(&mut entries, |a, b| {
                let order = if is_largest {
                    b.value.total_cmp(&a.value)
                } else {
                    a.value.total_cmp(&b.value)
                };
                a.value.is_nan().cmp(&b.value.is_nan()).then(order)
            });
            return entries;
        }
        // Go sorts so few entries by insertion, which decides the order of equal values.
        for end in 1..entries.len() {
            let mut at = end;
            while at > 0 && is_above(&entries[at - 1], &entries[at], is_largest) {
                entries.swap(at - 1, at);
                at -= 1;
            }
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(values: &[f64], room: i64, is_largest: bool) -> Vec<(f64, u32)> {
        let mut heap = Heap::default();
        for (series, value) in values.iter().enumerate() {
            heap.offer(Entry { value: *value, series: series as u32 }, room, is_largest);
        }
        heap.into_sorted(is_largest).iter().map(|it| (it.value, it.series)).collect()
    }

    #[test]
    fn the_values_ahead_are_kept() {
        let values = [3.0, f64::NAN, 7.0, 1.0, 5.0];
        assert_eq!(kept(&values, 2, true), [(7.0, 2), (5.0, 4)]);
        assert_eq!(kept(&values, 3, false), [(1.0, 3), (3.0, 0), (5.0, 4)]);
        assert!(kept(&values, 9, true)[4].0.is_nan());
        assert_eq!(kept(&values, 0, true), []);
    }

    #[test]
    fn of_equal_values_the_first_stay() {
        assert_eq!(kept(&[1.0, 1.0, 1.0], 2, true), [(1.0, 0), (1.0, 1)]);
    }

    #[test]
    fn many_values_are_sorted() {
        let values: Vec<f64> = (0..100).map(|i| f64::from(i * 37 % 101)).collect();
        let found: Vec<f64> = kept(&values, 20, true).iter().map(|it| it.0).collect();
        let mut wanted = values;
        wanted.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(found, wanted[..20]);
    }
}
