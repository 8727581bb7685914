//! The one configuration of the WebAssembly runtime, shared by the build script that compiles the
//! component and the host that runs it: machine code is refused where the two differ.

use wasmtime::Config;

/// Configuration for compiling and for running the component.
pub fn config() -> Config {
    let mut config = Config::new();
    config.wasm_component_model(true);
    // Deadlines: a tick of the epoch is looked at on loop back-edges and function entries.
    config.epoch_interruption(true);
    config
}
