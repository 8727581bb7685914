//! Accounting of memory and samples that a query holds, against its limits.

use crate::error::EvalError;
use crate::limits::{Limit, Limits};
use crate::syntax::Span;

#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    bytes: usize,
    samples: u64,
    bytes_peak: usize,
    samples_peak: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub bytes: usize,
    pub samples: u64,
}

impl Budget {
    pub fn new(limits: Limits) -> Budget {
        Budget { limits, bytes: 0, samples: 0, bytes_peak: 0, samples_peak: 0 }
    }

    /// Adds to the usage; an error names `span`, the part of the expression that needs the memory.
    pub fn take(&mut self, held: Usage, span: Span) -> Result<(), EvalError> {
        // Added even if refused: the evaluation ends with the error, and the peak shows the demand.
        self.bytes += held.bytes;
        self.samples += held.samples;
        self.bytes_peak = self.bytes_peak.max(self.bytes);
        self.samples_peak = self.samples_peak.max(self.samples);
        if self.bytes > self.limits.bytes_max {
            return Err(EvalError::limit(Limit::Bytes, self.limits.bytes_max as u64, span));
        }
        if self.samples > self.limits.samples_max {
            return Err(EvalError::limit(Limit::Samples, self.limits.samples_max, span));
        }
        Ok(())
    }

    pub fn give(&mut self, held: Usage) {
        self.bytes = self.bytes.saturating_sub(held.bytes);
        self.samples = self.samples.saturating_sub(held.samples);
    }

    /// Replaces the usage in `place`, which was added before, by `held`.
    pub fn set(&mut self, place: &mut Usage, held: Usage, span: Span) -> Result<(), EvalError> {
        // The old usage is returned first, because a buffer that grows must not count twice.
        self.give(*place);
        *place = held;
        self.take(held, span)
    }

    /// Returns whether series are too large to wait for sorting: over a quarter of a limit.
    pub fn is_too_much_to_sort(&self, held: Usage) -> bool {
        held.bytes > self.limits.bytes_max / 4 || held.samples > self.limits.samples_max / 4
    }

    pub fn peak(&self) -> Usage {
        Usage { bytes: self.bytes_peak, samples: self.samples_peak }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_names_the_part() {
        let limits = Limits { bytes_max: 100, ..Limits::default() };
        let mut budget = Budget::new(limits);
        let span = Span { start: 4, end: 7 };
        let held = Usage { bytes: 60, samples: 1 };
        budget.take(held, span).unwrap();
        budget.give(held);
        budget.take(held, span).unwrap();
        let error = budget.take(held, span).unwrap_err();
        assert_eq!(error, EvalError::limit(Limit::Bytes, 100, span));
        assert_eq!(budget.peak().bytes, 120);
    }
}
