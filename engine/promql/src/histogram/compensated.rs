//! Rounding errors of sums of histograms.

use crate::model::Histogram;

/// Rounding errors of a histogram's numbers; the lists have an entry for each of its buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compensation {
    pub(super) zero_count: f64,
    pub(super) count: f64,
    pub(super) sum: f64,
    pub(super) positive: Vec<f64>,
    pub(super) negative: Vec<f64>,
}

impl Compensation {
    /// Makes entries for the buckets of the histogram before an addition.
    pub(super) fn fit(&mut self, histogram: &Histogram) {
        self.positive.resize(histogram.positive_buckets.len(), 0.0);
        self.negative.resize(histogram.negative_buckets.len(), 0.0);
    }

    /// Multiplies all compensations, as [`Histogram::scale`] does with the numbers.
    pub fn scale(&mut self, factor: f64) {
        self.for_each(|number| *number *= factor);
    }

    /// Divides all compensations, as [`Histogram::divide`] does with the numbers.
    pub fn divide(&mut self, divisor: f64) {
        self.for_each(|number| *number /= divisor);
    }

    fn for_each(&mut self, mut change: impl FnMut(&mut f64)) {
        for number in [&mut self.zero_count, &mut self.count, &mut self.sum] {
            change(number);
        }
        self.positive.iter_mut().for_each(&mut change);
        self.negative.iter_mut().for_each(change);
    }

    /// Adds the compensations to their histogram.
    pub fn apply(&self, histogram: &mut Histogram) {
        histogram.zero_count += self.zero_count;
        histogram.count += self.count;
        histogram.sum += self.sum;
        for (count, lost) in histogram.positive_buckets.iter_mut().zip(&self.positive) {
            *count += lost;
        }
        for (count, lost) in histogram.negative_buckets.iter_mut().zip(&self.negative) {
            *count += lost;
        }
    }
}
