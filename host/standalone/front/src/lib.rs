//! The standalone component's part in front of the engine: the interface `packed`, columns of
//! samples as strings, and the command of `wasmtime run`. Empty for targets other than WebAssembly.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![cfg(target_arch = "wasm32")]

mod answer;
mod command;
mod lines;
mod packed;
#[cfg(feature = "promql")]
mod query;
mod selector;

// Generated code calls the canonical ABI, which needs unsafe code.
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
