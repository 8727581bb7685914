//! The bytes of label text that one batch may use.
//!
//! A symbol reference is a byte or two in a request but may refer to megabytes of text, and each
//! exemplar repeats the labels of its series. Checking, sorting, hashing and logging a text costs
//! its length each time. So a batch has a budget, which is checked before a text is read: some
//! bytes per reference are free, and the bytes beyond are bounded for the batch as a whole.

/// Bytes of text per reference that do not use up the budget.
const FREE_BYTES: usize = 64;

/// Number of references whose free bytes an exemplar gets, for the labels of its series.
const REFS_PER_EXEMPLAR: usize = 8;

/// Largest number of bytes that one batch may use beyond the free ones.
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
    /// Takes text of `bytes` for `refs` references; returns false, and takes none, if over budget.
    pub fn take(&mut self, refs: usize, bytes: usize) -> bool {
        let excess = bytes.saturating_sub(refs.saturating_mul(FREE_BYTES));
        let left = self.excess_left.checked_sub(excess);
        self.excess_left = left.unwrap_or(self.excess_left);
        left.is_some()
    }

    /// Takes the label bytes of an exemplar's series; returns false if they are over budget.
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
