//! One server on a directory of its own, and the cost of each request to it.

use super::contender::Contender;
use super::load::Load;
use super::{BenchError, Context};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidepool_tests::data_dir;
use tidepool_tests::process::{Launch, ProcessError, READY_TIMEOUT, Server, Usage, UsageError};
use tidepool_tests::proto::prometheus::Query;
use tidepool_tests::remote_read::{ReadError, Reader};

/// Time for which a server must be idle.
pub const IDLE_WINDOW: Duration = Duration::from_millis(500);
/// Largest CPU use of an idle server in one window.
const IDLE_CPU_MAX: Duration = Duration::from_millis(20);
/// Timeout for a server to be idle; it is measured then nevertheless.
const SETTLE_MAX: Duration = Duration::from_secs(120);
/// Pauses between two looks whether a server is ready: short where milliseconds count, longer where
/// a start takes minutes and the requests would cost the server CPU.
const READY_PAUSE: Duration = Duration::from_millis(1);
const READY_PAUSE_LONG: Duration = Duration::from_millis(50);

pub struct Trial {
    pub contender: Contender,
    /// The process; dropped before its directory.
    pub server: Server,
    launch: Launch,
    directory: TempDir,
    idle_window: Duration,
    held_back: Duration,
}

/// CPU time of the server, and wall time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// CPU of the server, until it was idle.
    pub cpu: Duration,
    /// Time from the request to the last byte of the answer.
    pub wall: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct StartCost {
    /// Cost from the start of the process until it says that it is ready.
    pub cost: Cost,
    /// Peak of resident memory up to then.
    pub peak_memory_bytes: u64,
}

/// Cost of a load of writes.
#[derive(Clone, Copy, Debug)]
pub struct WriteCost {
    pub samples: u64,
    /// Cost of all writes, until the server was idle.
    pub cost: Cost,
    /// Peak of resident memory up to then.
    pub peak_memory_bytes: u64,
    /// Bytes written to storage up to then.
    pub written_bytes: u64,
    /// Bytes in the data directory after that.
    pub kept_bytes: u64,
    /// Number of requests that had to be repeated.
    pub retries: u64,
}

/// Cost of one kind of read.
#[derive(Clone, Copy, Debug)]
pub struct ReadCost {
    /// Mean cost of one read.
    pub cost: Cost,
    /// Peak of resident memory over the memory before the read.
    pub extra_memory_bytes: u64,
    /// Size of the answer's body in bytes.
    pub answer_bytes: u64,
}

/// Kind of a read's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Streamed,
    Sampled,
}

impl Answer {
    pub const ALL: [Answer; 2] = [Answer::Streamed, Answer::Sampled];
}

impl Cost {
    /// Returns CPU seconds per million samples.
    pub fn cpu_s_per_million(self, samples: u64) -> f64 {
        self.cpu.as_secs_f64() / (samples as f64 / 1e6)
    }

    /// Returns wall seconds per million samples.
    pub fn wall_s_per_million(self, samples: u64) -> f64 {
        self.wall.as_secs_f64() / (samples as f64 / 1e6)
    }
}

impl WriteCost {
    /// Returns a number of bytes per sample.
    pub fn per_sample(&self, bytes: u64) -> f64 {
        bytes as f64 / self.samples as f64
    }
}

impl Trial {
    /// Starts a server on a fresh directory whose `data` is filled by `prepare`.
    pub fn start_on(
        context: &Context,
        contender: Contender,
        flags: &[String],
        prepare: impl FnOnce(&Path) -> Result<(), BenchError>,
        timeout: Duration,
    ) -> Result<(Trial, StartCost), BenchError> {
        let directory = tempfile::tempdir_in(&context.directory)?;
        prepare(&directory.path().join("data"))?;
        let mut all = flags.to_vec();
        if contender == Contender::Tidepool {
            all.extend(context.tidepool_flags.iter().cloned());
        }
        let launch = contender.launch(directory.path(), &all)?;
        let (server, cost) = started(&launch, timeout)?;
        let idle_window = context.idle_window;
        let held_back = if context.quick { Duration::ZERO } else { contender.held_back() };
        Ok((Trial { contender, server, launch, directory, idle_window, held_back }, cost))
    }

    /// Starts a server on an empty directory.
    pub fn start(context: &Context, contender: Contender) -> Result<Trial, BenchError> {
        let (trial, _) = Trial::start_on(context, contender, &[], |_| Ok(()), READY_TIMEOUT)?;
        Ok(trial)
    }

    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Ends the server by a function such as [`Server::kill`] and restarts it.
    pub fn restart<T>(
        self,
        end: impl FnOnce(Server) -> Result<T, ProcessError>,
    ) -> Result<(Trial, StartCost), BenchError> {
        let Trial { server, launch, .. } = self;
        end(server)?;
        let (server, cost) = started(&launch, READY_TIMEOUT)?;
        Ok((Trial { server, launch, ..self }, cost))
    }

    /// Waits until the server is idle and reads its usage.
    pub fn settle(&self) -> Result<Usage, UsageError> {
        settle(&self.server, self.idle_window)
    }

    pub fn write(&self, load: &Load) -> Result<WriteCost, BenchError> {
        self.write_scrapes(load, 0..load.scrape_count())
    }

    /// Sends some scrapes of a load, each of which has every series.
    pub fn write_scrapes(
        &self,
        load: &Load,
        scrapes: Range<usize>,
    ) -> Result<WriteCost, BenchError> {
        let part = scrapes.len() as f64 / load.scrape_count().max(1) as f64;
        let before = self.server.usage()?;
        let start = Instant::now();
        let retries = load.send_scrapes(&self.server.url(), scrapes)?;
        let wall = start.elapsed();
        std::thread::sleep(self.held_back);
        let after = self.settle()?;
        Ok(WriteCost {
            samples: (load.samples as f64 * part).round() as u64,
            cost: Cost { cpu: after.cpu - before.cpu, wall },
            peak_memory_bytes: after.peak_memory_bytes,
            written_bytes: after.written_bytes - before.written_bytes,
            kept_bytes: data_dir::total_bytes(&self.data_dir()),
            retries,
        })
    }

    /// Reads this number of times; returns the mean cost of a read and the largest memory of any.
    pub fn read(&self, answer: Answer, query: &Query, times: u32) -> Result<ReadCost, BenchError> {
        let reader = Reader::new(&self.server.url());
        let queries = std::slice::from_ref(query);
        let read = || -> Result<u64, ReadError> {
            match answer {
                Answer::Streamed => reader.drain_streamed(queries),
                Answer::Sampled => reader.drain_samples(queries),
            }
        };
        self.settle()?;
        self.server.reset_peak_memory()?;
        let before = self.server.usage()?;
        let start = Instant::now();
        let mut answer_bytes = 0;
        for _ in 0..times {
            answer_bytes = read()?;
        }
        let wall = start.elapsed();
        let after = self.settle()?;
        Ok(ReadCost {
            cost: Cost { cpu: (after.cpu - before.cpu) / times, wall: wall / times },
            extra_memory_bytes: after.peak_memory_bytes.saturating_sub(before.memory_bytes),
            answer_bytes,
        })
    }

    /// Returns an error unless the server has all samples of a load.
    pub fn check(&self, load: &Load) -> Result<(), BenchError> {
        self.contender.check(&self.server, load.time_range_ms, load.samples)
    }
}

/// Waits until the server is idle and reads its usage.
pub fn settle(server: &Server, window: Duration) -> Result<Usage, UsageError> {
    let start = Instant::now();
    let mut before = server.usage()?;
    loop {
        std::thread::sleep(window);
        let now = server.usage()?;
        if now.cpu - before.cpu < IDLE_CPU_MAX || start.elapsed() > SETTLE_MAX {
            return Ok(now);
        }
        before = now;
    }
}

fn started(launch: &Launch, timeout: Duration) -> Result<(Server, StartCost), BenchError> {
    let start = Instant::now();
    let mut server = launch.spawn()?;
    let pause = if timeout > READY_TIMEOUT { READY_PAUSE_LONG } else { READY_PAUSE };
    server.wait_ready_within(launch.ready_path, timeout, pause)?;
    let wall = start.elapsed();
    let usage = server.usage()?;
    let cost = Cost { cpu: usage.cpu, wall };
    Ok((server, StartCost { cost, peak_memory_bytes: usage.peak_memory_bytes }))
}
