//! Quantiles and fractions of native histograms, as upstream computes them.

use crate::histogram::Bucket;
use crate::logarithm::log2;
use crate::model::Histogram;

/// Effect of NaN observations on a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// The result is not affected.
    Nothing,
    /// A quantile is too high, or a fraction too low.
    Skewed,
    /// The result can only be NaN.
    Lost,
}

/// Returns the quantile, interpolated on a logarithmic scale in exponential buckets, and linearly
/// in other buckets.
///
/// NaN observations count as the highest. Quantiles of at least 0.5 are counted from the top,
/// unless NaN observations are possible.
pub fn histogram_quantile(q: f64, histogram: &Histogram) -> (f64, Skew) {
    if q < 0.0 {
        return (f64::NEG_INFINITY, Skew::Nothing);
    }
    if q > 1.0 {
        return (f64::INFINITY, Skew::Nothing);
    }
    if histogram.count == 0.0 || q.is_nan() {
        return (f64::NAN, Skew::Nothing);
    }
    // A NaN sum means that NaN observations may exist, which no bucket contains.
    let from_below = histogram.sum.is_nan() || q < 0.5;
    let rank = if from_below { q * histogram.count } else { (1.0 - q) * histogram.count };
    let mut buckets = histogram.buckets();
    let next = move || if from_below { buckets.next() } else { buckets.next_back() };
    let found = RankBucket::by_rank(rank, next);
    let mut bucket = found.bucket;
    if histogram.has_custom_buckets() {
        if bucket.lower == f64::NEG_INFINITY {
            // As in upstream, begins at zero; an upper bound that is not positive is the result.
            if bucket.upper <= 0.0 {
                return (bucket.upper, Skew::Nothing);
            }
            bucket.lower = 0.0;
        } else if bucket.upper == f64::INFINITY {
            return (bucket.lower, Skew::Nothing);
        }
    } else if bucket.lower < 0.0 && bucket.upper > 0.0 {
        bucket.end_at_zero(histogram);
    }
    // Rounding may make the sum of the buckets exceed the count.
    let count = if found.count > histogram.count { histogram.count } else { found.count };
    if count < rank {
        // Only NaN observations are in no bucket.
        return match histogram.sum.is_nan() {
            true => (f64::NAN, Skew::Lost),
            false => (bucket.upper, Skew::Nothing),
        };
    }
    let rank = if from_below { rank - (count - bucket.count) } else { count - rank };
    let is_skewed = histogram.sum.is_nan() && found.total < histogram.count;
    if histogram.sum.is_nan() {
        // Upstream iterates over the rest to count it, and then interpolates in the last bucket.
        bucket = found.last.unwrap_or(bucket);
    }
    let skew = if is_skewed { Skew::Skewed } else { Skew::Nothing };
    let fraction = rank / bucket.count;
    let is_linear = histogram.has_custom_buckets() || bucket.lower <= 0.0 && bucket.upper >= 0.0;
    (bucket.at(fraction, is_linear), skew)
}

/// The bucket of a rank, with the counts around it.
struct RankBucket {
    bucket: Bucket,
    /// Observations up to this bucket, included.
    count: f64,
    total: f64,
    /// Last bucket of the iteration, if it is after this bucket.
    last: Option<Bucket>,
}

impl RankBucket {
    fn by_rank(rank: f64, mut next: impl FnMut() -> Option<Bucket>) -> RankBucket {
        let bucket =
            Bucket { lower: 0.0, upper: 0.0, has_lower: false, has_upper: false, count: 0.0 };
        let mut found = RankBucket { bucket, count: 0.0, total: 0.0, last: None };
        while let Some(bucket) = next() {
            // Set before the test, so that a rank beyond all buckets ends in the last bucket.
            found.bucket = bucket;
            if bucket.count == 0.0 {
                continue;
            }
            found.count += bucket.count;
            if found.count >= rank {
                break;
            }
        }
        found.total = found.count;
        while let Some(bucket) = next() {
            found.total += bucket.count;
            found.last = Some(bucket);
        }
        found
    }
}

impl Bucket {
    /// Cuts the zero bucket at zero, if all observations have the same sign.
    fn end_at_zero(&mut self, histogram: &Histogram) {
        match (histogram.negative_buckets.is_empty(), histogram.positive_buckets.is_empty()) {
            (true, false) => self.lower = 0.0,
            (false, true) => self.upper = 0.0,
            _ => {}
        }
    }

    /// Returns the value below which this fraction of the bucket's observations is.
    fn at(&self, fraction: f64, is_linear: bool) -> f64 {
        if is_linear {
            return self.lower + (self.upper - self.lower) * fraction;
        }
        let [lower, upper] = [self.lower, self.upper].map(|bound| log2(bound.abs()));
        match self.lower > 0.0 {
            true => (lower + (upper - lower) * fraction).exp2(),
            false => -(upper + (lower - upper) * (1.0 - fraction)).exp2(),
        }
    }
}

/// Returns the fraction of observations between two values, interpolated like quantiles.
pub fn histogram_fraction(lower: f64, upper: f64, histogram: &Histogram) -> (f64, Skew) {
    if histogram.count == 0.0 || lower.is_nan() || upper.is_nan() {
        return (f64::NAN, Skew::Nothing);
    }
    if lower >= upper {
        return (0.0, Skew::Nothing);
    }
    let mut ranks = [Rank::of(lower), Rank::of(upper)];
    let (mut below, mut counted) = (0.0, 0.0);
    for mut bucket in histogram.buckets() {
        counted += bucket.count;
        let is_zero = bucket.lower <= 0.0 && bucket.upper >= 0.0;
        // Only the zero bucket contains zero, which has no logarithm.
        if is_zero {
            bucket.end_at_zero(histogram);
        }
        for rank in &mut ranks {
            rank.look_at(&bucket, below, histogram.has_custom_buckets() || is_zero);
        }
        below += bucket.count;
    }
    // NaN observations are in no bucket, so a rank must not include them.
    let count = if histogram.sum.is_nan() { counted } else { histogram.count };
    let is_skewed = histogram.sum.is_nan() && counted < histogram.count;
    let [lower, upper] = ranks.map(|rank| match rank.below {
        Some(below) if below > count => count,
        Some(below) => below,
        None => count,
    });
    let skew = if is_skewed { Skew::Skewed } else { Skew::Nothing };
    ((upper - lower) / histogram.count, skew)
}

/// Number of observations below a value, once it is known.
struct Rank {
    value: f64,
    below: Option<f64>,
}

impl Rank {
    fn of(value: f64) -> Rank {
        Rank { value, below: None }
    }

    fn look_at(&mut self, bucket: &Bucket, below: f64, is_linear: bool) {
        if self.below.is_some() {
            return;
        }
        if bucket.lower >= self.value {
            self.below = Some(below);
        } else if bucket.upper > self.value {
            self.below = Some(match is_linear && bucket.lower == f64::NEG_INFINITY {
                // The position of observations within an unbounded bucket is unknown.
                true => bucket.count,
                false => below + bucket.count * bucket.fraction_below(self.value, is_linear),
            });
        }
    }
}
