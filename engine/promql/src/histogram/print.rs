//! Printing of histograms in the formats of upstream.

use std::fmt;

use super::buckets::Bucket;
use super::layout::indexed;
use crate::model::{CounterReset, Histogram, Span};
use tidepool_model::number::general;

impl fmt::Display for Histogram {
    /// Writes count, sum and non-empty buckets: `{count:3, sum:4.5, (1,2]:3}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{count:{}, sum:{}", general(self.count), general(self.sum))?;
        let mut negative: Vec<_> = self.negative_side().collect();
        negative.reverse();
        let zero = (self.zero_count != 0.0).then(|| self.zero_bucket());
        for bucket in negative.into_iter().chain(zero).chain(self.positive_side()) {
            if bucket.count != 0.0 {
                write!(f, ", {bucket}")?;
            }
        }
        f.write_str("}")
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{},{}{}:{}",
            if self.has_lower { '[' } else { '(' },
            general(self.lower),
            general(self.upper),
            if self.has_upper { ']' } else { ')' },
            general(self.count)
        )
    }
}

/// Returns the histogram in the notation of upstream's test scripts, `{{schema:1 count:3 …}}`.
pub fn test_notation(histogram: &Histogram) -> String {
    let mut parts = Vec::new();
    if histogram.schema != 0 {
        parts.push(format!("schema:{}", histogram.schema));
    }
    for (name, value) in [
        ("count", histogram.count),
        ("sum", histogram.sum),
        ("z_bucket", histogram.zero_count),
        ("z_bucket_w", histogram.zero_threshold),
    ] {
        if value != 0.0 {
            parts.push(format!("{name}:{}", general(value)));
        }
    }
    if histogram.has_custom_buckets() {
        parts.push(format!("custom_values:{}", list(&histogram.custom_values)));
    }
    match histogram.counter_reset {
        CounterReset::Unknown => {}
        CounterReset::Reset => parts.push("counter_reset_hint:reset".to_string()),
        CounterReset::NotReset => parts.push("counter_reset_hint:not_reset".to_string()),
        CounterReset::Gauge => parts.push("counter_reset_hint:gauge".to_string()),
    }
    let mut side = |name: &str, offset_name: &str, spans: &[Span], counts: &[f64]| {
        // The notation lists all counts between the first and the last bucket in use.
        let counted: Vec<_> = indexed(spans, counts).filter(|(_, count)| *count != 0.0).collect();
        let (Some((first, _)), Some((last, _))) = (counted.first(), counted.last()) else {
            return;
        };
        if *first != 0 {
            parts.push(format!("{offset_name}:{first}"));
        }
        let mut counts = vec![0.0; (last - first + 1) as usize];
        for (index, count) in &counted {
            counts[(index - first) as usize] = *count;
        }
        parts.push(format!("{name}:{}", list(&counts)));
    };
    side("buckets", "offset", &histogram.positive_spans, &histogram.positive_buckets);
    side("n_buckets", "n_offset", &histogram.negative_spans, &histogram.negative_buckets);
    format!("{{{{{}}}}}", parts.join(" "))
}

fn list(numbers: &[f64]) -> String {
    let texts: Vec<_> = numbers.iter().map(|number| general(*number)).collect();
    format!("[{}]", texts.join(" "))
}
