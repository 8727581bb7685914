//! Requests as plugins see them, and back.
//!
//! ```text
//! remote-write body ── view ──▶ columns ──▶ plugin ──▶ unchanged: the body as it came
//!        │                                        ├──▶ edit: the body with other labels
//!        └───────────── edit ◀────────────────────┤      (its bytes are copied, not decoded)
//!                                                 └──▶ columns ── write ──▶ a new 2.0 body
//! ```
//!
//! What a plugin returns is checked before it is used: see [`InvalidBatch`].

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
    /// No series.
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

    /// Samples and histograms in its columns.
    pub fn rows(&self) -> u64 {
        (self.samples.series.len() + self.histograms.series.len()) as u64
    }
}

impl Samples {
    /// None.
    pub fn empty() -> Samples {
        Samples { series: Vec::new(), timestamps_ms: Vec::new(), values: Vec::new() }
    }
}

impl Histograms {
    /// None.
    pub fn empty() -> Histograms {
        Histograms { series: Vec::new(), messages: Vec::new(), ends: Vec::new() }
    }
}

/// Columns that a plugin does not see.
pub struct Hidden {
    samples: Option<Samples>,
    histograms: Option<Histograms>,
}

impl Batch {
    /// Takes away the columns that a plugin did not ask for, until they are shown again.
    pub fn hide_all_but(&mut self, interest: Interest) -> Hidden {
        let samples = (!interest.contains(Interest::SAMPLES))
            .then(|| std::mem::replace(&mut self.samples, Samples::empty()));
        let histograms = (!interest.contains(Interest::HISTOGRAMS))
            .then(|| std::mem::replace(&mut self.histograms, Histograms::empty()));
        Hidden { samples, histograms }
    }

    /// Puts back what was hidden.
    pub fn show(&mut self, hidden: Hidden) {
        if let Some(samples) = hidden.samples {
            self.samples = samples;
        }
        if let Some(histograms) = hidden.histograms {
            self.histograms = histograms;
        }
    }
}
