//! Wider buckets: a histogram of a finer schema brought down to a coarser one.
//!
//! Each step down joins two neighbouring buckets, so that bounds of the coarser schema are bounds
//! of the finer one too, and no observation has to be guessed at.

use super::{
    BucketLayout, Count, EXPONENTIAL_SCHEMA_MAX, EXPONENTIAL_SCHEMAS_KNOWN, HistogramError,
    NativeHistogram, Side, Span, SpanBuilder,
};
use std::rc::Rc;
use tidepool_model::buckets::coarser_index;

/// One side's spans and buckets.
type Wider<C> = (Box<[Span]>, Vec<<C as Count>::Bucket>);

impl<C: Count> NativeHistogram<C> {
    /// Whether the schema is known, but finer than what is stored.
    pub fn is_too_fine(&self) -> bool {
        let schema = self.layout.schema;
        schema > EXPONENTIAL_SCHEMA_MAX && EXPONENTIAL_SCHEMAS_KNOWN.contains(&schema)
    }

    /// Brings a histogram that is finer than what is stored down to
    /// [`EXPONENTIAL_SCHEMA_MAX`], as upstream does with what comes in. Others stay as they are.
    pub fn limit_resolution(&mut self) -> Result<(), HistogramError> {
        if self.is_too_fine() {
            self.reduce_resolution(EXPONENTIAL_SCHEMA_MAX)?;
        }
        Ok(())
    }

    /// Brings a histogram of exponential buckets down to a coarser schema. On an error it stays as
    /// it was.
    pub fn reduce_resolution(&mut self, schema: i32) -> Result<(), HistogramError> {
        let from = self.layout.schema;
        let known = |schema| EXPONENTIAL_SCHEMAS_KNOWN.contains(&schema);
        if !known(from) || !known(schema) || schema >= from {
            return Err(HistogramError::NotReducible { from, to: schema });
        }
        self.check_shape()?;
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
                Some(joined) if last == Some(index) => *joined = C::bucket_sum(*joined, count),
                _ => {
                    spans.push(index).ok_or(HistogramError::IndexTooLarge { side })?;
                    counts.push(count);
                    last = Some(index);
                }
            }
        }
        let mut before = C::Bucket::default();
        for count in &mut counts {
            let kept = C::kept(before, *count);
            before = std::mem::replace(count, kept);
        }
        Ok((spans.finish(), counts))
    }
}
