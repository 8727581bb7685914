//! Histograms of one group at one step.

use crate::annotations::{HistogramOperation, Note};
use crate::histogram::Compensation;
use crate::model::{CounterReset, Histogram};

/// A sum or a mean of histograms.
#[derive(Debug, Default)]
pub struct HistogramSum {
    /// None if a float came first: there is no result, then.
    value: Option<Box<Histogram>>,
    lost: Compensation,
    count: f64,
    is_mean: bool,
    /// Whether there were histograms that cannot be put together.
    is_broken: bool,
    has_reset: bool,
    has_no_reset: bool,
}

impl HistogramSum {
    /// The first histogram of a group; it is not taken if there were floats before.
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

    /// Whether histograms could not be put together, after which nothing counts.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Adds a histogram; gives what is to be said.
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

    /// Gives whether bounds were reconciled; none if that was not possible.
    fn sum(&mut self, histogram: &Histogram) -> Option<bool> {
        let value = self.value.as_mut()?;
        Some(value.add_compensated(histogram, &mut self.lost).ok()?.custom_bounds)
    }

    fn average(&mut self, histogram: &Histogram) -> Option<bool> {
        let value = self.value.as_mut()?;
        let mut is_reconciled = false;
        if !self.is_mean {
            let (mut sum, mut lost) = (value.clone(), self.lost.clone());
            is_reconciled = sum.add_compensated(histogram, &mut lost).ok()?.custom_bounds;
            if !sum.has_overflow() {
                (*value, self.lost) = (sum, lost);
                return Some(is_reconciled);
            }
            self.is_mean = true;
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

    /// The result, and whether counters were reset in some histograms and not in others.
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
        value.compact();
        (Some(*value), collides)
    }

    /// Bytes of memory, roughly.
    pub fn bytes(&self) -> usize {
        let value =
            self.value.as_ref().map_or(0, |h| crate::eval::column::histogram_held(h).bytes * 2);
        size_of::<HistogramSum>() + value
    }
}
