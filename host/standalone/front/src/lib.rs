//! The part of the standalone component before the engine: columns of samples as strings (`packed`)
//! and the command of `wasmtime run`. Runs as WebAssembly only; for other targets it is empty.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![cfg(target_arch = "wasm32")]

mod answer;
mod command;
mod lines;
mod packed;
#[cfg(feature = "promql")]
mod query;
mod selector;

// Generated code calls the canonical ABI, which is unsafe by nature.
#[allow(unsafe_code, missing_docs, clippy::all, clippy::mem_forget)]
mod bindings {
    #[cfg(not(feature = "promql"))]
    wit_bindgen::generate!({
        path: ["../../../wit", "../wit"],
        world: "tidepool:standalone/front",
        generate_all,
    });
    #[cfg(feature = "promql")]
    wit_bindgen::generate!({
        path: ["../../../wit", "../wit"],
        world: "tidepool:standalone/front-with-queries",
        generate_all,
    });

    use super::Component;
    export!(Component with_types_in self);
    wasip2::cli::command::export!(Component);
}

struct Component;
