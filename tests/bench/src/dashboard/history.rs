//! Writes the series that panels show: hours of samples before the measurement, then each scrape
//! when it is due.

use super::super::BenchError;
use super::super::load::Load;
use super::super::queries::data::{self, INTERVAL_MS, Source};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Shape;

/// Number of series in a request.
const ROWS: usize = 1_000;
/// Number of connections to a server while it is filled.
const CONNECTIONS: usize = 2;
/// Pause between two looks whether a scrape is due.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// Number of scrapes after the stored hours: a day of them, longer than any run.
const SCRAPES_AFTER: usize = 5_760;

/// Writer of the history to one server.
pub struct History {
    source: Source,
    base_url: String,
    version: Version,
}

/// Returns the shape of some hours up to now and of the scrapes after; all servers get the same
/// samples.
pub fn shape(seed: u64, series: usize, hours: u32) -> Shape {
    let shape = data::shape(seed, series, hours);
    let late = (now_ms() - data::end_ms(&shape)) / INTERVAL_MS * INTERVAL_MS;
    Shape { start_ms: shape.start_ms + late, scrapes: shape.scrapes + SCRAPES_AFTER, ..shape }
}

/// Returns the end of the hours that every server has.
pub fn end_ms(shape: &Shape) -> i64 {
    data::end_ms(&Shape { scrapes: shape.scrapes - SCRAPES_AFTER, ..*shape })
}

impl History {
    /// Starts with nothing written yet.
    pub fn new(shape: Shape, base_url: &str, version: Version) -> History {
        History { source: Source::new(shape), base_url: base_url.to_string(), version }
    }

    /// Writes all scrapes that are due; returns the number of samples.
    pub fn catch_up(&mut self) -> Result<u64, BenchError> {
        let mut samples = 0;
        loop {
            let due = (now_ms() - self.source.next_end_ms()).div_euclid(INTERVAL_MS) + 1;
            let due = usize::try_from(due).unwrap_or(0);
            let Some(batch) = self.source.next_scrapes(due) else { return Ok(samples) };
            let load = Load::encode(batch, self.version, ROWS, CONNECTIONS);
            load.send(&self.base_url)?;
            samples += load.samples;
        }
    }

    /// Writes each scrape when it is due.
    pub fn follow(&mut self, is_over: &AtomicBool) -> Result<(), BenchError> {
        while !is_over.load(Relaxed) {
            self.catch_up()?;
            std::thread::sleep(LOOK_PAUSE);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_ends_now() {
        let before_ms = now_ms();
        let shape = shape(1, 100, 6);
        assert_eq!(end_ms(&shape) - shape.start_ms, 6 * 3_600_000);
        assert!((before_ms - INTERVAL_MS..=now_ms()).contains(&end_ms(&shape)));
    }
}
