//! Conversion of requests to columns for plugins, and back.
//!
//! ```text
//! remote-write body ── view ──▶ columns ──▶ plugin ──▶ unchanged: the body as it came
//!        │                                        ├──▶ edit: the body with other labels
//!        └───────────── edit ◀────────────────────┤      (its bytes are copied, not decoded)
//!                                                 └──▶ columns ── write ──▶ a new 2.0 body
//! ```
//!
//! Everything that a plugin returns is checked before use: see [`InvalidBatch`].

mod columns;
mod edit;
mod show;
#[cfg(test)]
mod tests;
mod view;
mod write;

pub use columns::InvalidBatch;
pub use edit::edited;
pub use show::{newest_ms, rows};
pub use view::{View, ViewError};
pub use write::write;

use super::bindings::transform::tidepool::plugin::types;
pub use types::{Batch, Histograms, Interest, Samples};

impl Batch {
    pub fn empty() -> Batch {
        Batch {
            symbols: String::new(),
            symbol_ends: Vec::new(),
            label_refs: Vec::new(),
            series_ends: Vec::new(),
            samples: Samples::empty(),
            histograms: Histograms::empty(),
        }
    }

    /// Returns the number of samples and histograms in the columns.
    pub fn rows(&self) -> u64 {
        (self.samples.series.len() + self.histograms.series.len()) as u64
    }
}

impl Samples {
    pub fn empty() -> Samples {
        Samples { series: Vec::new(), timestamps_ms: Vec::new(), values: Vec::new() }
    }
}

impl Histograms {
    pub fn empty() -> Histograms {
        Histograms { series: Vec::new(), messages: Vec::new(), ends: Vec::new() }
    }
}

/// Columns that were taken from a batch because a plugin did not ask for them.
pub struct Hidden {
    samples: Option<Samples>,
    histograms: Option<Histograms>,
}

impl Batch {
    /// Takes the columns that a plugin did not ask for. [`Batch::show`] puts them back.
    pub fn hide_all_but(&mut self, interest: Interest) -> Hidden {
        // Moved, not copied: a batch may have half the size of an instance's memory.
        let samples = (!interest.contains(Interest::SAMPLES))
            .then(|| std::mem::replace(&mut self.samples, Samples::empty()));
        let histograms = (!interest.contains(Interest::HISTOGRAMS))
            .then(|| std::mem::replace(&mut self.histograms, Histograms::empty()));
        Hidden { samples, histograms }
    }

    pub fn show(&mut self, hidden: Hidden) {
        if let Some(samples) = hidden.samples {
            self.samples = samples;
        }
        if let Some(histograms) = hidden.histograms {
            self.histograms = histograms;
        }
    }
}
