//! Two arbitrary edits, even contradictory ones, are combined without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidepool_plugin::BatchBuilder;
use tidepool_plugin::transform::{Batch, Edit, Verdict};

// Plugins are libraries for WebAssembly, which nothing here can depend on.
#[path = "../../chain/src/batch.rs"]
mod batch;
#[path = "../../chain/src/edit.rs"]
mod edit;
#[path = "../../chain/src/turns.rs"]
mod turns;

type Parts = (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>, bool);

fuzz_target!(|parts: (Parts, Parts)| {
    let before = three_series();
    let (one, two) = (edit(parts.0), edit(parts.1));
    let made = turns::then(&before, Verdict::Edited(one), |_| Ok(Verdict::Edited(two.clone())));
    if let Ok(Verdict::Edited(edit)) = made {
        edit::applied(&before, edit);
    }
});

fn three_series() -> Batch {
    let mut made = BatchBuilder::new();
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        let series = made.series([("__name__", name)]);
        made.sample(series, 1000, number as f64);
    }
    made.finish()
}

fn edit((ends, dropped, relabeled, refs, series_ends, adds): Parts) -> Edit {
    let numbers = |bytes: Vec<u8>| bytes.into_iter().map(u32::from).collect();
    Edit {
        symbols: "é text of symbols".to_owned(),
        symbol_ends: numbers(ends),
        dropped: numbers(dropped),
        relabeled: numbers(relabeled),
        label_refs: numbers(refs),
        series_ends: numbers(series_ends),
        added: adds.then(three_series),
    }
}
