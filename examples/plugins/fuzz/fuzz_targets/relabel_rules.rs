//! Any rules are refused or applied to any labels.
#![no_main]

use drop_and_relabel::DropAndRelabel;
use libfuzzer_sys::fuzz_target;
use tidepool_plugin::BatchBuilder;
use tidepool_plugin::transform::{Guest as _, Verdict};

// Plugins are libraries for WebAssembly, which nothing here can depend on.
#[path = "../../drop-and-relabel/src/lib.rs"]
mod drop_and_relabel;

fuzz_target!(|input: (&str, Vec<(&str, &str)>)| {
    let (rules, labels) = input;
    if DropAndRelabel::configure(rules.to_owned()).is_err() {
        return;
    }
    let mut batch = BatchBuilder::new();
    batch.series(labels.iter().copied());
    batch.series([("__name__", "a"), ("pod", "b")]);
    if let Ok(Verdict::Edited(edit)) = DropAndRelabel::transform(batch.finish()) {
        assert_eq!(edit.relabeled.len(), edit.series_ends.len());
        assert!(edit.dropped.len() + edit.relabeled.len() <= 2);
    }
});
