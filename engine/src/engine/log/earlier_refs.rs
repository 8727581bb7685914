//! Earlier numbers of series, which rows of the log still carry.
//!
//! ```text
//! series 1 = m │ rows of 1 │ …left the head… │ series 7 = m │ rows of 7 │ rows of 1 │
//!                                                    tidepool uses 7 ▲     ▲ Prometheus uses 1
//! ```
//!
//! While segments from before the start remain, a checkpoint lists all numbers of a series. The
//! number in use comes last, as in the log; rows written since the start carry that number.

use super::Log;
use crate::engine::records::numbered_series;
use crate::head::{Head, Slot};

/// Earlier numbers, with the segments that may use them.
#[derive(Default)]
pub(super) struct EarlierRefs {
    /// Pairs (number in use, earlier number), ascending.
    pub(super) pairs: Vec<(u64, u64)>,
    /// Last segment of the in-order log with rows that may carry an earlier number.
    in_order_last: u32,
    /// Last segment of the out-of-order log with such rows.
    out_of_order_last: u32,
}

impl EarlierRefs {
    /// Returns a record of these series with all of their numbers.
    pub(super) fn series_of(&self, head: &Head, slots: &[Slot]) -> Vec<u8> {
        numbered_series(
            head,
            slots.iter().flat_map(|slot| {
                let series_ref = head.series_ref(*slot);
                let earlier_refs = self.of(series_ref).iter().map(|(_, earlier_ref)| *earlier_ref);
                // Replay uses the last number of a series, so the number in use comes last.
                earlier_refs.chain([series_ref]).map(|series_ref| (series_ref, *slot))
            }),
        )
    }

    fn of(&self, series_ref: u64) -> &[(u64, u64)] {
        let start = self.pairs.partition_point(|(now, _)| *now < series_ref);
        let rest = self.pairs.get(start..).unwrap_or_default();
        let count = rest.partition_point(|(now, _)| *now == series_ref);
        rest.get(..count).unwrap_or_default()
    }
}

impl Log {
    /// Keeps earlier numbers until all segments that exist now are dropped.
    pub(super) fn keep_earlier_refs(&mut self, pairs: Vec<(u64, u64)>) {
        let last = |segment: Option<&u32>| segment.copied().unwrap_or(0);
        self.earlier_refs = EarlierRefs {
            pairs,
            in_order_last: last(self.segments.keys().next_back()),
            out_of_order_last: last(self.out_of_order_segments.keys().next_back()),
        };
    }

    /// Drops the earlier numbers if no segment after this one can hold rows that carry them.
    pub(super) fn drop_earlier_refs(&mut self, last_segment: u32) {
        let EarlierRefs { in_order_last, out_of_order_last, .. } = self.earlier_refs;
        let first = self.out_of_order_segments.keys().next();
        let is_needed = in_order_last > last_segment
            || first.is_some_and(|segment| *segment <= out_of_order_last);
        if !is_needed {
            self.earlier_refs = EarlierRefs::default();
        }
    }
}
