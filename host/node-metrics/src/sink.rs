//! The receiver of the metrics, and the way from collectors to it.
//!
//! A family begins once a round, has at least one sample, and all its samples follow at once. The
//! order of families, of samples in a family and of labels is the same in every round on an
//! unchanged machine, so a receiver can expect a series at its previous place.

use crate::error::CollectError;

/// Type of a family, as node_exporter's `# TYPE` states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Grows, and restarts from 0 with the machine.
    Counter,
    Gauge,
    /// Upstream states no type here.
    Untyped,
}

/// A label: name and value.
pub type Label<'a> = (&'a str, &'a str);

/// A file of the textfile directory.
#[derive(Clone, Copy, Debug)]
pub struct TextFile<'a> {
    /// The directory as given, a slash, and the name.
    pub path: &'a str,
    /// Content, which should be in Prometheus' text format.
    pub content: &'a [u8],
}

/// Result for a file of the textfile directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextFileOutcome {
    /// All of its series were taken.
    Taken,
    /// Some series were rejected, such as a family whose help differs from that of another file:
    /// sets `node_textfile_scrape_error`.
    TakenInPart,
    /// No series was taken, because the text is not valid or has timestamps: sets
    /// `node_textfile_scrape_error`, and the file has no `node_textfile_mtime_seconds`.
    Refused,
}

/// Receives the metrics of a round.
pub trait Sink {
    /// Begins a family, whose samples follow.
    fn family(&mut self, name: &str, help: &str, kind: Kind);

    /// Takes a sample of the family that began last. The labels are sorted by name; an empty value
    /// means that there is no such label.
    fn sample(&mut self, labels: &[Label<'_>], value: f64);

    /// Parses a file of the textfile directory, which holds families of its own.
    ///
    /// As in upstream, a text with a timestamp, or that cannot be parsed to its end, is rejected as
    /// a whole; of two help texts of a family, the first counts, and the second family is left out;
    /// a family without help gets `Metric read from` and the paths of its files.
    fn text_file(&mut self, file: &TextFile<'_>) -> TextFileOutcome;

    /// Reports a failed collector, for a log. Its earlier samples remain.
    fn failed(&mut self, collector: &'static str, error: &CollectError);
}

/// The sink as collectors see it: families without samples do not reach it.
pub(crate) struct Output<'s> {
    sink: &'s mut dyn Sink,
}

pub(crate) struct Family<'o> {
    sink: &'o mut dyn Sink,
    name: &'o str,
    help: &'o str,
    kind: Kind,
    is_begun: bool,
}

impl<'s> Output<'s> {
    pub(crate) fn new(sink: &'s mut dyn Sink) -> Output<'s> {
        Output { sink }
    }

    /// Returns a family, which begins with its first sample.
    pub(crate) fn family<'o>(&'o mut self, name: &'o str, help: &'o str, kind: Kind) -> Family<'o> {
        Family { sink: &mut *self.sink, name, help, kind, is_begun: false }
    }

    /// Writes a family of one sample without labels.
    pub(crate) fn single(&mut self, name: &str, help: &str, kind: Kind, value: f64) {
        self.family(name, help, kind).sample(&[], value);
    }

    pub(crate) fn text_file(&mut self, file: &TextFile<'_>) -> TextFileOutcome {
        self.sink.text_file(file)
    }

    pub(crate) fn failed(&mut self, collector: &'static str, error: &CollectError) {
        self.sink.failed(collector, error);
    }
}

impl Family<'_> {
    pub(crate) fn sample(&mut self, labels: &[Label<'_>], value: f64) {
        // Sinks rely on families with at least one sample.
        if !self.is_begun {
            self.sink.family(self.name, self.help, self.kind);
            self.is_begun = true;
        }
        self.sink.sample(labels, value);
    }
}
