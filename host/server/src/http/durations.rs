//! Durations of requests, from the head to the last byte of the response, as in Prometheus.

use hyper::StatusCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tidepool_telemetry::{HistogramValue, MetricsText};

/// Upper bounds in seconds: Prometheus' bounds, and shorter bounds for quick requests.
const BOUNDS: [f64; 12] = [0.001, 0.005, 0.025, 0.1, 0.2, 0.4, 1.0, 3.0, 8.0, 20.0, 60.0, 120.0];

/// Histograms by handler and status. Only a few statuses are in use.
pub struct Durations(Vec<OfHandler>);

struct OfHandler {
    name: String,
    by_status: Mutex<Vec<(StatusCode, Histogram)>>,
}

#[derive(Clone, Copy, Default)]
struct Histogram {
    counts: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

impl Durations {
    /// Creates histograms for handlers with these names; the index is the handler's number.
    pub fn of(names: impl Iterator<Item = String>) -> Durations {
        Durations(names.map(|name| OfHandler { name, by_status: Mutex::default() }).collect())
    }

    /// Records the duration of a request.
    pub fn add(&self, handler: usize, status: StatusCode, took: Duration) {
        let Some(OfHandler { by_status, .. }) = self.0.get(handler) else { return };
        let mut of_handler = by_status.lock().unwrap_or_else(PoisonError::into_inner);
        // A linear search is enough: a handler has a handful of statuses.
        let at = of_handler.iter().position(|(known, _)| *known == status);
        let at = at.unwrap_or_else(|| {
            of_handler.push((status, Histogram::default()));
            of_handler.len() - 1
        });
        let (_, histogram) = &mut of_handler[at];
        let seconds = took.as_secs_f64();
        if let Some(bucket) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            histogram.counts[bucket] += 1;
        }
        histogram.count += 1;
        histogram.seconds += seconds;
    }

    /// Writes the histograms that have observations.
    pub fn show(&self, text: &mut MetricsText) {
        let mut shown = Vec::new();
        for OfHandler { name, by_status } in &self.0 {
            // Copied, so that requests do not wait while text is formatted.
            let by_status = by_status.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for (status, histogram) in by_status {
                let code = status.as_str();
                shown.push((format!("handler=\"{name}\",code=\"{code}\""), histogram));
            }
        }
        let values: Vec<HistogramValue<'_>> = shown
            .iter()
            .map(|(labels, histogram)| {
                let mut below = 0;
                let buckets = BOUNDS.iter().zip(histogram.counts).map(|(bound, count)| {
                    below += count;
                    (*bound, below)
                });
                (labels.as_str(), buckets.collect(), histogram.count, histogram.seconds)
            })
            .collect();
        text.histograms(
            "prometheus_http_request_duration_seconds",
            "Histogram of latencies for HTTP requests, by handler and status code.",
            &values,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_handler_and_status_has_its_histogram() {
        let names = ["/api/v1/write", "/api/v1/label/:name/values", "other"];
        let durations = Durations::of(names.map(str::to_owned).into_iter());
        for (handler, status, ms) in [
            (0, StatusCode::NO_CONTENT, 2),
            (0, StatusCode::NO_CONTENT, 300_000),
            (0, StatusCode::BAD_REQUEST, 1),
            (1, StatusCode::OK, 100),
            (2, StatusCode::NOT_FOUND, 0),
        ] {
            durations.add(handler, status, Duration::from_millis(ms));
        }
        let mut text = MetricsText::default();
        durations.show(&mut text);
        let text = text.finish();
        for line in [
            "_bucket{handler=\"/api/v1/write\",code=\"204\",le=\"0.001\"} 0",
            "_bucket{handler=\"/api/v1/write\",code=\"204\",le=\"0.005\"} 1",
            "_bucket{handler=\"/api/v1/write\",code=\"204\",le=\"120\"} 1",
            "_bucket{handler=\"/api/v1/write\",code=\"204\",le=\"+Inf\"} 2",
            "_sum{handler=\"/api/v1/write\",code=\"204\"} 300.002",
            "_bucket{handler=\"/api/v1/write\",code=\"400\",le=\"0.001\"} 1",
            "_bucket{handler=\"/api/v1/label/:name/values\",code=\"200\",le=\"0.1\"} 1",
            "_count{handler=\"other\",code=\"404\"} 1",
        ] {
            let line = format!("prometheus_http_request_duration_seconds{line}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
