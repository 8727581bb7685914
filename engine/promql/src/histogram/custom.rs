//! Sums of histograms with different custom bounds.

use super::compensated::Compensation;
use super::layout::{Builder, indexed};
use crate::kahan;
use crate::model::{Histogram, Span};

/// Returns the bounds that are in both of two ascending lists.
pub(super) fn common_bounds(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut common = Vec::new();
    let mut others = b.iter().copied().peekable();
    for bound in a.iter().copied() {
        while others.next_if(|other| *other < bound).is_some() {}
        if others.next_if(|other| *other == bound).is_some() {
            common.push(bound);
        }
    }
    common
}

/// Counts of the buckets between common bounds, and their rounding errors.
pub(super) struct Mapped {
    bounds: Vec<f64>,
    pub(super) counts: Vec<f64>,
    lost: Vec<f64>,
}

impl Mapped {
    pub(super) fn new(bounds: Vec<f64>) -> Mapped {
        let len = bounds.len() + 1;
        Mapped { bounds, counts: vec![0.0; len], lost: vec![0.0; len] }
    }

    /// Adds each bucket to the common bucket that contains it.
    pub(super) fn add(&mut self, histogram: &Histogram, sign: f64, lost: Option<&[f64]>) {
        let (spans, counts) = (&histogram.positive_spans, &histogram.positive_buckets);
        let mut target = 0;
        for (place, (index, count)) in indexed(spans, counts).enumerate() {
            let bound = usize::try_from(index).ok().and_then(|i| histogram.custom_values.get(i));
            match bound {
                Some(bound) => {
                    while self.bounds.get(target).is_some_and(|common| common < bound) {
                        target += 1;
                    }
                }
                None => target = self.bounds.len(),
            }
            kahan::add(count * sign, &mut self.counts[target], &mut self.lost[target]);
            if let Some(lost) = lost {
                kahan::add(lost[place], &mut self.counts[target], &mut self.lost[target]);
            }
        }
    }

    fn finish(mut self) -> (Vec<Span>, Mapped) {
        let mut builder = Builder::default();
        let mut len = 0;
        for place in 0..self.counts.len() {
            let (count, lost) = (self.counts[place], self.lost[place]);
            // A bucket whose count is zero may still have a compensation.
            if count != 0.0 || lost != 0.0 {
                builder.push(place as i32);
                self.counts[len] = count;
                self.lost[len] = lost;
                len += 1;
            }
        }
        self.counts.truncate(len);
        self.lost.truncate(len);
        (builder.finish(), self)
    }
}

/// Adds the buckets of another histogram; bounds that only one histogram has are dropped.
pub(super) fn combine(
    histogram: &mut Histogram,
    other: &Histogram,
    sign: f64,
    lost: Option<&mut Compensation>,
) {
    let mut mapped = Mapped::new(common_bounds(&histogram.custom_values, &other.custom_values));
    mapped.add(histogram, 1.0, lost.as_ref().map(|lost| &lost.positive[..]));
    mapped.add(other, sign, None);
    let (spans, mapped) = mapped.finish();
    histogram.positive_spans = spans;
    histogram.positive_buckets = mapped.counts;
    histogram.custom_values = mapped.bounds;
    if let Some(lost) = lost {
        lost.positive = mapped.lost;
    }
}
