//! Reads labels and samples of each batch and changes nothing.

use tidepool_plugin::transform::{Batch, Guest, Interest, Verdict};

struct PassAll;

impl Guest for PassAll {
    /// With the configuration `labels`, the plugin gets batches without samples.
    fn configure(config: String) -> Result<Interest, String> {
        match config.trim() {
            "" => Ok(Interest::SAMPLES | Interest::HISTOGRAMS),
            "labels" => Ok(Interest::empty()),
            other => Err(format!("{other:?} is neither nothing nor `labels`")),
        }
    }

    fn transform(_: Batch) -> Result<Verdict, String> {
        Ok(Verdict::Unchanged)
    }
}

tidepool_plugin::export_transform!(PassAll);
