//! Reduces the resolution of native histograms, if a job limits it.
//!
//! Source: `bucketLimitAppenderV2`, `maxSchemaAppenderV2` and `pickSchema` in `scrape/` of
//! prometheus/prometheus.

use tidepool_exposition::{EXPONENTIAL_SCHEMAS, NativeHistogram};

/// Exponential schemas that the format defines. Not all of them can be stored (upstream's
/// `IsExponentialSchemaReserved`).
const RESERVED_SCHEMAS: std::ops::RangeInclusive<i32> = -9..=52;

/// Reduces a histogram to a coarser schema, if its own schema is finer. The finest schema that can
/// be stored means no limit.
pub fn limit_schema(histogram: &mut NativeHistogram, schema: i32) {
    let is_limit = schema < *EXPONENTIAL_SCHEMAS.end();
    if is_limit && RESERVED_SCHEMAS.contains(&histogram.schema) && histogram.schema > schema {
        histogram.reduce_schema(schema);
    }
}

/// Reduces a histogram until it has at most `buckets_max` buckets. Returns false if no coarser
/// schema achieves that.
pub fn limit_buckets(histogram: &mut NativeHistogram, buckets_max: u64) -> bool {
    while histogram.buckets() as u64 > buckets_max {
        let is_coarsest = histogram.schema == *EXPONENTIAL_SCHEMAS.start();
        // Custom buckets, and buckets of unknown schemas, cannot be merged.
        if is_coarsest || !EXPONENTIAL_SCHEMAS.contains(&histogram.schema) {
            return false;
        }
        histogram.reduce_schema(histogram.schema - 1);
    }
    true
}

/// Returns the finest schema whose buckets grow at least by this factor
/// (`native_histogram_min_bucket_factor`).
pub fn schema_of_factor(factor: f64) -> i32 {
    /// The factor of the finest schema, rounded up.
    const FACTOR_MIN: f64 = 1.00271;
    let factor = if factor <= 1.0 { FACTOR_MIN } else { factor };
    // Buckets grow by 2^(2^-schema), solved for the schema.
    let schema = (-factor.log2().log2()).floor();
    let (min, max) = (*EXPONENTIAL_SCHEMAS.start(), *EXPONENTIAL_SCHEMAS.end());
    schema.clamp(f64::from(min), f64::from(max)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_exposition::{CUSTOM_BUCKETS_SCHEMA, Counts, Span};

    fn histogram(schema: i32, spans: &[(i32, u32)], positive: &[i64]) -> NativeHistogram {
        let span = |&(offset, length): &(i32, u32)| Span { offset, length };
        let (count, positive) = (3, positive.to_vec());
        NativeHistogram {
            schema,
            zero_threshold: 0.001,
            sum: 1.0,
            is_gauge: false,
            positive_spans: spans.iter().map(span).collect(),
            negative_spans: Vec::new(),
            counts: Counts::Integer { count, zero_count: 0, positive, negative: Vec::new() },
            custom_values: Vec::new(),
        }
    }

    /// Follows the upstream tests TestScrapePoolAppenderWithLimits,
    /// TestScrapeLoop_HistogramBucketLimit.
    #[test]
    fn buckets_are_limited_or_cannot_be() {
        let wide = histogram(8, &[(0, 1), (100, 1), (100, 1)], &[1, 0, 0]);
        let mut same = wide.clone();
        assert!(limit_buckets(&mut same, 3));
        assert_eq!(same, wide);
        let mut coarse = wide.clone();
        assert!(limit_buckets(&mut coarse, 2));
        assert!(coarse.schema < 8 && coarse.buckets() == 2);
        assert!(!limit_buckets(&mut coarse, 0));
        let mut custom = histogram(CUSTOM_BUCKETS_SCHEMA, &[(0, 3)], &[1, 0, 0]);
        assert!(!limit_buckets(&mut custom, 2));
        limit_schema(&mut custom, 0);
        assert_eq!(custom.schema, CUSTOM_BUCKETS_SCHEMA);
        let mut wide = wide;
        limit_schema(&mut wide, 0);
        assert_eq!(wide.schema, 0);
        limit_schema(&mut wide, 3);
        assert_eq!(wide.schema, 0);
        // A schema that is too fine to be stored.
        let mut fine = histogram(9, &[(0, 2)], &[1, 0]);
        limit_schema(&mut fine, 8);
        assert_eq!(fine.schema, 9);
        limit_schema(&mut fine, 7);
        assert_eq!(fine.schema, 7);
        let mut unknown = histogram(53, &[(0, 2)], &[1, 0]);
        limit_schema(&mut unknown, 7);
        assert_eq!(unknown.schema, 53);
    }

    /// Follows the upstream test TestPickSchema.
    #[test]
    fn schemas_follow_factors() {
        let cases = [
            (65536.0, -4),
            (256.0, -3),
            (16.0, -2),
            (4.0, -1),
            (2.0, 0),
            (1.4, 1),
            (1.1, 2),
            (1.09, 3),
            (1.04, 4),
            (1.02, 5),
            (1.01, 6),
            (1.005, 7),
            (1.002, 8),
            (0.0, 8),
            (-1.0, 8),
        ];
        for (factor, schema) in cases {
            assert_eq!(schema_of_factor(factor), schema, "{factor}");
        }
    }
}
