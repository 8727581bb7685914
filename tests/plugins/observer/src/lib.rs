//! An observer that prints what it sees, or is as slow as its configuration says.

use std::cell::Cell;
use tidepool_plugin::Series;
use tidepool_plugin::observer::{Batch, Guest, Interest};

thread_local! {
    static SLOW_MS: Cell<u64> = const { Cell::new(0) };
}

struct Watching;

impl Guest for Watching {
    fn configure(config: String) -> Result<Interest, String> {
        SLOW_MS.set(config.trim().parse().unwrap_or_default());
        Ok(Interest::SAMPLES)
    }

    fn observe(batch: Batch) -> Result<(), String> {
        std::thread::sleep(std::time::Duration::from_millis(SLOW_MS.get()));
        let series = Series::of(&batch);
        let name = if series.count() > 0 { series.label(0, "__name__") } else { "" };
        println!("saw {} samples, first of {name}", batch.samples.values.len());
        Ok(())
    }
}

tidepool_plugin::export_observer!(Watching);
