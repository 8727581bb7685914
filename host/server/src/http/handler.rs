//! The handler of a request, for logs and histograms: a name and what they must know of it. Which
//! path has which handler is the affair of the table of routes, which this file does not know.

/// What answers a request: a line of the table of routes, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handler {
    number: usize,
    /// The path of its line, in which `{}` stands for one segment and `{*}` for all that follow.
    path: Option<&'static str>,
    reads: bool,
    is_probe: bool,
}

impl Handler {
    /// Of a path that is in no table; `number` is its place among all handlers.
    pub const fn other(number: usize) -> Handler {
        Handler { number, path: None, reads: false, is_probe: false }
    }

    /// Of a line of the table with this path; `number` is its place among all handlers.
    pub const fn new(number: usize, path: &'static str) -> Handler {
        Handler { number, path: Some(path), reads: false, is_probe: false }
    }

    /// Whether its refusals may quote what a client searches for.
    pub fn with_reads(self, reads: bool) -> Handler {
        Handler { reads, ..self }
    }

    /// Whether it only tells whether the store is ready.
    pub fn with_probe(self, is_probe: bool) -> Handler {
        Handler { is_probe, ..self }
    }

    /// Its place among all.
    pub fn number(self) -> usize {
        self.number
    }

    /// As Prometheus names its handlers.
    pub fn name(self) -> String {
        self.path.unwrap_or("other").replace("{}", ":name").replace("{*}", "*path")
    }

    /// Whether a refusal may quote what a client searches for.
    pub fn reads(self) -> bool {
        self.reads
    }

    /// Whether it only tells whether the store is ready.
    pub fn is_probe(self) -> bool {
        self.is_probe
    }
}
