//! The two composed transforms. Their types are those of every transform; only the Rust names
//! differ.

use tidepool_plugin::transform::{Edit, Verdict};

mod generated {
    wit_bindgen::generate!({
        path: "wit",
        world: "parts",
        with: {
            "tidepool:plugin/types@0.2.0": tidepool_plugin::worlds::transform::tidepool::plugin::types,
        },
    });
}

pub use generated::tidepool::chain::{first, second};

macro_rules! verdict_from {
    ($part:ident) => {
        impl From<$part::Verdict> for Verdict {
            fn from(verdict: $part::Verdict) -> Verdict {
                match verdict {
                    $part::Verdict::Unchanged => Verdict::Unchanged,
                    $part::Verdict::Replaced(batch) => Verdict::Replaced(batch),
                    $part::Verdict::Edited(edit) => Verdict::Edited(Edit {
                        symbols: edit.symbols,
                        symbol_ends: edit.symbol_ends,
                        dropped: edit.dropped,
                        relabeled: edit.relabeled,
                        label_refs: edit.label_refs,
                        series_ends: edit.series_ends,
                        added: edit.added,
                    }),
                }
            }
        }
    };
}

verdict_from!(first);
verdict_from!(second);
