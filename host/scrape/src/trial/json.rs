//! The outcome of a trial scrape as JSON. Values of samples are strings, as in the HTTP API.

use super::outcome::{Outcome, Sample, Value};
use super::text::protocol;
use crate::labels::Labels;
use crate::request::Head;
use crate::store::{ExemplarRow, FamilyMetadata};
use serde_json::{Map, Value as Json, json};
use tidepool_exposition::{Counts, NativeHistogram, Span};
use tidepool_model::number::plain;

impl Outcome {
    pub fn json(&self) -> Json {
        let labels = self.target.public_labels().into_iter();
        let target: Map<String, Json> = labels.map(|(name, value)| (name, value.into())).collect();
        let samples = self.by_family();
        let samples = samples
            .iter()
            .flat_map(|(family, samples)| samples.iter().map(|sample| sample_json(family, sample)));
        let refused = self.refusals.list.iter();
        let report = self.report.iter();
        json!({
            "url": self.target.url(),
            "target": target,
            "up": self.error.is_none(),
            "error": self.error.as_ref().map(ToString::to_string),
            "answer": self.answer.head.as_ref().map(|head| self.answer_json(head)),
            "durationSeconds": self.took.as_secs_f64(),
            "timestamp": seconds(self.at_ms),
            "samplesScraped": self.reported("scrape_samples_scraped"),
            "samplesPostMetricRelabeling": self.reported("scrape_samples_post_metric_relabeling"),
            "samples": samples.collect::<Vec<_>>(),
            "report": report
                .map(|(labels, value)| json!({"labels": labels_json(labels), "value": plain(*value)}))
                .collect::<Vec<_>>(),
            "refused": refused
                .map(|refusal| json!({"series": refusal.series, "reason": refusal.reason.to_string()}))
                .collect::<Vec<_>>(),
            "refusedCount": self.refusals.count,
            "metadata": self.metadata.iter().map(metadata_json).collect::<Vec<_>>(),
        })
    }

    fn answer_json(&self, head: &Head) -> Json {
        json!({
            "status": head.status,
            "httpVersion": head.version,
            "url": head.url,
            "contentType": head.content_type,
            "contentEncoding": head.content_encoding,
            "format": protocol(head.format),
            "bytes": self.answer.body_bytes,
            "uncompressedBytes": self.body_bytes,
        })
    }
}

fn sample_json(family: &FamilyMetadata, sample: &Sample) -> Json {
    let mut json = json!({"labels": labels_json(&sample.labels), "type": family.kind.as_str()});
    match &sample.value {
        Value::Float(value) => json["value"] = plain(*value).into(),
        Value::Histogram(histogram) => json["histogram"] = histogram_json(histogram),
    }
    if sample.is_timed {
        json["timestamp"] = seconds(sample.timestamp_ms);
    }
    if !sample.exemplars.is_empty() {
        json["exemplars"] = sample.exemplars.iter().map(exemplar_json).collect();
    }
    json
}

fn exemplar_json(exemplar: &ExemplarRow) -> Json {
    json!({
        "labels": labels_json(&exemplar.labels),
        "value": plain(exemplar.value),
        "timestamp": seconds(exemplar.timestamp_ms),
    })
}

fn metadata_json(family: &FamilyMetadata) -> Json {
    json!({
        "metric": family.family,
        "type": family.kind.as_str(),
        "help": family.help,
        "unit": family.unit,
    })
}

fn labels_json(labels: &Labels) -> Json {
    labels.iter().map(|(name, value)| (name.to_owned(), Json::from(value))).collect()
}

/// Writes spans as they are stored, but absolute counts instead of deltas.
fn histogram_json(histogram: &NativeHistogram) -> Json {
    let spans = |spans: &[Span]| -> Json {
        spans.iter().map(|span| json!({"offset": span.offset, "length": span.length})).collect()
    };
    let plains =
        |numbers: &[f64]| -> Json { numbers.iter().map(|number| plain(*number)).collect() };
    let absolute = |deltas: &[i64]| -> Json {
        let counts = deltas.iter().scan(0i64, |count, delta| {
            // Wraps, because a target may send any deltas.
            *count = count.wrapping_add(*delta);
            Some(count.to_string())
        });
        counts.collect()
    };
    let (count, zeros, positive, negative) = match &histogram.counts {
        Counts::Integer { count, zero_count, positive, negative } => {
            (count.to_string(), zero_count.to_string(), absolute(positive), absolute(negative))
        }
        Counts::Float { count, zero_count, positive, negative } => {
            (plain(*count), plain(*zero_count), plains(positive), plains(negative))
        }
    };
    json!({
        "count": count,
        "sum": plain(histogram.sum),
        "schema": histogram.schema,
        "zeroThreshold": plain(histogram.zero_threshold),
        "zeroCount": zeros,
        "positiveSpans": spans(&histogram.positive_spans),
        "positiveCounts": positive,
        "negativeSpans": spans(&histogram.negative_spans),
        "negativeCounts": negative,
        "customBounds": plains(&histogram.custom_values),
    })
}

/// Returns a time in seconds, as the HTTP API writes it.
fn seconds(ms: i64) -> Json {
    (ms as f64 / 1000.0).into()
}
