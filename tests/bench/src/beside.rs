//! Latency of writes at a steady rate, first alone and then beside heavy reads.
//!
//! Sender, readers and server share the machine, so latencies are comparable only if both phases
//! reach the wanted rate, or else by their ratio. Readers read the whole history repeatedly, half
//! of them as SAMPLES.

use super::BenchError;
use super::load::{Load, Paced};
use super::trial::{IDLE_WINDOW, settle};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_tests::remote_read::{ReadError, Reader, everything};
use tidepool_tests::tidepool;

pub struct Beside<'a> {
    /// Load that is sent before the clock starts; readers read it.
    pub history: &'a Load,
    /// Load that is sent at a steady rate, half of it alone and half of it beside the reads.
    pub writes: &'a Load,
    /// Interval from one scrape to the next.
    pub scrape_every: Duration,
    /// Number of readers at the same time.
    pub readers: usize,
}

/// Figures of the writes in one phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Time from sending a request to its response, ascending.
    pub latencies: Vec<Duration>,
    pub samples_per_second: f64,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub quiet: Phase,
    pub beside: Phase,
    /// Number of answered reads, of both kinds.
    pub reads: u64,
    /// Total size of these answers.
    pub answer_bytes: u64,
}

/// Starts a server with these flags and measures both phases.
pub fn run(beside: &Beside<'_>, directory: &Path, flags: &[String]) -> Result<Outcome, BenchError> {
    let directory = tempfile::tempdir_in(directory)?;
    let config = tidepool::Config::new(directory.path());
    let server = flags.iter().fold(config, |config, flag| config.flag(flag)).start()?;
    let url = server.url();
    beside.history.send(&url)?;
    settle(&server, IDLE_WINDOW)?;

    let Beside { writes, scrape_every, .. } = *beside;
    let scrapes = writes.scrape_count();
    let phase = |range: std::ops::Range<usize>| -> Result<Phase, BenchError> {
        let share = range.len() as f64 / scrapes as f64;
        let start = Instant::now();
        let Paced { mut latencies } = writes.send_paced(&url, range, scrape_every)?;
        latencies.sort();
        let samples_per_second = writes.samples as f64 * share / start.elapsed().as_secs_f64();
        Ok(Phase { latencies, samples_per_second })
    };
    let quiet = phase(0..scrapes / 2)?;

    let (stop, reads, answer_bytes) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let (start_ms, end_ms) = beside.history.time_range_ms;
    let query = [everything(start_ms, end_ms)];
    let (measured, read) = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..beside.readers)
            .map(|number| {
                let (url, query, stop) = (&url, &query, &stop);
                let (reads, answer_bytes) = (&reads, &answer_bytes);
                scope.spawn(move || -> Result<(), ReadError> {
                    let reader = Reader::new(url);
                    while !stop.load(Relaxed) {
                        let bytes = match number % 2 {
                            0 => reader.drain_samples(query)?,
                            _ => reader.drain_streamed(query)?,
                        };
                        answer_bytes.fetch_add(bytes, Relaxed);
                        reads.fetch_add(1, Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        let measured = phase(scrapes / 2..scrapes);
        stop.store(true, Relaxed);
        let ended = readers.into_iter().map(|reader| match reader.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        (measured, ended.collect::<Result<(), ReadError>>())
    });
    let beside = measured?;
    read?;
    server.terminate()?;
    let (reads, answer_bytes) = (reads.into_inner(), answer_bytes.into_inner());
    Ok(Outcome { quiet, beside, reads, answer_bytes })
}

impl Phase {
    /// Returns the latency that at most this part of the requests stayed below.
    pub fn quantile(&self, part: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * part).round() as usize;
        self.latencies.get(at).copied().unwrap_or_default()
    }
}

/// Returns both phases as a markdown table, with the number and size of reads.
pub fn table(outcome: &Outcome) -> String {
    let mut text =
        "| writes | k samples/s | p50 ms | p99 ms | longest ms |\n| --- | --- | --- | --- | --- |\n"
            .to_string();
    for (name, phase) in [("alone", &outcome.quiet), ("beside reads", &outcome.beside)] {
        let ms = |part| phase.quantile(part).as_secs_f64() * 1e3;
        // Writing to a string does not fail, here and below.
        let _ = writeln!(
            text,
            "| {name} | {:.0} | {:.2} | {:.2} | {:.2} |",
            phase.samples_per_second / 1e3,
            ms(0.5),
            ms(0.99),
            ms(1.0)
        );
    }
    let megabytes = outcome.answer_bytes / 1_000_000;
    let _ = writeln!(text, "\n{} reads were answered, with {megabytes} MB", outcome.reads);
    text
}
