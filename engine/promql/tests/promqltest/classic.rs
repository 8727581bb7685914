//! Native histograms with custom bounds, made of classic series.

use super::script::Load;
use super::series::Item;
use std::collections::BTreeMap;
use tidepool_promql::model::{CUSTOM_BUCKETS_SCHEMA, Histogram, Labels, Span};

/// Samples of one classic histogram at one time.
#[derive(Default)]
struct Classic {
    buckets: Vec<(f64, f64)>,
    count: Option<f64>,
    sum: f64,
}

/// Returns the histograms of a load, each with labels and time.
pub fn histograms(load: &Load) -> Vec<(Labels, i64, Histogram)> {
    let mut found: BTreeMap<(Labels, i64), Classic> = BTreeMap::new();
    for series in &load.series {
        let name = series.labels.get("__name__");
        let Some((base, part)) = name.rsplit_once('_') else { continue };
        let bound = series.labels.get("le").parse::<f64>().ok().filter(|le| !le.is_nan());
        if !matches!(part, "bucket" | "count" | "sum") || (part == "bucket" && bound.is_none()) {
            continue;
        }
        let mut labels = series.labels.clone();
        labels.set("__name__", base);
        labels.remove("le");
        for (i, item) in series.items.iter().enumerate() {
            let Item::Float(value) = item else { continue };
            let classic = found.entry((labels.clone(), i as i64 * load.step_ms)).or_default();
            match (part, bound) {
                ("bucket", Some(bound)) => classic.buckets.push((bound, *value)),
                ("count", _) => classic.count = Some(*value),
                _ => classic.sum = *value,
            }
        }
    }
    found.into_iter().map(|((labels, time), classic)| (labels, time, classic.native())).collect()
}

impl Classic {
    fn native(mut self) -> Histogram {
        self.buckets.sort_by(|(bound, _), (other, _)| bound.total_cmp(other));
        self.buckets.dedup_by_key(|(bound, _)| *bound);
        let last = self.buckets.last().map(|(_, count)| *count);
        let count = self.count.or(last).unwrap_or_default();
        if self.buckets.last().is_none_or(|(bound, _)| bound.is_finite()) {
            self.buckets.push((f64::INFINITY, count));
        }
        let bounds = self.buckets.iter().map(|(bound, _)| *bound);
        let mut before = 0.0;
        let counts =
            self.buckets.iter().map(|(_, count)| count - std::mem::replace(&mut before, *count));
        let mut histogram = Histogram {
            schema: CUSTOM_BUCKETS_SCHEMA,
            count,
            sum: self.sum,
            positive_spans: vec![Span { offset: 0, length: self.buckets.len() as u32 }],
            positive_buckets: counts.collect(),
            custom_values: bounds.filter(|bound| bound.is_finite()).collect(),
            ..Histogram::default()
        };
        histogram.compact();
        histogram
    }
}
