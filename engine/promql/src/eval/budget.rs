//! Counts what a query holds against its limits.

use crate::error::EvalError;
use crate::limits::{Limit, Limits};
use crate::syntax::Span;

/// Counts bytes and samples that are held.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    bytes: usize,
    samples: u64,
    bytes_peak: usize,
    samples_peak: u64,
}

/// What someone holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes of memory.
    pub bytes: usize,
    /// Samples.
    pub samples: u64,
}

impl Budget {
    /// Nothing is held.
    pub fn new(limits: Limits) -> Budget {
        Budget { limits, bytes: 0, samples: 0, bytes_peak: 0, samples_peak: 0 }
    }

    /// Counts more, for a part of the expression.
    pub fn take(&mut self, held: Held, span: Span) -> Result<(), EvalError> {
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

    /// Counts less.
    pub fn give(&mut self, held: Held) {
        self.bytes = self.bytes.saturating_sub(held.bytes);
        self.samples = self.samples.saturating_sub(held.samples);
    }

    /// What someone holds becomes this.
    pub fn set(&mut self, place: &mut Held, held: Held, span: Span) -> Result<(), EvalError> {
        self.give(*place);
        *place = held;
        self.take(held, span)
    }

    /// Whether this is more than what may wait to be sorted: a quarter of the limits.
    pub fn is_too_much_to_sort(&self, held: Held) -> bool {
        held.bytes > self.limits.bytes_max / 4 || held.samples > self.limits.samples_max / 4
    }

    /// Most bytes and samples that were held at once.
    pub fn peak(&self) -> Held {
        Held { bytes: self.bytes_peak, samples: self.samples_peak }
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
        let held = Held { bytes: 60, samples: 1 };
        budget.take(held, span).unwrap();
        budget.give(held);
        budget.take(held, span).unwrap();
        let error = budget.take(held, span).unwrap_err();
        assert_eq!(error, EvalError::limit(Limit::Bytes, 100, span));
        assert_eq!(budget.peak().bytes, 120);
    }
}
