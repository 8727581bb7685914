//! `target_info`: the attributes of a resource, as a series that others can be joined with.

use super::labels::{IDENTIFYING, ResourceLabels, of_attributes};
use super::proto::common::v1::KeyValue;
use super::{Times, Translator};
use crate::prom::rows::{Family, Gone, LabelSet, MetricType, NAME, RowSink, RowValue};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

const TARGET_INFO: &str = "target_info";

/// Half of how far Prometheus looks back for a sample (five minutes), so that each query in the
/// time of the data points finds one.
const INTERVAL_NS: i64 = 150 * 1_000_000_000;

/// Most samples of a request but for the last of each resource: 17 days of one. A data point
/// without a time would ask for millions.
const STEPS_MAX: i64 = 10_000;

/// What a request has written of `target_info`.
pub struct Targets {
    /// Hash of the labels, and time: a request may name a resource many times.
    seen: HashSet<(u64, i64)>,
    steps_left: i64,
}

impl Default for Targets {
    fn default() -> Targets {
        Targets { seen: HashSet::new(), steps_left: STEPS_MAX }
    }
}

impl<S: RowSink> Translator<'_, S> {
    /// Writes a resource's samples: one at the first time, one at the last, and between them so
    /// many that none is missed.
    pub(super) fn target_info(
        &mut self,
        attributes: &[KeyValue],
        resource: &ResourceLabels,
        times: Times,
    ) -> Result<(), Gone> {
        let is_identifying = |key: &str| IDENTIFYING.contains(&key);
        if attributes.iter().all(|attribute| is_identifying(&attribute.key)) {
            return Ok(());
        }
        let keep = self.settings.keep_identifying;
        let is_left_out = |key: &str| !keep && is_identifying(key);
        let mut labels = match of_attributes(self.settings, attributes, is_left_out) {
            Ok(labels) => labels,
            Err(why) => {
                self.reject(0, TARGET_INFO, &why);
                return Ok(());
            }
        };
        resource.identify(&mut labels);
        if labels.get("job").is_empty() && labels.get("instance").is_empty() {
            return Ok(());
        }
        labels.set(NAME, TARGET_INFO);
        // Once, since the labels may be long and the samples many.
        let mut hasher = DefaultHasher::new();
        labels.hash(&mut hasher);
        let hash = hasher.finish();
        let (earliest, latest) = (times.earliest as i64, times.latest as i64);
        let span = latest.saturating_sub(earliest).max(0);
        let steps = span / INTERVAL_NS + i64::from(span % INTERVAL_NS != 0);
        let kept = steps.min(self.targets.steps_left);
        self.targets.steps_left -= kept;
        for step in steps - kept..steps {
            self.target_sample(hash, &labels, earliest.saturating_add(step * INTERVAL_NS))?;
        }
        self.target_sample(hash, &labels, latest)?;
        let help = "Target metadata";
        self.sink.family(Family { name: TARGET_INFO, kind: MetricType::Gauge, help, unit: "" })
    }

    fn target_sample(&mut self, hash: u64, labels: &LabelSet, nanos: i64) -> Result<(), Gone> {
        let timestamp_ms = nanos.div_euclid(1_000_000);
        match self.targets.seen.insert((hash, timestamp_ms)) {
            true => self.sink.row(labels, timestamp_ms, RowValue::Float(1.0), &[]),
            false => Ok(()),
        }
    }
}
