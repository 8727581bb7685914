//! The engine's imports `wal` and `blocks`, implemented over the data directory that the component
//! was given. Runs as WebAssembly only; for other targets it is empty.
//!
//! The directory's formats and rules are those of the host: the crate `tidepool-disk` has both.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![cfg(target_arch = "wasm32")]

mod blocks;
mod directory;
mod head_source;
mod messages;
mod state;
mod wal;

// Generated code calls the canonical ABI, which is unsafe by nature.
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
