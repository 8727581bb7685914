//! Sees what was written: here, it says in the log how many samples a batch had.

use tidepool_plugin::observer::{Batch, Guest, Interest};

struct Plugin;

impl Guest for Plugin {
    fn configure(_config: String) -> Result<Interest, String> {
        Ok(Interest::SAMPLES)
    }

    fn observe(batch: Batch) -> Result<(), String> {
        println!("{} series, {} samples", batch.series_ends.len(), batch.samples.values.len());
        Ok(())
    }
}

tidepool_plugin::export_observer!(Plugin);
