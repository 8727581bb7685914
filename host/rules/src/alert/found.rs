//! What an evaluation finds: label sets with values and annotations.

use crate::alert::AlertingRule;
use crate::engine::{Engine, Origin, Queries, Sample, Value};
use crate::error::RuleError;
use crate::file::Labels;
use crate::labels::{ALERT_NAME, LabelSet, METRIC_NAME};
use crate::template::{Allowance, Data, Limits, SampleValue};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// A label set that the expression has at a time.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub annotations: Arc<Labels>,
    pub value: f64,
}

#[derive(Debug, Default)]
pub(crate) struct FoundAlerts {
    pub alerts: BTreeMap<LabelSet, Found>,
    /// Texts that did not expand.
    pub template_failures: usize,
}

/// Bounds of labels and annotations, and of the time that they take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Of each text.
    pub text: Limits,
    /// Of all texts of a rule, in one evaluation.
    pub texts: Limits,
    pub timeout: Duration,
}

impl AlertingRule {
    /// Expands labels and annotations of the samples that the expression has.
    pub(crate) fn find<E: Engine + ?Sized>(
        &self,
        samples: Vec<Sample<E::Histogram>>,
        slot_ms: i64,
        engine: &E,
        origin: Origin<'_>,
        bounds: &Bounds,
    ) -> Result<FoundAlerts, RuleError> {
        let until = engine.now().monotonic.saturating_add(bounds.timeout);
        let source = Queries { engine, origin, time_ms: slot_ms, until };
        let Limits { steps_max, output_bytes_max: bytes_max } = bounds.texts;
        let allowance = Allowance::new(steps_max);
        let mut found = FoundAlerts::default();
        let (alerts, mut bytes) = (samples.len(), 0usize);
        for sample in samples {
            if engine.is_stopping() {
                return Err(RuleError::Stopped);
            }
            let data = self.data(&sample);
            let mut expand = |text: &super::text::Text| {
                let failures = &mut found.template_failures;
                let text = text.expand(&data, &source, &bounds.text, &allowance, failures);
                bytes = bytes.saturating_add(text.len());
                text
            };
            let own: Vec<(&str, String)> =
                self.label_texts.iter().map(|(name, text)| (&**name, expand(text))).collect();
            let annotations: Labels = self
                .annotation_texts
                .iter()
                .map(|(name, text)| (name.clone(), expand(text)))
                .collect();
            if bytes > bytes_max || allowance.is_used_up() {
                return Err(RuleError::Templates { alerts, bytes_max });
            }
            if engine.now().monotonic > until {
                return Err(RuleError::Timeout(bounds.timeout));
            }
            let own = own.iter().map(|(name, text)| (*name, text.as_str()));
            let name = [(METRIC_NAME, ""), (ALERT_NAME, self.name.as_str())];
            let labels = sample.labels.with(own.chain(name));
            let value = match sample.value {
                Value::Float(value) => value,
                Value::Histogram(_) => 0.0,
            };
            let annotations = Arc::new(annotations);
            if found.alerts.insert(labels, Found { annotations, value }).is_some() {
                return Err(RuleError::SameAlertLabels);
            }
        }
        Ok(found)
    }

    fn data<H: Display>(&self, sample: &Sample<H>) -> Data {
        // Templates are all that looks at them.
        let value = if self.has_templates { sample.value.shown() } else { SampleValue::Float(0.0) };
        Data {
            labels: if self.has_templates { sample.labels.to_map() } else { Labels::new() }.into(),
            external_labels: self.external_labels.clone(),
            external_url: self.external_url.to_string(),
            value,
        }
    }
}
