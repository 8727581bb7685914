//! The engine's imports `wal` and `blocks`, implemented on the data directory that is passed to the
//! component. Empty for targets other than WebAssembly.
//!
//! Formats and rules of the directory are those of the host: both use the crate `tidepool-disk`.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![cfg(target_arch = "wasm32")]

mod blocks;
mod directory;
mod head_source;
mod messages;
mod state;
mod wal;

// Generated code calls the canonical ABI, which needs unsafe code.
#[allow(unsafe_code, missing_docs, clippy::all, clippy::mem_forget)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../../wit", "../wit"],
        world: "tidepool:standalone/storage",
        generate_all,
    });

    use super::Component;
    export!(Component with_types_in self);
}

struct Component;
