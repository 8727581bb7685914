//! Zero buckets of different widths.

use super::compensated::Compensation;
use super::layout::indexed;
use crate::kahan;
use crate::model::Histogram;
use tidepool_model::buckets::exponential;

struct Wider {
    threshold: f64,
    count: f64,
    lost: f64,
}

impl Histogram {
    /// Widens the zero bucket until it contains the zero bucket of `other` and ends within no
    /// filled bucket of either histogram. Returns the count of the other zero bucket at this width.
    pub(super) fn reconcile_zero_bucket(
        &mut self,
        other: &Histogram,
        mut lost: Option<&mut Compensation>,
    ) -> f64 {
        let (mut count, mut threshold) = (other.zero_count, other.zero_threshold);
        // NaN thresholds never become equal, so the loop would not end.
        let is_number = !threshold.is_nan() && !self.zero_threshold.is_nan();
        // Each zero bucket may grow beyond the other once more to contain a whole bucket.
        while is_number && threshold != self.zero_threshold {
            if self.zero_threshold > threshold {
                let wider = other.widen_zero_bucket(self.zero_threshold, None);
                count = wider.count;
                threshold = wider.threshold;
            }
            if threshold > self.zero_threshold {
                let wider = self.widen_zero_bucket(threshold, lost.as_deref());
                self.zero_count = wider.count;
                self.zero_threshold = wider.threshold;
                if let Some(lost) = &mut lost {
                    lost.zero_count = wider.lost;
                }
                self.empty_below_threshold(lost.as_deref_mut());
            }
        }
        count
    }

    /// Returns the zero bucket's count at this threshold; `None` if the threshold is below the
    /// present threshold or within a filled bucket.
    pub(super) fn zero_count_at(&self, threshold: f64) -> Option<f64> {
        if threshold < self.zero_threshold {
            return None;
        }
        let wider = self.widen_zero_bucket(threshold, None);
        (wider.threshold == threshold).then_some(wider.count)
    }

    /// Returns the zero bucket with this threshold, or with the end of a filled bucket around it.
    fn widen_zero_bucket(&self, threshold: f64, lost: Option<&Compensation>) -> Wider {
        let zero_lost = lost.map_or(0.0, |lost| lost.zero_count);
        let mut wider = Wider { threshold, count: self.zero_count, lost: zero_lost };
        if threshold == self.zero_threshold {
            return wider;
        }
        loop {
            // Each pass counts again, because the threshold may have been raised.
            wider.count = self.zero_count;
            wider.lost = zero_lost;
            let sides = [
                (&self.positive_spans, &self.positive_buckets, lost.map(|lost| &lost.positive)),
                (&self.negative_spans, &self.negative_buckets, lost.map(|lost| &lost.negative)),
            ];
            let mut is_done = true;
            for (is_negative, (spans, counts, lost)) in [false, true].into_iter().zip(sides) {
                for (place, (index, count)) in indexed(spans, counts).enumerate() {
                    if exponential(index.wrapping_sub(1), self.schema) >= wider.threshold {
                        break;
                    }
                    kahan::add(count, &mut wider.count, &mut wider.lost);
                    if let Some(lost) = lost {
                        kahan::add(lost[place], &mut wider.count, &mut wider.lost);
                    }
                    let upper = exponential(index, self.schema);
                    if upper > wider.threshold {
                        if count != 0.0 {
                            wider.threshold = upper;
                            // Positive buckets were counted at a lower threshold, so count again.
                            is_done &= !is_negative;
                        }
                        break;
                    }
                }
            }
            if is_done {
                return wider;
            }
        }
    }

    /// Removes buckets within the zero bucket, whose count includes their counts.
    fn empty_below_threshold(&mut self, lost: Option<&mut Compensation>) {
        let (schema, threshold) = (self.schema, self.zero_threshold);
        self.for_each_side(lost, |side| {
            let below = super::layout::indexes(side.spans)
                .take(side.counts.len())
                .take_while(|i| exponential(i.wrapping_sub(1), schema) < threshold)
                .count();
            side.counts[..below].fill(0.0);
            if let Some(lost) = &mut side.lost {
                lost[..below].fill(0.0);
            }
            side.compact();
        });
    }
}
