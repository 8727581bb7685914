//! Sources of samples: a target over HTTP, a probe, or a part of this process.

use crate::append::Appender;
use crate::error::ScrapeError;
use crate::series_text::Parts;
use std::future::Future;
use std::pin::Pin;
use tidepool_exposition::MetricType;

/// Future of one scrape of a source.
pub type Scraping<'a> = Pin<Box<dyn Future<Output = Result<(), ScrapeError>> + Send + 'a>>;

/// Source of samples, scraped once at a time. A scrape that exceeds its timeout is dropped.
pub trait Source: Send {
    /// Hands all samples to the appender, in the order of the exposition.
    fn scrape<'a>(&'a mut self, appender: &'a mut Appender) -> Scraping<'a>;

    /// Returns whether the first scrape starts at once. Otherwise it starts at the target's offset
    /// in the interval, which spreads the scrapes of many targets.
    fn begins_at_once(&self) -> bool {
        false
    }
}

/// Part of this process that provides the metrics of a job, instead of targets over HTTP.
pub trait Builtin: Send + Sync {
    /// Creates a source for one target of the job.
    fn source(&self) -> Box<dyn Source>;
}

/// Writes metric families of this process. A sample of a known series allocates nothing.
pub struct FamilyWriter<'a> {
    appender: &'a mut Appender,
    text: Vec<u8>,
}

impl<'a> FamilyWriter<'a> {
    /// Creates a writer for the current scrape.
    pub fn new(appender: &'a mut Appender) -> FamilyWriter<'a> {
        FamilyWriter { appender, text: Vec::new() }
    }

    pub fn family(&mut self, name: &str, kind: MetricType, help: &str) {
        self.appender.family_kind(name, kind);
        self.appender.family_help(name, help);
    }

    /// Writes a sample, whose labels must have different names.
    pub fn sample(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        value: f64,
    ) -> Result<(), ScrapeError> {
        let series = Parts::write(&mut self.text, name, labels.iter().copied());
        self.appender.sample(&series, None, value)
    }
}
