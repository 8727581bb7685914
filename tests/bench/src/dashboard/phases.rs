//! Writes at an even rate, alternately alone and beside the viewers.

use super::super::BenchError;
use super::super::load::{Load, SendError};
use super::viewer::{Refreshes, Viewer};
use std::time::{Duration, Instant};
use tidepool_tests::clock::now_ms;
use tidepool_tests::latency::Latencies;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Dataset, Shape, Texture};

/// Number of series in a request.
const ROWS: usize = 2_000;
/// Number of connections that write.
const CONNECTIONS: usize = 2;
/// Interval between two samples of a series.
const INTERVAL_MS: i64 = 1_000;

/// Writes beside the series that panels show: a sample of each series every second.
pub struct Writes {
    shape: Shape,
    version: Version,
    next_ms: i64,
}

#[derive(Clone, Debug)]
pub struct Phase {
    /// Latency of each write, from sending its request.
    pub writes: Latencies,
    pub samples: u64,
    pub wall: Duration,
    pub cpu: Duration,
    /// Refreshes of the viewers; empty if there were none.
    pub refreshes: Refreshes,
}

impl Writes {
    /// Prepares writes of this number of samples a second.
    pub fn new(seed: u64, per_second: usize, version: Version) -> Writes {
        let shape = Shape {
            seed,
            series: per_second.max(CONNECTIONS),
            scrapes: 1,
            start_ms: 0,
            interval_ms: INTERVAL_MS,
            texture: Texture::Regular,
        };
        Writes { shape, version, next_ms: now_ms() }
    }

    /// Creates the series in a server.
    pub fn begin(&mut self, server: &Server) -> Result<(), BenchError> {
        self.seconds(1).send(&server.url())?;
        Ok(())
    }

    /// Returns the load of the next seconds, encoded before the clock starts.
    fn seconds(&mut self, seconds: usize) -> Load {
        let start_ms = self.next_ms.max(now_ms());
        self.next_ms = start_ms + seconds as i64 * INTERVAL_MS;
        let shape = Shape { scrapes: seconds, start_ms, ..self.shape };
        // With small rates, each connection still gets a request.
        let rows = ROWS.min(self.shape.series.div_ceil(CONNECTIONS));
        Load::encode(&Dataset::generate(shape), self.version, rows, CONNECTIONS)
    }

    /// Writes for some seconds, beside these viewers.
    pub fn phase(
        &mut self,
        server: &Server,
        seconds: usize,
        viewers: &[Viewer],
        every: Duration,
    ) -> Result<Phase, BenchError> {
        let load = self.seconds(seconds);
        let url = server.url();
        let (before, start) = (server.usage()?, Instant::now());
        let end = start + Duration::from_secs(seconds as u64);
        let (sent, refreshes) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| -> Result<_, SendError> {
                let paced = load.send_evenly(&url, Duration::from_millis(INTERVAL_MS as u64))?;
                // The last request is sent before the end of its interval.
                std::thread::sleep(end.saturating_duration_since(Instant::now()));
                Ok((paced, start.elapsed()))
            });
            let watched: Vec<_> = (0..)
                .zip(viewers)
                .map(|(number, viewer)| {
                    let first = start + every * number / viewers.len() as u32;
                    scope.spawn(move || viewer.watch(first, every, end))
                })
                .collect();
            let mut all = Refreshes::default();
            watched.into_iter().for_each(|viewer| all.extend(joined(viewer)));
            (joined(writer), all)
        });
        let (paced, wall) = sent?;
        let cpu = server.usage()?.cpu.saturating_sub(before.cpu);
        let writes = Latencies::new(paced.latencies);
        Ok(Phase { writes, samples: load.samples, wall, cpu, refreshes })
    }
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
