//! What receives the metrics, and how collectors hand them over.
//!
//! A family begins once a round, has at least one sample, and all its samples follow at once. The
//! order of families, of samples in a family and of labels is the same in every round on an
//! unchanged machine, so a receiver may look for a series where it was the last time.

use crate::error::CollectError;

/// What node_exporter's `# TYPE` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Grows, and starts again from 0 with the machine.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Upstream does not say.
    Untyped,
}

/// A label: name and value.
pub type Label<'a> = (&'a str, &'a str);

/// A file of the textfile directory.
#[derive(Clone, Copy, Debug)]
pub struct TextFile<'a> {
    /// The directory as it was given, a slash, and the name.
    pub path: &'a str,
    /// What it holds, in Prometheus' text format if all is well.
    pub content: &'a [u8],
}

/// What became of a file of the textfile directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextFileOutcome {
    /// Its series were taken.
    Taken,
    /// Some were refused, such as a family whose help differs from that of another file: sets
    /// `node_textfile_scrape_error`.
    TakenInPart,
    /// None was taken, because it is no such text or has timestamps: sets
    /// `node_textfile_scrape_error`, and the file has no `node_textfile_mtime_seconds`.
    Refused,
}

/// Receives the metrics of a round.
pub trait Sink {
    /// A family begins: what follows are its samples.
    fn family(&mut self, name: &str, help: &str, kind: Kind);

    /// A sample of the family that began last. The labels are sorted by name; some values are
    /// empty, which is as if there were no such label.
    fn sample(&mut self, labels: &[Label<'_>], value: f64);

    /// A file of the textfile directory, to be parsed: it holds families of its own.
    ///
    /// As upstream has it: a text that cannot be parsed to its end, or that has a timestamp, is
    /// refused as a whole; of two helps of a family, the first counts, and the family of the second
    /// is left out; a family without a help gets `Metric read from` and the paths of its files.
    fn text_file(&mut self, file: &TextFile<'_>) -> TextFileOutcome;

    /// A collector failed; what it gave before stays. For a log.
    fn failed(&mut self, collector: &'static str, error: &CollectError);
}

/// A sink as collectors see it: families without samples do not reach it.
pub(crate) struct Output<'s> {
    sink: &'s mut dyn Sink,
}

/// A family being written.
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

    /// Begins with its first sample.
    pub(crate) fn family<'o>(&'o mut self, name: &'o str, help: &'o str, kind: Kind) -> Family<'o> {
        Family { sink: &mut *self.sink, name, help, kind, is_begun: false }
    }

    /// A family of one sample without labels.
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
        if !self.is_begun {
            self.sink.family(self.name, self.help, self.kind);
            self.is_begun = true;
        }
        self.sink.sample(labels, value);
    }
}
