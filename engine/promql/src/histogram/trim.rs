//! Trimming of histograms: removal of the observations below or above a value.

use super::buckets::Bucket;
use crate::model::Histogram;

/// The side of a value whose observations are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Observations up to the value, for `</`.
    Below,
    /// Observations above the value, for `>/`.
    Above,
}

#[derive(Clone, Copy)]
struct Remainder {
    count: f64,
    /// Contribution of each kept observation to the sum.
    middle: f64,
}

const NOTHING: Remainder = Remainder { count: 0.0, middle: 0.0 };

impl Histogram {
    /// Removes observations on one side of a value; the count of the bucket that contains the value
    /// is interpolated. Count and sum are recomputed, unless nothing was removed.
    pub fn trim(&mut self, value: f64, keep: Keep) {
        let is_custom = self.has_custom_buckets();
        let mut total = (0.0, 0.0);
        let mut side = |buckets: &mut dyn Iterator<Item = Bucket>, is_positive| {
            let mut kept = Vec::new();
            let mut has_any = false;
            for bucket in buckets {
                if bucket.count == 0.0 {
                    // Empty buckets stay, because the counts belong to the stored spans.
                    kept.push(0.0);
                    continue;
                }
                has_any = true;
                let part = bucket.kept(value, keep, is_positive, is_custom);
                total.0 += part.count;
                total.1 += part.middle * part.count;
                kept.push(part.count);
            }
            (kept, has_any)
        };
        let (positive, has_positive) = side(&mut self.positive_side(), true);
        let (negative, has_negative) = side(&mut self.negative_side(), false);
        let mut is_trimmed =
            differ(&self.positive_buckets, &positive) || differ(&self.negative_buckets, &negative);
        if self.zero_count > 0.0 {
            let mut bucket = self.zero_bucket();
            // With observations of one sign only, the zero bucket ends at zero.
            if has_negative && !has_positive {
                bucket.upper = 0.0;
            }
            if has_positive && !has_negative {
                bucket.lower = 0.0;
            }
            let part = bucket.kept_of_zero(value, keep);
            is_trimmed |= part.count != self.zero_count;
            self.zero_count = part.count;
            total.1 += part.middle * part.count;
            total.0 += part.count;
        }
        // If nothing was removed, the exact sum is better than an estimate from middles of buckets.
        if is_trimmed {
            self.positive_buckets = positive;
            self.negative_buckets = negative;
            (self.count, self.sum) = total;
            self.compact();
        }
    }
}

fn differ(before: &[f64], after: &[f64]) -> bool {
    before.iter().zip(after).any(|(before, after)| before != after)
}

impl Bucket {
    fn kept(&self, value: f64, keep: Keep, is_positive: bool, is_custom: bool) -> Remainder {
        let (is_kept, is_split) = match keep {
            Keep::Below => (self.upper <= value, self.lower < value),
            Keep::Above => (self.lower >= value, self.upper > value),
        };
        let middle = |lower, upper| middle(lower, upper, is_positive, is_custom);
        if is_kept {
            return Remainder { count: self.count, middle: middle(self.lower, self.upper) };
        }
        if !is_split {
            return NOTHING;
        }
        // Unbounded buckets have no width to interpolate in.
        if self.lower == f64::NEG_INFINITY {
            return self.kept_from_infinity(value, keep);
        }
        if self.upper == f64::INFINITY {
            return self.kept_to_infinity(value, keep);
        }
        let below = if value <= self.lower {
            0.0
        } else if value >= self.upper {
            self.count
        } else {
            self.count * self.fraction_below(value, is_custom)
        };
        match keep {
            Keep::Below => Remainder { count: below, middle: middle(self.lower, value) },
            Keep::Above => {
                Remainder { count: self.count - below, middle: middle(value, self.upper) }
            }
        }
    }

    /// Returns the part of a bucket that begins at negative infinity. With a positive upper bound,
    /// the bucket is assumed to begin at zero; otherwise the position of observations is unknown.
    fn kept_from_infinity(&self, value: f64, keep: Keep) -> Remainder {
        let upper = self.upper;
        let is_finite = upper != f64::INFINITY;
        match keep {
            Keep::Below if value >= upper => Remainder { count: self.count, middle: 0.0 },
            Keep::Below if value > 0.0 && upper > 0.0 && is_finite => {
                Remainder { count: self.count * value / upper, middle: value / 2.0 }
            }
            Keep::Below if upper <= 0.0 => Remainder { count: self.count, middle: value },
            Keep::Above if value <= self.lower => Remainder { count: self.count, middle: 0.0 },
            Keep::Above if value >= 0.0 && upper > value && is_finite => Remainder {
                count: self.count * (1.0 - value / upper),
                middle: (value + upper) / 2.0,
            },
            _ => NOTHING,
        }
    }

    /// Returns the part of a bucket that ends at infinity: all observations or none.
    fn kept_to_infinity(&self, value: f64, keep: Keep) -> Remainder {
        match keep {
            Keep::Above if value >= self.lower => Remainder { count: self.count, middle: value },
            _ => NOTHING,
        }
    }

    fn kept_of_zero(&self, value: f64, keep: Keep) -> Remainder {
        let (lower, upper) = (self.lower, self.upper);
        let all = Remainder { count: self.count, middle: (lower + upper) / 2.0 };
        let part = |from: f64, to: f64| Remainder {
            count: self.count * ((to - from) / (upper - lower)),
            middle: (from + to) / 2.0,
        };
        match keep {
            Keep::Below if value <= lower => NOTHING,
            Keep::Below if value >= upper => all,
            Keep::Below => part(lower, value),
            Keep::Above if value <= lower => all,
            Keep::Above if value >= upper => NOTHING,
            Keep::Above => part(value, upper),
        }
    }
}

/// Returns the assumed position of the observations between two bounds.
fn middle(lower: f64, upper: f64, is_positive: bool, is_linear: bool) -> f64 {
    match (lower.is_infinite(), upper.is_infinite()) {
        // With one infinite bound, the position depends on the other, as in `kept_from_infinity`.
        (true, true) => 0.0,
        (true, false) if upper > 0.0 => upper / 2.0,
        (true, false) => upper,
        (false, true) => lower,
        (false, false) if is_linear => (lower + upper) / 2.0,
        (false, false) => {
            let middle = (lower * upper).abs().sqrt();
            if is_positive { middle } else { -middle }
        }
    }
}
