//! Prints the outcome of a trial scrape in lines that resemble an exposition.

use super::outcome::{Outcome, Sample, Value};
use crate::request::Head;
use crate::store::{ExemplarRow, FamilyMetadata};
use std::fmt;
use tidepool_exposition::{Counts, Format, MetricType, NativeHistogram, series_text};
use tidepool_model::number::general;

/// An outcome that prints as text.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'o> {
    pub outcome: &'o Outcome,
    /// Whether help and unit are printed, too.
    pub with_metadata: bool,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.outcome;
        let labels = outcome.target.public_labels();
        let labels = labels.iter().map(|(name, value)| format!("{name}={value:?}"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        writeln!(f, "# target: {} {{{labels}}}", outcome.target.url())?;
        self.answer(f)?;
        match &outcome.error {
            Some(error) => {
                writeln!(f, "# FAILED: {error}")?;
                writeln!(f, "# Nothing but the report is stored.")?;
            }
            None => {
                let count = |name| outcome.reported(name).unwrap_or_default();
                writeln!(
                    f,
                    "# samples: {} exposed, {} after relabeling, {} stored",
                    count("scrape_samples_scraped"),
                    count("scrape_samples_post_metric_relabeling"),
                    outcome.samples.len()
                )?;
            }
        }
        if !outcome.samples.is_empty() {
            writeln!(f)?;
        }
        for (family, samples) in outcome.by_family() {
            self.family(f, &family)?;
            samples.into_iter().try_for_each(|sample| line(f, sample))?;
        }
        writeln!(f, "\n# the report of the scrape")?;
        for (labels, value) in &outcome.report {
            writeln!(f, "{} {}", labels.series_text(), general(*value))?;
        }
        self.refusals(f)
    }
}

impl Shown<'_> {
    fn answer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { answer, took, body_bytes, .. } = self.outcome;
        let Some(head) = &answer.head else {
            return writeln!(f, "# answer: none after {took:.1?}");
        };
        let Head { status, version, url, content_type, content_encoding, format } = head;
        let by =
            if url == self.outcome.target.url() { String::new() } else { format!(" by {url}") };
        let content_type = content_type.as_deref().unwrap_or("no Content-Type");
        writeln!(f, "# answer: {status} over {version}{by}")?;
        writeln!(f, "# format: {} ({content_type})", protocol(*format))?;
        let encoding = content_encoding.as_deref().unwrap_or("identity");
        let bytes = answer.body_bytes;
        writeln!(f, "# body: {bytes} bytes ({encoding}), {body_bytes} uncompressed, {took:.1?}")
    }

    fn family(&self, f: &mut fmt::Formatter<'_>, family: &FamilyMetadata) -> fmt::Result {
        let FamilyMetadata { family: name, kind, help, unit } = family;
        if self.with_metadata && !help.is_empty() {
            // Escaped as in the text formats.
            writeln!(f, "# HELP {name} {}", help.replace('\\', r"\\").replace('\n', r"\n"))?;
        }
        if *kind != MetricType::Unknown {
            writeln!(f, "# TYPE {name} {}", kind.as_str())?;
        }
        if self.with_metadata && !unit.is_empty() {
            writeln!(f, "# UNIT {name} {unit}")?;
        }
        Ok(())
    }

    fn refusals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusals = &self.outcome.refusals;
        if refusals.count == 0 {
            return Ok(());
        }
        writeln!(f, "\n# exposed, and not stored")?;
        for refusal in &refusals.list {
            writeln!(f, "# {}: {}", refusal.series, refusal.reason)?;
        }
        // `count` includes each refusal in the list, so this does not underflow.
        match refusals.count - refusals.list.len() as u64 {
            0 => Ok(()),
            more => writeln!(f, "# and {more} more"),
        }
    }
}

pub(super) fn protocol(format: Option<Format>) -> &'static str {
    match format {
        Some(Format::Prometheus) => "Prometheus text",
        Some(Format::Openmetrics) => "OpenMetrics",
        Some(Format::Protobuf) => "Prometheus protobuf",
        None => "unknown",
    }
}

fn line(f: &mut fmt::Formatter<'_>, sample: &Sample) -> fmt::Result {
    let Sample { labels, timestamp_ms, is_timed, value, exemplars } = sample;
    write!(f, "{} ", labels.series_text())?;
    match value {
        Value::Float(value) => f.write_str(&general(*value))?,
        Value::Histogram(histogram) => write_histogram(f, histogram)?,
    }
    if *is_timed {
        write!(f, " {timestamp_ms}")?;
    }
    for ExemplarRow { labels, value, timestamp_ms, .. } in exemplars {
        let (labels, value) = (exemplar_text(labels), general(*value));
        write!(f, " # {labels} {value} {}", *timestamp_ms as f64 / 1000.0)?;
    }
    writeln!(f)
}

fn exemplar_text(labels: &crate::labels::Labels) -> String {
    let text = series_text("x", labels.iter());
    let labels = text.strip_prefix('x').unwrap_or_default();
    if labels.is_empty() { "{}".to_owned() } else { labels.to_owned() }
}

fn write_histogram(f: &mut fmt::Formatter<'_>, histogram: &NativeHistogram) -> fmt::Result {
    let (count, zeros) = match &histogram.counts {
        Counts::Integer { count, zero_count, .. } => (*count as f64, *zero_count as f64),
        Counts::Float { count, zero_count, .. } => (*count, *zero_count),
    };
    let NativeHistogram { schema, zero_threshold, sum, custom_values, .. } = histogram;
    write!(f, "{{count:{}, sum:{}, schema:{schema}", general(count), general(*sum))?;
    if custom_values.is_empty() {
        let threshold = general(*zero_threshold);
        write!(f, ", zero_threshold:{threshold}, zero_count:{}", general(zeros))?;
    } else {
        let bounds = custom_values.iter().map(|bound| general(*bound));
        write!(f, ", bounds:[{}]", bounds.collect::<Vec<_>>().join(" "))?;
    }
    write!(f, ", buckets:{}}}", histogram.buckets())
}
