//! Handlers of requests, for logs and histograms. The table of routes maps paths to handlers; this
//! file does not depend on the table.

/// Index of an entry in the table of routes, or of the handler for unknown paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handler {
    number: usize,
    /// Path pattern of the entry; `{}` stands for one segment, `{*}` for all remaining segments.
    path: Option<&'static str>,
    reads: bool,
    is_probe: bool,
}

impl Handler {
    /// Returns the handler for unknown paths; `number` is its index among all handlers.
    pub const fn other(number: usize) -> Handler {
        Handler { number, path: None, reads: false, is_probe: false }
    }

    /// Returns the handler of an entry with this path; `number` is its index among all handlers.
    pub const fn new(number: usize, path: &'static str) -> Handler {
        Handler { number, path: Some(path), reads: false, is_probe: false }
    }

    /// Sets whether the endpoint reads, so that its refusals may quote the client's query.
    pub fn with_reads(self, reads: bool) -> Handler {
        Handler { reads, ..self }
    }

    /// Sets whether the handler only reports readiness.
    pub fn with_probe(self, is_probe: bool) -> Handler {
        Handler { is_probe, ..self }
    }

    pub fn number(self) -> usize {
        self.number
    }

    /// Name in metrics, in the style of Prometheus' handler names.
    pub fn name(self) -> String {
        // Prometheus' router writes parameters as `:name` and `*path`.
        self.path.unwrap_or("other").replace("{}", ":name").replace("{*}", "*path")
    }

    /// Returns whether the endpoint reads, so that its refusals may quote the client's query.
    pub fn reads(self) -> bool {
        self.reads
    }

    /// Returns whether the handler only reports readiness.
    pub fn is_probe(self) -> bool {
        self.is_probe
    }
}
