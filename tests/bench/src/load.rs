//! A load of writes, encoded before the clock starts, and its senders.
//!
//! Its shape is that of a scraper: at every interval all series have one sample, divided into
//! requests of a fixed number of series; each series stays on one connection, so that its samples
//! arrive in order.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidepool_tests::histogram::generate::{HistogramShape, SentSeries, steady};
use tidepool_tests::histogram::wire::{self, SentRow};
use tidepool_tests::http::HttpError;
use tidepool_tests::remote_write::{Version, Writer, encode};
use tidepool_tests::series::{Dataset, Row, Series, Shape};

/// Largest lead of one connection over the others in scrapes: a server may refuse a sample that is
/// an hour older than its newest one.
const SCRAPES_AHEAD_MAX: usize = 16;
/// Pause before a refused request is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Number of refusals of a request that fails the run.
const RETRIES_MAX: u32 = 200;

/// Encoded requests for several connections.
pub struct Load {
    pub version: Version,
    /// Number of samples in all requests.
    pub samples: u64,
    /// Times of the first and last sample.
    pub time_range_ms: (i64, i64),
    /// Total size of all bodies.
    pub body_bytes: u64,
    /// Bodies by connection, then by scrape.
    bodies: Vec<Vec<Vec<Vec<u8>>>>,
}

/// Measurements of a part of a load that was sent at a steady rate.
pub struct Paced {
    /// Time from sending a request to its response.
    pub latencies: Vec<Duration>,
}

/// Reason why a load was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("the write got no answer")]
    Http(#[from] HttpError),
    /// The server refused the request, and a retry would not help.
    #[error("the write was answered with {status}: {body}")]
    Refused {
        status: u16,
        /// Body of the response as text.
        body: String,
    },
}

impl Load {
    /// Encodes a data set for some connections.
    pub fn encode(data: &Dataset, version: Version, rows_max: usize, connections: usize) -> Load {
        let requests = |rows: Vec<Row<'_>>| {
            rows.chunks(rows_max).map(|rows| encode(version, rows)).collect::<Vec<_>>()
        };
        Load::of_bodies(
            version,
            data.sample_count(),
            data.time_range_ms().unwrap_or_default(),
            connections,
            data.scrapes().map(requests),
        )
    }

    /// Encodes native histograms with some forty buckets each, for the series of a shape.
    pub fn encode_histograms(
        shape: Shape,
        version: Version,
        rows_max: usize,
        connections: usize,
    ) -> Load {
        let Shape { seed, series, scrapes, start_ms, interval_ms, .. } = shape;
        let labels = Dataset::generate(Shape { scrapes: 1, ..shape }).series;
        let shape = HistogramShape { seed, series, scrapes, start_ms, interval_ms };
        let steady = |(number, series): (usize, &Series)| steady(&series.labels, shape, number);
        let all: Vec<SentSeries> = labels.iter().enumerate().map(steady).collect();
        let request = |scrape: usize, all: &[SentSeries]| {
            let rows = all.iter().filter_map(|SentSeries { labels, values, .. }| {
                let (timestamp_ms, value) = values.get(scrape)?;
                Some(SentRow { labels, timestamp_ms: *timestamp_ms, value })
            });
            wire::encode(version, &rows.collect::<Vec<_>>())
        };
        let requests = |scrape| all.chunks(rows_max).map(|all| request(scrape, all)).collect();
        Load::of_bodies(
            version,
            (series * scrapes) as u64,
            (start_ms, start_ms + scrapes as i64 * interval_ms),
            connections,
            (0..scrapes).map(requests),
        )
    }

    /// Distributes the requests of each scrape over the connections in turn.
    fn of_bodies(
        version: Version,
        samples: u64,
        time_range_ms: (i64, i64),
        connections: usize,
        scrapes: impl Iterator<Item = Vec<Vec<u8>>>,
    ) -> Load {
        let mut bodies = vec![Vec::new(); connections];
        for scrape in scrapes {
            let mut requests = vec![Vec::new(); connections];
            for (number, body) in scrape.into_iter().enumerate() {
                requests[number % connections].push(body);
            }
            bodies.iter_mut().zip(requests).for_each(|(list, bodies)| list.push(bodies));
        }
        Load::of_connections(version, samples, time_range_ms, bodies)
    }

    /// Makes a load of bodies by connection, then by scrape.
    pub(super) fn of_connections(
        version: Version,
        samples: u64,
        time_range_ms: (i64, i64),
        bodies: Vec<Vec<Vec<Vec<u8>>>>,
    ) -> Load {
        let lengths = bodies.iter().flatten().flatten().map(|body| body.len() as u64);
        Load { version, samples, time_range_ms, body_bytes: lengths.sum(), bodies }
    }

    /// Returns the bodies by connection, then by scrape.
    #[cfg(test)]
    pub(super) fn bodies(&self) -> impl Iterator<Item = &Vec<Vec<Vec<u8>>>> {
        self.bodies.iter()
    }

    /// Sends everything; returns the number of repeated requests.
    pub fn send(&self, base_url: &str) -> Result<u64, SendError> {
        self.send_scrapes(base_url, 0..self.scrape_count())
    }

    /// Sends some scrapes; returns the number of repeated requests.
    pub fn send_scrapes(&self, base_url: &str, range: Range<usize>) -> Result<u64, SendError> {
        let barrier = Barrier::new(self.bodies.len());
        let retries = AtomicU64::new(0);
        let failure = Mutex::new(None);
        std::thread::scope(|scope| {
            for scrapes in &self.bodies {
                let (barrier, retries, failure) = (&barrier, &retries, &failure);
                let scrapes = scrapes.get(range.clone()).unwrap_or_default();
                scope.spawn(move || {
                    let writer = Writer::new(base_url);
                    let mut failed = false;
                    for scrapes in scrapes.chunks(SCRAPES_AHEAD_MAX) {
                        for body in scrapes.iter().flatten() {
                            // After a failure the thread only takes part in the barriers, for which
                            // the others wait.
                            let sent =
                                if failed { Ok(()) } else { self.post(&writer, body, retries) };
                            if let Err(error) = sent {
                                failed = true;
                                let mut first =
                                    failure.lock().unwrap_or_else(PoisonError::into_inner);
                                first.get_or_insert(error);
                            }
                        }
                        barrier.wait();
                    }
                });
            }
        });
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(retries.into_inner()),
        }
    }

    /// Returns the number of scrapes.
    pub fn scrape_count(&self) -> usize {
        self.bodies.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Sends some scrapes, each at its time or as soon as the one before was accepted.
    pub fn send_paced(
        &self,
        base_url: &str,
        scrapes: Range<usize>,
        every: Duration,
    ) -> Result<Paced, SendError> {
        self.send_at(base_url, scrapes, every, |_, _| Duration::ZERO)
    }

    /// Sends everything; the requests of a scrape are spread over the time up to the next one.
    pub fn send_evenly(&self, base_url: &str, every: Duration) -> Result<Paced, SendError> {
        let share = |index: usize, requests: usize| every * index as u32 / requests as u32;
        self.send_at(base_url, 0..self.scrape_count(), every, share)
    }

    /// Sends some scrapes, each request at its time or as soon as the one before was accepted.
    /// `after` gives the delay after the scrape's time from the request's index and the number of
    /// requests.
    fn send_at(
        &self,
        base_url: &str,
        scrapes: Range<usize>,
        every: Duration,
        after: impl Fn(usize, usize) -> Duration + Sync,
    ) -> Result<Paced, SendError> {
        let start = Instant::now();
        let retries = AtomicU64::new(0);
        let send = |bodies: &[Vec<Vec<u8>>]| -> Result<Vec<Duration>, SendError> {
            let writer = Writer::new(base_url);
            let mut latencies = Vec::new();
            for (number, scrape) in bodies.iter().enumerate() {
                for (index, body) in scrape.iter().enumerate() {
                    let due = start + every * number as u32 + after(index, scrape.len());
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let begun = Instant::now();
                    self.post(&writer, body, &retries)?;
                    latencies.push(begun.elapsed());
                }
            }
            Ok(latencies)
        };
        let sent = std::thread::scope(|scope| {
            let connections: Vec<_> = self
                .bodies
                .iter()
                .map(|bodies| {
                    let (send, scrapes) = (&send, scrapes.clone());
                    scope.spawn(move || send(bodies.get(scrapes).unwrap_or_default()))
                })
                .collect();
            let joined = connections.into_iter().map(|connection| match connection.join() {
                Ok(sent) => sent,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect::<Result<Vec<_>, _>>()
        })?;
        Ok(Paced { latencies: sent.into_iter().flatten().collect() })
    }

    fn post(&self, writer: &Writer, body: &[u8], retries: &AtomicU64) -> Result<(), SendError> {
        for attempt in 0.. {
            let response = writer.send_body(self.version, body)?;
            if response.is_success() {
                break;
            }
            if !matches!(response.status, 429 | 503) || attempt == RETRIES_MAX {
                let (status, body) = (response.status, response.text());
                return Err(SendError::Refused { status, body });
            }
            retries.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(RETRY_PAUSE);
        }
        Ok(())
    }
}
