//! Metrics of this process: the text of `GET /metrics`.

use super::machine::feed;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidepool_scrape::append::Appender;
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::source::{Builtin, Scraping, Source};

type MetricsPage = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = String> + Send>> + Send + Sync>;

/// Metrics of this process. Clones share the page, a function that renders the metrics.
#[derive(Clone, Default)]
pub struct OwnMetrics(Arc<Mutex<Option<MetricsPage>>>);

impl OwnMetrics {
    /// Sets the page that renders the text.
    pub fn set<F>(&self, page: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = String> + Send + 'static,
    {
        *self.page() = Some(Arc::new(move || Box::pin(page())));
    }

    /// Returns whether the page is set; scraping starts only then.
    pub fn is_set(&self) -> bool {
        self.page().is_some()
    }

    /// Drops the page, and with it the store that the page references.
    pub fn clear(&self) {
        *self.page() = None;
    }

    fn page(&self) -> MutexGuard<'_, Option<MetricsPage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Builtin for OwnMetrics {
    fn source(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

impl Source for OwnMetrics {
    fn scrape<'a>(&'a mut self, appender: &'a mut Appender) -> Scraping<'a> {
        Box::pin(async move {
            // Cloned before the call, so that no lock is held while the page is rendered.
            let page = self.page().clone();
            let page = page.ok_or_else(|| ScrapeError::Request("the server stops".to_owned()))?;
            feed(&page().await, appender)
        })
    }

    fn begins_at_once(&self) -> bool {
        // There is one target only, so scrapes need not be spread over the interval.
        true
    }
}
