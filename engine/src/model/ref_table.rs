//! A map from the references of series in the log to places of series, such as indices.

use rustc_hash::FxHashMap;

/// Entries that the dense table may have for each series, beyond `DENSE_MIN`.
const DENSE_PER_SERIES: u64 = 4;
/// Entries that the dense table may have in any case.
const DENSE_MIN: u64 = 64 * 1024;

/// Marks a reference without a series.
const NONE: u32 = u32::MAX;

/// A dense table for references that lie close together, as they do in all but the oldest logs, and
/// a map for other references.
#[derive(Debug, Default)]
pub struct RefTable {
    first: u64,
    dense: Vec<u32>,
    sparse: FxHashMap<u64, u32>,
    count: u64,
}

impl RefTable {
    /// Sets the place of a series, which must not be `u32::MAX`.
    pub fn insert(&mut self, series_ref: u64, place: u32) {
        if self.count == 0 {
            // Logs number series upwards, so the table begins with the first reference.
            self.first = series_ref;
        }
        self.count += 1;
        // A reference below the first one wraps to a large number, and goes into the map.
        let at = series_ref.wrapping_sub(self.first);
        if at < self.dense.len() as u64 || at < DENSE_MIN + DENSE_PER_SERIES * self.count {
            let at = at as usize;
            if at >= self.dense.len() {
                // The bound above keeps a stray reference from growing the table without limit.
                self.dense.resize(at + 1, NONE);
            }
            self.dense[at] = place;
        } else {
            self.sparse.insert(series_ref, place);
        }
    }

    /// Returns the place of a series.
    #[inline]
    pub fn get(&self, series_ref: u64) -> Option<u32> {
        let at = usize::try_from(series_ref.wrapping_sub(self.first)).ok();
        match at.and_then(|at| self.dense.get(at)) {
            Some(place) if *place != NONE => Some(*place),
            // A reference may be in the map from a time when the table was shorter.
            _ => self.sparse.get(&series_ref).copied(),
        }
    }

    /// Drops all series, but keeps the memory.
    pub fn clear(&mut self) {
        self.dense.clear();
        self.sparse.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(
            refs in prop::collection::vec(
                prop_oneof![0u64..200, 60_000u64..70_000, any::<u64>()], 0..200),
        ) {
            let (mut table, mut map) = (RefTable::default(), HashMap::new());
            for (place, series_ref) in (0u32..).zip(&refs) {
                table.insert(*series_ref, place);
                map.insert(*series_ref, place);
                prop_assert!(refs.iter().all(|known| table.get(*known) == map.get(known).copied()));
            }
        }
    }

    #[test]
    fn numbers_far_apart_take_little_memory() {
        let mut table = RefTable::default();
        for step in 0..1000 {
            table.insert(step << 40, step as u32);
        }
        assert!(table.dense.capacity() < 1 << 20);
        table.clear();
        assert_eq!((table.get(0), table.get(1 << 40)), (None, None));
    }
}
