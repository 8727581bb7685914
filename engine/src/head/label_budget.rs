//! The bytes of label text that one batch may use.
//!
//! A reference takes a byte or two in a request and may mean a text of megabytes; an exemplar costs
//! its series' labels again. Checking, sorting, hashing and logging a text costs its length each
//! time. So a batch has a budget, which is asked before a text is read: the usual length of a
//! reference's text is free, and the rest is bounded for the batch as a whole.

/// Bytes of text that each reference may mean without counting.
const FREE_BYTES: usize = 64;

/// References that an exemplar counts as, for the labels of its series.
const REFS_PER_EXEMPLAR: usize = 8;

/// Bytes beyond the free ones that one batch may use.
pub(super) const EXCESS_BYTES_MAX: usize = 16 << 20;

/// Remaining budget of a batch.
pub(super) struct LabelBudget {
    excess_left: usize,
}

impl Default for LabelBudget {
    fn default() -> LabelBudget {
        LabelBudget { excess_left: EXCESS_BYTES_MAX }
    }
}

impl LabelBudget {
    /// Returns whether this many references may mean this many bytes. Refused bytes do not count.
    pub fn take(&mut self, refs: usize, bytes: usize) -> bool {
        let excess = bytes.saturating_sub(refs.saturating_mul(FREE_BYTES));
        let left = self.excess_left.checked_sub(excess);
        self.excess_left = left.unwrap_or(self.excess_left);
        left.is_some()
    }

    /// Returns whether an exemplar may come with a series of this many label bytes.
    pub fn take_exemplar(&mut self, series_bytes: usize) -> bool {
        self.take(REFS_PER_EXEMPLAR, series_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_texts_are_free_and_long_ones_are_bounded_together() {
        let mut budget = LabelBudget::default();
        for _ in 0..1_000_000 {
            assert!(budget.take(20, 20 * FREE_BYTES));
        }
        let half = EXCESS_BYTES_MAX / 2;
        assert!(budget.take(0, half) && !budget.take(0, half + 1) && budget.take(0, half));
        assert!(!budget.take(1, FREE_BYTES + 1) && !budget.take(0, usize::MAX));
        assert!(budget.take(1, FREE_BYTES) && budget.take_exemplar(8 * FREE_BYTES));
    }
}
