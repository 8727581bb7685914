//! The configuration of the WebAssembly runtime for each kind of machine code, shared by the build
//! script that compiles the component and the host that runs it: machine code is refused where the
//! two differ.

use wasmtime::Config;

/// Kinds of machine code of the component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A running call ends at its deadline, or when it is cancelled; the process goes on.
    Interruptible,
    /// A running call ends by itself alone, or with the process. Ingestion takes an eighth less
    /// time than with looks at a deadline in every loop and function.
    Uninterruptible,
}

/// Configuration for compiling and for running the component.
pub fn config(code: Code) -> Config {
    let mut config = Config::new();
    config.wasm_component_model(true);
    // Deadlines: a tick of the epoch is looked at on loop back-edges and function entries.
    config.epoch_interruption(code == Code::Interruptible);
    config
}
