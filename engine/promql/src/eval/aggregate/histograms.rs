//! Sums and means of histograms of one group at one step.

use crate::annotations::{HistogramOperation, Note};
use crate::histogram::Compensation;
use crate::model::{CounterReset, Histogram};

/// A sum or a mean of histograms, with compensation for rounding errors.
#[derive(Debug, Default)]
pub struct HistogramSum {
    /// `None` if the group had a float before its first histogram; then the result is `None`, too.
    value: Option<Box<Histogram>>,
    lost: Compensation,
    count: f64,
    is_mean: bool,
    is_broken: bool,
    has_reset: bool,
    has_no_reset: bool,
}

impl HistogramSum {
    /// Starts with the first histogram of a group, which is ignored if the group has had floats.
    pub fn first(histogram: &Histogram, after_floats: bool) -> HistogramSum {
        let mut sum = HistogramSum { count: 1.0, ..HistogramSum::default() };
        if !after_floats {
            sum.see(histogram);
            sum.value = Some(Box::new(histogram.clone()));
        }
        sum
    }

    fn see(&mut self, histogram: &Histogram) {
        self.has_reset |= histogram.counter_reset == CounterReset::Reset;
        self.has_no_reset |= histogram.counter_reset == CounterReset::NotReset;
    }

    /// Returns whether a histogram could not be added; then the group ignores samples of this step.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Adds a histogram; returns the annotation to note.
    pub fn add(&mut self, histogram: &Histogram, is_average: bool) -> Option<Note<'static>> {
        self.count += 1.0;
        self.value.as_ref()?;
        self.see(histogram);
        let done = match is_average {
            true => self.average(histogram),
            false => self.sum(histogram),
        };
        match done {
            None => {
                self.is_broken = true;
                Some(Note::MixedExponentialCustom)
            }
            Some(true) => Some(Note::MismatchedCustomBuckets(HistogramOperation::Aggregate)),
            Some(false) => None,
        }
    }

    /// Adds to the sum; returns whether bounds were reconciled, or `None` if they cannot be.
    fn sum(&mut self, histogram: &Histogram) -> Option<bool> {
        let value = self.value.as_mut()?;
        Some(value.add_compensated(histogram, &mut self.lost).ok()?.custom_bounds)
    }

    fn average(&mut self, histogram: &Histogram) -> Option<bool> {
        let value = self.value.as_mut()?;
        let mut is_reconciled = false;
        if !self.is_mean {
            // The sum is computed on copies, because an overflow discards it.
            let (mut sum, mut lost) = (value.clone(), self.lost.clone());
            is_reconciled = sum.add_compensated(histogram, &mut lost).ok()?.custom_bounds;
            if !sum.has_overflow() {
                (*value, self.lost) = (sum, lost);
                return Some(is_reconciled);
            }
            self.is_mean = true;
            // From here on `value` is a mean, as upstream does to avoid overflow.
            value.divide(self.count - 1.0);
            self.lost.divide(self.count - 1.0);
        }
        let part = (self.count - 1.0) / self.count;
        value.scale(part);
        self.lost.scale(part);
        let mut term = histogram.clone();
        term.divide(self.count);
        Some(value.add_compensated(&term, &mut self.lost).ok()?.custom_bounds || is_reconciled)
    }

    /// Returns the result, and whether the counter reset hints of the histograms conflict.
    pub fn result(&mut self, is_average: bool) -> (Option<Histogram>, bool) {
        let collides = self.has_reset && self.has_no_reset;
        if self.is_broken {
            return (None, false);
        }
        let Some(mut value) = self.value.take() else { return (None, false) };
        if is_average && !self.is_mean {
            value.divide(self.count);
            self.lost.divide(self.count);
        }
        self.lost.apply(&mut value);
        // Upstream compacts the results of aggregations, too.
        value.compact();
        (Some(*value), collides)
    }

    pub fn bytes(&self) -> usize {
        // Twice, because the compensation has as many numbers as the histogram.
        let value =
            self.value.as_ref().map_or(0, |h| crate::eval::column::histogram_held(h).bytes * 2);
        size_of::<HistogramSum>() + value
    }
}
