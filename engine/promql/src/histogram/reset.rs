//! Detection of counter resets between two histograms.

use std::borrow::Cow;

use super::custom::{Mapped, common_bounds};
use super::layout::indexed;
use crate::model::{CounterReset, Histogram, Span};
use tidepool_model::buckets::exponential;

impl Histogram {
    /// Returns whether the counter was reset: a hint says so, or, without a hint, a count is lower,
    /// buckets became finer, or a bucket disappeared since the previous histogram.
    pub fn detect_reset(&self, previous: &Histogram) -> bool {
        match self.counter_reset {
            CounterReset::Reset => return true,
            CounterReset::NotReset => return false,
            // Upstream compares gauges like histograms without a hint.
            CounterReset::Unknown | CounterReset::Gauge => {}
        }
        if self.count < previous.count {
            return true;
        }
        if self.has_custom_buckets() {
            if !previous.has_custom_buckets() {
                return true;
            }
            if self.custom_values != previous.custom_values {
                return self.has_less_by_common_bounds(previous);
            }
        } else if previous.has_custom_buckets() {
            return true;
        }
        // A counter only merges buckets and widens the zero bucket, unless it is reset.
        if self.schema > previous.schema || self.zero_threshold < previous.zero_threshold {
            return true;
        }
        // Previous buckets within the wider zero bucket are compared as part of it.
        match previous.zero_count_at(self.zero_threshold) {
            Some(zero_count) if self.zero_count < zero_count => return true,
            Some(_) => {}
            None => return true,
        }
        self.has_less(previous, |histogram| {
            (&histogram.positive_spans, &histogram.positive_buckets)
        }) || self.has_less(previous, |histogram| {
            (&histogram.negative_spans, &histogram.negative_buckets)
        })
    }

    fn has_less_by_common_bounds(&self, previous: &Histogram) -> bool {
        let bounds = common_bounds(&self.custom_values, &previous.custom_values);
        let mapped = |histogram| {
            let mut mapped = Mapped::new(bounds.clone());
            mapped.add(histogram, 1.0, None);
            mapped.counts
        };
        mapped(self).iter().zip(&mapped(previous)).any(|(count, before)| count < before)
    }

    /// Returns whether a bucket has a lower count than in `previous`, which is at least as fine.
    fn has_less(
        &self,
        previous: &Histogram,
        side: impl Fn(&Histogram) -> (&Vec<Span>, &Vec<f64>),
    ) -> bool {
        let (spans, counts) = side(previous);
        let (mut spans, mut counts) = (Cow::Borrowed(spans), Cow::Borrowed(counts));
        if self.schema < previous.schema {
            let shift = (previous.schema - self.schema) as u32;
            super::layout::Side { spans: spans.to_mut(), counts: counts.to_mut(), lost: None }
                .reduce(shift);
        }
        let (own_spans, own_counts) = side(self);
        let (schema, threshold) = (self.schema, self.zero_threshold);
        let is_below = |index: i32| {
            threshold != 0.0
                && !self.has_custom_buckets()
                && exponential(index, schema) <= threshold
        };
        let mut own = indexed(own_spans, own_counts).peekable();
        for (index, before) in indexed(&spans, &counts).skip_while(|(index, _)| is_below(*index)) {
            while own.next_if(|(other, _)| *other < index).is_some() {}
            let is_less = match own.next_if(|(other, _)| *other == index) {
                Some((_, count)) => count < before,
                // A bucket that disappeared is a decrease, unless it was empty.
                None => before != 0.0,
            };
            if is_less {
                return true;
            }
        }
        false
    }
}
