//! Sees each batch before it is stored: here, series are dropped whose names begin as the
//! configuration says.

use std::cell::RefCell;
use tidepool_plugin::transform::{Batch, Guest, Interest, Verdict};
use tidepool_plugin::{Edits, Series};

struct Plugin;

thread_local! {
    static PREFIXES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

impl Guest for Plugin {
    /// One prefix a line. Ask for samples and histograms with `Interest::SAMPLES | …`; labels alone
    /// are cheapest.
    fn configure(config: String) -> Result<Interest, String> {
        let prefixes = config.lines().map(str::trim).filter(|line| !line.is_empty());
        PREFIXES.set(prefixes.map(str::to_owned).collect());
        Ok(Interest::empty())
    }

    fn transform(batch: Batch) -> Result<Verdict, String> {
        let series = Series::of(&batch);
        let mut edits = Edits::of(&batch);
        PREFIXES.with_borrow(|prefixes| {
            for place in 0..series.count() {
                let name = series.label(place, "__name__");
                if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                    edits.drop(place);
                }
            }
        });
        Ok(edits.verdict())
    }
}

tidepool_plugin::export_transform!(Plugin);
