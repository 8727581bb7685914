//! Where samples come from: a target that is asked over HTTP, or a part of this process.

use crate::append::{Appender, Series};
use crate::error::ScrapeError;
use std::future::Future;
use std::pin::Pin;
use tidepool_exposition::MetricType;

/// The result of a scrape of a source.
pub type Scraping<'a> = Pin<Box<dyn Future<Output = Result<(), ScrapeError>> + Send + 'a>>;

/// Something that is scraped. One scrape at a time; one whose time is over is dropped.
pub trait Source: Send {
    /// Hands all that it has to the appender, in the order of the exposition.
    fn scrape<'a>(&'a mut self, appender: &'a mut Appender) -> Scraping<'a>;
}

/// A part of this process whose metrics a job has instead of targets' over HTTP.
pub trait Builtin: Send + Sync {
    /// A source for one target of the job.
    fn source(&self) -> Box<dyn Source>;
}

/// Writes families as a part of this process has them. In the steady state a sample allocates
/// nothing.
pub struct FamilyWriter<'a> {
    appender: &'a mut Appender,
    text: Vec<u8>,
}

impl<'a> FamilyWriter<'a> {
    /// A writer to the scrape under way.
    pub fn new(appender: &'a mut Appender) -> FamilyWriter<'a> {
        FamilyWriter { appender, text: Vec::new() }
    }

    /// Begins a family.
    pub fn family(&mut self, name: &str, kind: MetricType, help: &str) {
        self.appender.family_kind(name, kind);
        self.appender.family_help(name, help);
    }

    /// Writes a sample, whose labels have no name twice.
    pub fn sample(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        value: f64,
    ) -> Result<(), ScrapeError> {
        self.text.clear();
        self.text.extend_from_slice(name.as_bytes());
        for text in labels.iter().flat_map(|(name, value)| [name, value]) {
            // In no text, so different labels are different keys.
            self.text.push(0xff);
            self.text.extend_from_slice(text.as_bytes());
        }
        let series = Parts { text: &self.text, name, labels };
        self.appender.sample(&series, None, value)
    }
}

struct Parts<'a> {
    text: &'a [u8],
    name: &'a str,
    labels: &'a [(&'a str, &'a str)],
}

impl Series for Parts<'_> {
    fn text(&self) -> &[u8] {
        self.text
    }

    fn labels(&self) -> Result<Vec<(String, String)>, ScrapeError> {
        let name = [(crate::labels::METRIC_NAME, self.name)];
        let pairs = self.labels.iter().copied().chain(name);
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}
