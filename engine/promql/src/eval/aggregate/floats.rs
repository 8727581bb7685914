//! Floats of one group at all steps.

use crate::eval::column::{Bits, Column};
use crate::kahan;
use crate::syntax::AggregateOp;

/// State of a group's floats. `value` and `second` are a sum and its compensation, or a sum of
/// squared differences and a mean; for `min` and `max`, `value` is the result so far.
#[derive(Debug)]
pub struct Floats {
    value: Vec<f64>,
    second: Vec<f64>,
    count: Vec<f64>,
    present: Bits,
    /// Steps whose sum would overflow; at these steps `value` is a mean.
    means: Option<Bits>,
}

impl Floats {
    pub fn new(op: AggregateOp, steps: usize) -> Floats {
        use AggregateOp::{Avg, Count, Group, Stddev, Stdvar, Sum};
        let numbers = |are_needed: bool| if are_needed { vec![0.0; steps] } else { Vec::new() };
        Floats {
            value: numbers(!matches!(op, Count | Group)),
            second: numbers(matches!(op, Sum | Avg | Stddev | Stdvar)),
            count: numbers(matches!(op, Avg | Count | Stddev | Stdvar)),
            present: Bits::new(steps),
            means: None,
        }
    }

    pub fn bytes(&self) -> usize {
        let numbers = self.value.len() + self.second.len() + self.count.len();
        numbers * 8 + self.present.bytes()
    }

    pub fn present(&self) -> &Bits {
        &self.present
    }

    pub fn add(&mut self, op: AggregateOp, column: &Column) {
        // A branch for each step would slow down the common sum over full columns.
        if op == AggregateOp::Sum && column.is_full() && self.present.is_full() {
            let sums = self.value.iter_mut().zip(&mut self.second);
            for ((sum, lost), value) in sums.zip(column.floats()) {
                kahan::add(*value, sum, lost);
            }
            return;
        }
        for step in column.present().iter() {
            let value = column.floats()[step];
            if self.present.get(step) {
                self.next(op, step, value);
            } else {
                self.present.set(step);
                self.first(op, step, value);
            }
        }
    }

    pub fn count_histogram(&mut self, op: AggregateOp, step: usize) {
        self.present.set(step);
        if op == AggregateOp::Count {
            self.count[step] += 1.0;
        }
    }

    fn first(&mut self, op: AggregateOp, step: usize, value: f64) {
        match op {
            AggregateOp::Count => self.count[step] = 1.0,
            AggregateOp::Group => {}
            AggregateOp::Stddev | AggregateOp::Stdvar => {
                // The deviation of an infinite value is NaN, even if the group has no other value.
                self.value[step] = if value.is_finite() { 0.0 } else { f64::NAN };
                self.second[step] = value;
                self.count[step] = 1.0;
            }
            AggregateOp::Avg => {
                self.value[step] = value;
                self.count[step] = 1.0;
            }
            _ => self.value[step] = value,
        }
    }

    #[inline]
    fn next(&mut self, op: AggregateOp, step: usize, value: f64) {
        match op {
            AggregateOp::Sum => kahan::add(value, &mut self.value[step], &mut self.second[step]),
            AggregateOp::Avg => self.mean(step, value),
            AggregateOp::Count => self.count[step] += 1.0,
            // Any number replaces NaN, which remains only if all values are NaN.
            AggregateOp::Min if self.value[step] > value || self.value[step].is_nan() => {
                self.value[step] = value;
            }
            AggregateOp::Max if self.value[step] < value || self.value[step].is_nan() => {
                self.value[step] = value;
            }
            AggregateOp::Stddev | AggregateOp::Stdvar => {
                self.count[step] += 1.0;
                // Welford's algorithm, without compensation, as in upstream.
                let delta = value - self.second[step];
                self.second[step] += delta / self.count[step];
                self.value[step] += delta * (value - self.second[step]);
            }
            _ => {}
        }
    }

    /// Adds to the sum as long as it is finite; afterwards updates the mean.
    fn mean(&mut self, step: usize, value: f64) {
        self.count[step] += 1.0;
        let count = self.count[step];
        let (mut sum, mut lost) = (self.value[step], self.second[step]);
        if !self.means.as_ref().is_some_and(|means| means.get(step)) {
            let before = (sum, lost);
            kahan::add(value, &mut sum, &mut lost);
            if !sum.is_infinite() {
                (self.value[step], self.second[step]) = (sum, lost);
                return;
            }
            let steps = self.present.len();
            self.means.get_or_insert_with(|| Bits::new(steps)).set(step);
            (sum, lost) = (before.0 / (count - 1.0), before.1 / (count - 1.0));
        }
        let part = (count - 1.0) / count;
        (sum, lost) = (sum * part, lost * part);
        kahan::add(value / count, &mut sum, &mut lost);
        (self.value[step], self.second[step]) = (sum, lost);
    }

    pub fn result(&self, op: AggregateOp, step: usize) -> f64 {
        match op {
            AggregateOp::Sum => self.value[step] + self.second[step],
            AggregateOp::Avg => match &self.means {
                Some(means) if means.get(step) => self.value[step] + self.second[step],
                _ => self.value[step] / self.count[step] + self.second[step] / self.count[step],
            },
            AggregateOp::Count => self.count[step],
            AggregateOp::Group => 1.0,
            AggregateOp::Stdvar => self.value[step] / self.count[step],
            AggregateOp::Stddev => (self.value[step] / self.count[step]).sqrt(),
            _ => self.value[step],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(op: AggregateOp, values: &[f64]) -> f64 {
        let mut floats = Floats::new(op, 1);
        values.iter().for_each(|value| floats.add(op, &Column::constant(1, *value)));
        floats.result(op, 0)
    }

    #[test]
    fn a_mean_does_not_overflow() {
        let mean = of(AggregateOp::Avg, &[f64::MAX, f64::MAX, f64::MAX]);
        assert!((mean / f64::MAX - 1.0).abs() < 1e-15);
        assert_eq!(of(AggregateOp::Avg, &[1.0, 2.0, 6.0]), 3.0);
        assert!(of(AggregateOp::Avg, &[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }

    #[test]
    fn small_terms_survive_large_ones() {
        assert_eq!(of(AggregateOp::Sum, &[1.0, 1e100, 1.0, -1e100]), 2.0);
    }

    #[test]
    fn extremes_skip_what_is_no_number() {
        assert_eq!(of(AggregateOp::Max, &[f64::NAN, 1.0, f64::NAN]), 1.0);
        assert_eq!(of(AggregateOp::Min, &[3.0, f64::NAN, 2.0]), 2.0);
        assert!(of(AggregateOp::Min, &[f64::NAN, f64::NAN]).is_nan());
    }

    #[test]
    fn deviations_are_those_of_the_whole_group() {
        assert_eq!(of(AggregateOp::Stdvar, &[1.0, 2.0, 3.0, 4.0]), 1.25);
        assert!(of(AggregateOp::Stddev, &[f64::INFINITY]).is_nan());
    }
}
