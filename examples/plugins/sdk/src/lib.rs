//! Plugins for tidepool in Rust.
//!
//! Choose a world, implement its `Guest`, export it:
//!
//! ```ignore
//! use tidepool_plugin::transform::{Batch, Edits, Guest, Interest, Verdict};
//!
//! struct Plugin;
//!
//! impl Guest for Plugin {
//!     fn configure(config: String) -> Result<Interest, String> { … }
//!     fn transform(batch: Batch) -> Result<Verdict, String> { … }
//! }
//!
//! tidepool_plugin::export_transform!(Plugin);
//! ```
//!
//! [`Series`] reads the columns of a batch, [`BatchBuilder`] builds them, [`Edits`] collects
//! changes. Printed text becomes lines of tidepool's log; a panic ends the call and the instance.

mod build;
mod edits;
pub mod job;
mod read;

pub use build::BatchBuilder;
pub use edits::Edits;
pub use read::{Series, histograms};
pub use worlds::decoder::export_decoder;
pub use worlds::job::export_job;
pub use worlds::observer::export_observer;
pub use worlds::transform::export_transform;

/// Types that all kinds of plugins share.
pub mod types {
    pub use crate::worlds::transform::tidepool::plugin::types::{
        Batch, Histograms, Interest, Samples,
    };
}

/// A plugin that sees each batch before it is stored.
pub mod transform {
    pub use crate::types::{Batch, Interest};
    pub use crate::worlds::transform::exports::tidepool::plugin::transform_batches::{
        Edit, Guest, Verdict,
    };
}

/// A plugin that decodes request bodies to samples.
pub mod decoder {
    pub use crate::types::Batch;
    pub use crate::worlds::decoder::exports::tidepool::plugin::decode_bodies::{
        Decoded, Guest, Refusal, Request,
    };
}

/// A plugin that sees batches after they were stored.
pub mod observer {
    pub use crate::types::{Batch, Interest};
    pub use crate::worlds::observer::exports::tidepool::plugin::observe_batches::Guest;
    pub use crate::worlds::observer::tidepool::plugin::webhook;
}

/// Bindings generated from the WIT files.
#[allow(missing_docs, clippy::all)]
pub mod worlds {
    pub mod transform {
        wit_bindgen::generate!({
            path: "wit",
            world: "transform",
            pub_export_macro: true,
            export_macro_name: "export_transform",
            default_bindings_module: "tidepool_plugin::worlds::transform",
        });
    }

    pub mod decoder {
        wit_bindgen::generate!({
            path: "wit",
            world: "decoder",
            pub_export_macro: true,
            export_macro_name: "export_decoder",
            default_bindings_module: "tidepool_plugin::worlds::decoder",
            with: { "tidepool:plugin/types@0.2.0": super::transform::tidepool::plugin::types },
        });
    }

    pub mod job {
        wit_bindgen::generate!({
            path: "wit",
            world: "job",
            pub_export_macro: true,
            export_macro_name: "export_job",
            default_bindings_module: "tidepool_plugin::worlds::job",
            with: { "tidepool:plugin/types@0.2.0": super::transform::tidepool::plugin::types },
            generate_all,
        });
    }

    pub mod observer {
        wit_bindgen::generate!({
            path: "wit",
            world: "observer",
            pub_export_macro: true,
            export_macro_name: "export_observer",
            default_bindings_module: "tidepool_plugin::worlds::observer",
            with: { "tidepool:plugin/types@0.2.0": super::transform::tidepool::plugin::types },
            generate_all,
        });
    }
}
