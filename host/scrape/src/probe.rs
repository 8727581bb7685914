//! A source that probes its target.

use crate::append::Appender;
use crate::source::{FamilyWriter, Scraping, Source};
use crate::target::{Target, names};
use std::sync::Arc;
use std::time::Duration;
use tidepool_exposition::MetricType;
use tidepool_probe::{Module, run};

/// Probes a target. A failed probe is a successful scrape, whose samples report the failure.
pub struct ProbeSource {
    module: Arc<Module>,
    /// Address of the target as configured: a URL, or host and port.
    target: String,
    timeout: Duration,
}

impl ProbeSource {
    pub fn new(module: Arc<Module>, target: &Target) -> ProbeSource {
        let address = target.labels().get(names::ADDRESS).cloned().unwrap_or_default();
        // Shorter than the scrape's timeout, so that a probe's timeout can still be reported.
        let timeout = module.timeout_within(target.timeout());
        ProbeSource { module, target: address, timeout }
    }
}

impl Source for ProbeSource {
    fn scrape<'a>(&'a mut self, appender: &'a mut Appender) -> Scraping<'a> {
        Box::pin(async move {
            let report = run(&self.module, &self.target, self.timeout).await;
            let mut writer = FamilyWriter::new(appender);
            for (family, values) in report.families() {
                writer.family(family.name, MetricType::Gauge, family.help);
                for (value_of_label, value) in values {
                    match family.label {
                        Some(label) => {
                            writer.sample(family.name, &[(label, value_of_label)], value)?;
                        }
                        None => writer.sample(family.name, &[], value)?,
                    }
                }
            }
            Ok(())
        })
    }
}
