//! Native histograms as dumps print them: `{count:3, sum:4.5, [-0.001,0.001]:1, (1,2]:2}`.
//!
//! Buckets are printed from the most negative to the most positive, without empty buckets. A bucket
//! excludes its lower and includes its upper bound; a negative bucket does the reverse.

use crate::model::NativeHistogram;
use crate::model::histogram::{Count, Side};
use std::fmt::Write as _;
use tidepool_model::buckets::upper_bound;
use tidepool_model::number::general;

/// Printing of integer or float counts.
pub(super) trait PrintedCount: Count {
    fn put(self, out: &mut String);

    fn put_bucket(count: Self::Bucket, out: &mut String);
}

impl PrintedCount for u64 {
    // Writing to a string does not fail.
    fn put(self, out: &mut String) {
        let _ = write!(out, "{self}");
    }

    fn put_bucket(count: i64, out: &mut String) {
        let _ = write!(out, "{}", count as u64);
    }
}

impl PrintedCount for f64 {
    fn put(self, out: &mut String) {
        out.push_str(&general(self));
    }

    fn put_bucket(count: f64, out: &mut String) {
        out.push_str(&general(count));
    }
}

pub(super) fn put_histogram<C: PrintedCount>(out: &mut String, histogram: &NativeHistogram<C>) {
    let layout = &histogram.layout;
    let is_custom = layout.has_custom_buckets();
    let upper = |index: i64| upper_bound(index, layout.schema, &layout.custom_values);
    out.push_str("{count:");
    histogram.count.put(out);
    out.push_str(", sum:");
    out.push_str(&general(histogram.sum));
    let used = |(_, count): &(i64, C::Bucket)| *count != C::Bucket::default();
    let mut negative: Vec<_> = histogram.counts(Side::Negative).filter(used).collect();
    // `counts` is in the order of absolute values, so negative buckets are reversed.
    negative.reverse();
    for (index, count) in negative {
        let span = (-upper(index), -upper(index.saturating_sub(1)));
        put_bounds(out, span, (true, false));
        C::put_bucket(count, out);
    }
    if histogram.zero_count != C::default() {
        put_bounds(out, (-layout.zero_threshold, layout.zero_threshold), (true, true));
        histogram.zero_count.put(out);
    }
    for (index, count) in histogram.counts(Side::Positive).filter(used) {
        let span = (upper(index.saturating_sub(1)), upper(index));
        // As upstream has it, the first custom bucket includes its lower bound.
        put_bounds(out, span, (is_custom && index == 0, true));
        C::put_bucket(count, out);
    }
    out.push('}');
}

/// Appends `, [lower,upper]:`, with a round bracket at an end that is not inside.
fn put_bounds(out: &mut String, (lower, upper): (f64, f64), inside: (bool, bool)) {
    out.push_str(if inside.0 { ", [" } else { ", (" });
    out.push_str(&general(lower));
    out.push(',');
    out.push_str(&general(upper));
    out.push_str(if inside.1 { "]:" } else { "):" });
}
