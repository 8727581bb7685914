//! The configuration of wasmtime for each kind of machine code. The build script that compiles the
//! component and the host that runs it share this file, because wasmtime refuses machine code of
//! another configuration.

use wasmtime::Config;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A running call ends at its deadline, or when it is cancelled; the process continues.
    Interruptible,
    /// A running call ends only by itself or with the process. Ingestion takes an eighth less time
    /// than with interruptible code, which checks the deadline in every loop and function.
    Uninterruptible,
}

/// Returns the configuration for compiling and running the component.
pub fn config(code: Code) -> Config {
    let mut config = Config::new();
    config.wasm_component_model(true);
    // Adds a check of the epoch to loop back-edges and function entries.
    config.epoch_interruption(code == Code::Interruptible);
    config
}
