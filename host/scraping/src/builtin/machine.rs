//! Metrics of the machine. They are passed as text, so that files of the textfile collector and
//! figures of the kernel are handled like any other scrape. Parsing is a fifth of a round's time.

use super::text_files::TextFiles;
use std::sync::{Arc, Mutex, TryLockError};
use tidepool_exposition::Format;
use tidepool_node_metrics::{
    CollectError, Exposition, Kind, Label, NodeMetrics, Options, Sink, TextFile, TextFileOutcome,
};
use tidepool_scrape::append::{Appender, BodyReader, Histograms};
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::source::{Builtin, Scraping, Source};

/// Metrics of the machine that this process runs on, shared by all sources.
pub struct MachineMetrics {
    machine: Arc<Mutex<Machine>>,
}

struct Machine {
    metrics: NodeMetrics,
    round: Round,
}

/// Output of a round (one collection of all metrics), and state for the next round.
#[derive(Default)]
struct Round {
    exposition: Exposition,
    text_files: TextFiles,
}

struct MachineSource {
    machine: Arc<Mutex<Machine>>,
}

impl MachineMetrics {
    pub fn new(options: Options) -> MachineMetrics {
        let machine = Machine { metrics: NodeMetrics::new(options), round: Round::default() };
        MachineMetrics { machine: Arc::new(Mutex::new(machine)) }
    }
}

impl Builtin for MachineMetrics {
    fn source(&self) -> Box<dyn Source> {
        Box::new(MachineSource { machine: Arc::clone(&self.machine) })
    }
}

impl Source for MachineSource {
    fn scrape<'a>(&'a mut self, appender: &'a mut Appender) -> Scraping<'a> {
        Box::pin(async move {
            let machine = Arc::clone(&self.machine);
            // Another thread, because a file system may not answer. After the scrape's timeout that
            // thread may still run, and keeps the machine locked.
            let round = tokio::task::spawn_blocking(move || collect(&machine));
            let text = round.await.map_err(|error| ScrapeError::Request(error.to_string()))??;
            feed(&text, appender)
        })
    }

    fn begins_at_once(&self) -> bool {
        true
    }
}

fn collect(machine: &Mutex<Machine>) -> Result<String, ScrapeError> {
    let mut machine = match machine.try_lock() {
        Ok(machine) => machine,
        // A panic leaves no state that would disturb the next round.
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Waiting would block one more thread per round while a file system does not answer.
        Err(TryLockError::WouldBlock) => {
            let what = "an earlier round still waits for a file of this machine to be read";
            return Err(ScrapeError::Request(what.to_owned()));
        }
    };
    let Machine { metrics, round } = &mut *machine;
    round.text_files.begin();
    metrics.collect(round);
    Ok(round.exposition.take())
}

/// Parses a text and passes its samples to an appender.
pub(super) fn feed(text: &str, appender: &mut Appender) -> Result<(), ScrapeError> {
    appender.add_body_bytes(text.len() as u64);
    let mut reader = BodyReader::new(Format::Prometheus, Histograms::default());
    reader.feed(text.as_bytes(), appender)?;
    reader.end(appender)
}

impl Sink for Round {
    fn family(&mut self, name: &str, help: &str, kind: Kind) {
        self.exposition.family(name, help, kind);
    }

    fn sample(&mut self, labels: &[Label<'_>], value: f64) {
        self.exposition.sample(labels, value);
    }

    fn text_file(&mut self, file: &TextFile<'_>) -> TextFileOutcome {
        self.text_files.add(file, &mut self.exposition)
    }

    /// Logs at debug level only. Each round reports failures in `node_scrape_collector_success`,
    /// and most machines permanently lack some data.
    fn failed(&mut self, collector: &'static str, error: &CollectError) {
        tracing::debug!(collector, %error, "a collector of host metrics failed");
    }
}
