//! Metrics of the machine. They pass as text, so that files of the textfile collector and figures
//! of the kernel take the path of every other scrape; the parser takes a fifth of a round's time.

use super::text_files::TextFiles;
use std::sync::{Arc, Mutex, TryLockError};
use tidepool_exposition::Format;
use tidepool_node_metrics::{
    CollectError, Exposition, Kind, Label, NodeMetrics, Options, Sink, TextFile, TextFileOutcome,
};
use tidepool_scrape::append::{Appender, BodyReader, Histograms};
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::source::{Builtin, Scraping, Source};

/// Metrics of the machine that this process runs on; all sources share them.
pub struct MachineMetrics {
    machine: Arc<Mutex<Machine>>,
}

struct Machine {
    metrics: NodeMetrics,
    round: Round,
}

/// Output of a round, and state that is kept for the next one.
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
            // A file system that does not answer must not block other scrapes. A scrape that
            // exceeds its timeout leaves the thread behind, with the lock on the machine.
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
        // A panic leaves no state that the next round cannot start from.
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Waiting would pile up one blocked thread per round while a file system does not answer.
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

/// Parses a text into an appender.
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

    /// Logs at debug level only: `node_scrape_collector_success` reports it in each round, and most
    /// machines lack something for good.
    fn failed(&mut self, collector: &'static str, error: &CollectError) {
        tracing::debug!(collector, %error, "a collector of host metrics failed");
    }
}
