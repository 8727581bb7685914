//! This process' own metrics: what `GET /metrics` answers.

use super::machine::feed;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidepool_scrape::append::Appender;
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::source::{Builtin, Scraping, Source};

/// Returns the text of `GET /metrics`.
type MetricsPage = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = String> + Send>> + Send + Sync>;

/// The metrics of this process; clones share the page that they come from.
#[derive(Clone, Default)]
pub struct OwnMetrics(Arc<Mutex<Option<MetricsPage>>>);

impl OwnMetrics {
    /// Says where the text comes from.
    pub fn set<F>(&self, page: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = String> + Send + 'static,
    {
        *self.page() = Some(Arc::new(move || Box::pin(page())));
    }

    /// Whether it was said where the text comes from.
    pub fn is_set(&self) -> bool {
        self.page().is_some()
    }

    /// Drops where the text comes from, and what that holds.
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
            let page = self.page().clone();
            let page = page.ok_or_else(|| ScrapeError::Request("the server stops".to_owned()))?;
            feed(&page().await, appender)
        })
    }

    fn begins_at_once(&self) -> bool {
        true
    }
}
