//! Metrics of `/metrics`, each summed over its labels.

use std::error::Error;
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;

/// A response of `/metrics` at one moment.
pub struct Page(String);

impl Page {
    pub fn of(server: &Server) -> Result<Page, Box<dyn Error>> {
        let answer = Client::default().get(&format!("{}/metrics", server.url()))?;
        Ok(Page(answer.text()))
    }

    /// Returns the sum of a metric over its labels; `None` if there is no metric of this name.
    pub fn sum(&self, name: &str) -> Option<f64> {
        let values = self.0.lines().filter_map(|line| {
            let (key, value) = line.rsplit_once(' ')?;
            let is_it = key.split('{').next() == Some(name);
            is_it.then(|| value.parse::<f64>().ok()).flatten()
        });
        values.reduce(|sum, value| sum + value)
    }
}
