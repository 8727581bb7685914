//! Reduces the resolution of a histogram to a coarser schema.
//!
//! Each step joins two neighbouring buckets. Bounds of the coarser schema are also bounds of the
//! finer one, so no observation has to be estimated.

use super::{
    BucketLayout, Count, EXPONENTIAL_SCHEMA_MAX, EXPONENTIAL_SCHEMAS_KNOWN, HistogramError,
    NativeHistogram, Side, Span, SpanBuilder,
};
use std::rc::Rc;
use tidepool_model::buckets::coarser_index;

type Wider<C> = (Box<[Span]>, Vec<<C as Count>::Bucket>);

impl<C: Count> NativeHistogram<C> {
    /// Returns whether the schema is known, but finer than those that are stored.
    pub fn is_too_fine(&self) -> bool {
        let schema = self.layout.schema;
        schema > EXPONENTIAL_SCHEMA_MAX && EXPONENTIAL_SCHEMAS_KNOWN.contains(&schema)
    }

    /// Reduces a finer histogram to [`EXPONENTIAL_SCHEMA_MAX`], as Prometheus does on receipt.
    pub fn limit_resolution(&mut self) -> Result<(), HistogramError> {
        if self.is_too_fine() {
            self.reduce_resolution(EXPONENTIAL_SCHEMA_MAX)?;
        }
        Ok(())
    }

    /// Reduces a histogram to a coarser exponential schema; on an error it is unchanged.
    pub fn reduce_resolution(&mut self, schema: i32) -> Result<(), HistogramError> {
        let from = self.layout.schema;
        let known = |schema| EXPONENTIAL_SCHEMAS_KNOWN.contains(&schema);
        if !known(from) || !known(schema) || schema >= from {
            return Err(HistogramError::NotReducible { from, to: schema });
        }
        self.check_shape()?;
        // Both sides are computed before any change, so that an error changes nothing.
        let steps = from.abs_diff(schema);
        let (positive_spans, positive_buckets) = self.wider(Side::Positive, steps)?;
        let (negative_spans, negative_buckets) = self.wider(Side::Negative, steps)?;
        self.layout = Rc::new(BucketLayout {
            schema,
            zero_threshold: self.layout.zero_threshold,
            positive_spans,
            negative_spans,
            custom_values: self.layout.custom_values.clone(),
        });
        self.positive_buckets = positive_buckets;
        self.negative_buckets = negative_buckets;
        Ok(())
    }

    fn wider(&self, side: Side, steps: u32) -> Result<Wider<C>, HistogramError> {
        let mut spans = SpanBuilder::default();
        let mut counts: Vec<C::Bucket> = Vec::new();
        let mut last = None;
        for (index, count) in self.counts(side) {
            let index = coarser_index(index, steps);
            match counts.last_mut() {
                // Indices ascend, so buckets that are joined follow each other.
                Some(joined) if last == Some(index) => *joined = C::bucket_sum(*joined, count),
                _ => {
                    spans.push(index).ok_or(HistogramError::IndexTooLarge { side })?;
                    counts.push(count);
                    last = Some(index);
                }
            }
        }
        // Stored buckets are differences to the new neighbours.
        let mut before = C::Bucket::default();
        for count in &mut counts {
            let kept = C::kept(before, *count);
            before = std::mem::replace(count, kept);
        }
        Ok((spans.finish(), counts))
    }
}
