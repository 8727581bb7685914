//! `target_info`: a series with the attributes of a resource, for joins with other series.

use super::labels::{IDENTIFYING, ResourceLabels, of_attributes};
use super::proto::common::v1::KeyValue;
use super::{Translator, millis};
use crate::prom::points::RowsOf;
use crate::prom::rows::{Family, LabelSet, MetricType, NAME, ReceiverClosed, RowSink, RowValue};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

const TARGET_INFO: &str = "target_info";

/// Distance of samples: half of Prometheus' lookback of five minutes, so that each query between
/// the first and the last data point finds a sample.
const INTERVAL_MS: usize = 150_000;

/// Between data points further apart, no samples are written. Upstream writes them at any distance,
/// even next to a point with a wrong time, although the store refuses such samples.
const GAP_MS_MAX: i64 = 600_000;

/// Maximum number of samples per request, besides each resource's last: 17 days of one resource.
const SAMPLES_MAX: usize = 10_000;

/// Times of a resource's data points in milliseconds; only the latest `SAMPLES_MAX` are kept.
#[derive(Debug, Default)]
pub struct Times(BTreeSet<i64>);

/// Samples of `target_info` that a request has written.
pub struct Targets {
    /// Hash of the labels, and time of each sample: a request may repeat a resource.
    seen: HashSet<(u64, i64)>,
    samples_left: usize,
}

impl Default for Targets {
    fn default() -> Targets {
        Targets { seen: HashSet::new(), samples_left: SAMPLES_MAX }
    }
}

impl Times {
    /// Adds the time of a data point that was translated.
    pub fn add(&mut self, nanos: u64) {
        self.0.insert(millis(nanos));
        // Bounded, since a request may have any number of different times.
        if self.0.len() > SAMPLES_MAX {
            self.0.pop_first();
        }
    }

    fn of_samples(&self) -> Vec<i64> {
        let mut samples = Vec::new();
        let mut times = self.0.iter().copied().peekable();
        while let Some(first) = times.next() {
            let mut last = first;
            while let Some(next) = times.next_if(|next| next.saturating_sub(last) <= GAP_MS_MAX) {
                last = next;
            }
            samples.extend((first..last).step_by(INTERVAL_MS));
            samples.push(last);
        }
        samples
    }
}

impl<S: RowSink> Translator<'_, S> {
    /// Writes a resource's samples. A run of close data points gets samples at its first and last
    /// time, and between them at the distance at which no query misses a sample.
    pub(super) fn target_info(
        &mut self,
        attributes: &[KeyValue],
        resource: &ResourceLabels,
        times: &Times,
    ) -> Result<(), ReceiverClosed> {
        if times.0.is_empty() {
            return Ok(());
        }
        let is_identifying = |key: &str| IDENTIFYING.contains(&key);
        // Without further attributes, the series would carry no information.
        if attributes.iter().all(|attribute| is_identifying(&attribute.key)) {
            return Ok(());
        }
        let keep = self.settings.keep_identifying;
        let is_left_out = |key: &str| !keep && is_identifying(key);
        let mut labels = match of_attributes(self.settings, attributes, is_left_out) {
            Ok(labels) => labels,
            Err(why) => {
                // The data points are stored; only the reason is reported.
                self.reject(0, TARGET_INFO, &why);
                return Ok(());
            }
        };
        resource.identify(&mut labels);
        // Without job and instance, other series cannot be joined with this one.
        if labels.get("job").is_empty() && labels.get("instance").is_empty() {
            return Ok(());
        }
        labels.set(NAME, TARGET_INFO);
        // Hashed once, because the labels may be long and the samples many.
        let mut hasher = DefaultHasher::new();
        labels.hash(&mut hasher);
        let hash = hasher.finish();
        let samples = times.of_samples();
        // The last sample is free, so that each resource gets at least one.
        let kept = samples.len().min(self.targets.samples_left.saturating_add(1));
        self.targets.samples_left -= kept.saturating_sub(1);
        self.sink.begin(RowsOf::Nothing);
        for timestamp_ms in samples.iter().skip(samples.len() - kept) {
            self.target_sample(hash, &labels, *timestamp_ms)?;
        }
        let help = "Target metadata";
        self.sink.family(Family { name: TARGET_INFO, kind: MetricType::Gauge, help, unit: "" })
    }

    fn target_sample(
        &mut self,
        hash: u64,
        labels: &LabelSet,
        timestamp_ms: i64,
    ) -> Result<(), ReceiverClosed> {
        match self.targets.seen.insert((hash, timestamp_ms)) {
            true => self.sink.row(labels, timestamp_ms, RowValue::Float(1.0), &[]),
            false => Ok(()),
        }
    }
}
