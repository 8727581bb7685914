//! Prints the cost of a round: CPU time of all threads, and the number of samples. The goal is 1
//! ms. `cargo run --release --example cost [ROUNDS]`.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use tidepool_node_metrics::{
    CollectError, Kind, Label, NodeMetrics, Options, Sink, TextFile, TextFileOutcome,
};

const ROUNDS_DEFAULT: u32 = 1000;

#[derive(Default)]
struct Counting {
    families: usize,
    samples: usize,
    durations: Vec<(String, f64)>,
    is_duration: bool,
}

impl Sink for Counting {
    fn family(&mut self, name: &str, _help: &str, _kind: Kind) {
        self.families += 1;
        self.is_duration = name == "node_scrape_collector_duration_seconds";
    }

    fn sample(&mut self, labels: &[Label<'_>], value: f64) {
        self.samples += 1;
        if self.is_duration {
            self.durations.extend(labels.iter().map(|(_, name)| ((*name).to_owned(), value)));
        }
    }

    fn text_file(&mut self, _file: &TextFile<'_>) -> TextFileOutcome {
        TextFileOutcome::Taken
    }

    fn failed(&mut self, _collector: &'static str, _error: &CollectError) {}
}

/// Returns the CPU time of this process, user and system, of all threads.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS_DEFAULT);
    let mut metrics = NodeMetrics::new(Options::default());
    // Not measured, because the first round starts the thread for mounts and grows buffers.
    metrics.collect(&mut Counting::default());
    let (cpu_begin, begin) = (cpu_time(), Instant::now());
    let mut last = Counting::default();
    for _ in 0..rounds {
        last = Counting::default();
        metrics.collect(&mut last);
    }
    let cpu = (cpu_time() - cpu_begin) / rounds;
    let elapsed = begin.elapsed() / rounds;
    println!("{} families, {} samples a round", last.families, last.samples);
    println!("{cpu:?} CPU time and {elapsed:?} a round, of {rounds}");
    last.durations.sort_by(|one, other| other.1.total_cmp(&one.1));
    for (collector, seconds) in &last.durations {
        println!("{:>8.1} µs  {collector}", seconds * 1e6);
    }
}
