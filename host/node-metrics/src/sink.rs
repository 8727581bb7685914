//! The receiver of the metrics, and the types with which collectors write to it.
//!
//! Each family starts once per round, has at least one sample, and is followed by all of its
//! samples. The order of families, of samples in a family and of labels is the same in every round
//! on an unchanged machine, so a receiver can expect each series at its previous position.

use crate::error::CollectError;

/// Type of a family, as node_exporter's `# TYPE` states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, and starts from 0 when the machine boots.
    Counter,
    Gauge,
    /// Upstream declares no type for this family.
    Untyped,
}

/// A label: name and value.
pub type Label<'a> = (&'a str, &'a str);

/// A file of the textfile directory.
#[derive(Clone, Copy, Debug)]
pub struct TextFile<'a> {
    /// The configured directory, a slash, and the file's name.
    pub path: &'a str,
    /// Content, which should be in Prometheus' text format.
    pub content: &'a [u8],
}

/// Result of parsing a file of the textfile directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextFileOutcome {
    /// All series were accepted.
    Taken,
    /// Some series were rejected, such as a family whose help differs from that in another file.
    /// `node_textfile_scrape_error` is set.
    TakenInPart,
    /// All series were rejected, because the text is invalid or has timestamps.
    /// `node_textfile_scrape_error` is set, and the file has no `node_textfile_mtime_seconds`.
    Refused,
}

/// Receives the metrics of a round.
pub trait Sink {
    /// Starts a family. Its samples follow.
    fn family(&mut self, name: &str, help: &str, kind: Kind);

    /// Receives a sample of the last family. The labels are sorted by name; an empty value means
    /// that the label does not exist.
    fn sample(&mut self, labels: &[Label<'_>], value: f64);

    /// Parses a file of the textfile directory, and receives its families.
    ///
    /// As in upstream, a text that has a timestamp or cannot be parsed is rejected as a whole. If a
    /// family has two help texts, the family with the second text is left out. A family without
    /// help gets `Metric read from` and the paths of its files.
    fn text_file(&mut self, file: &TextFile<'_>) -> TextFileOutcome;

    /// Reports a failed collector for logging. Samples that were received before remain.
    fn failed(&mut self, collector: &'static str, error: &CollectError);
}

/// The sink as collectors see it. Families without samples are not passed to the sink.
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

    /// Returns a family. The sink receives it together with its first sample.
    pub(crate) fn family<'o>(&'o mut self, name: &'o str, help: &'o str, kind: Kind) -> Family<'o> {
        Family { sink: &mut *self.sink, name, help, kind, is_begun: false }
    }

    /// Writes a family that has one sample without labels.
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
        // Sinks expect that each family has at least one sample.
        if !self.is_begun {
            self.sink.family(self.name, self.help, self.kind);
            self.is_begun = true;
        }
        self.sink.sample(labels, value);
    }
}
