//! Runs the checks for a host in Rust, on wasmtime.

use std::path::{Path, PathBuf};
use wasmtime::component::{Component, Linker};
use wasmtime::error::Context;
use wasmtime::{AsContextMut, Engine, Result};

const INTERFACE: &str = "tidepool:contract/checks@0.2.0";

/// Which of the two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The first run, on empty storage.
    Write,
    /// The second run, on what the first one left.
    ReadBack,
}

impl Phase {
    /// In their order.
    pub const ALL: [Phase; 2] = [Phase::Write, Phase::ReadBack];
}

/// The component with the checks, compiled.
pub struct Checks(Component);

impl Checks {
    /// Compiles what `cargo build-contract` made.
    pub fn load(engine: &Engine) -> Result<Checks> {
        let file = target_dir().join("wasm32-wasip2/component-small/tidepool_contract.wasm");
        let component = Component::from_file(engine, &file)
            .context(format!("cannot load {}; `cargo build-contract` makes it", file.display()))?;
        Ok(Checks(component))
    }

    /// Makes a fresh instance over the host's storage and lets it check; returns what was broken, a
    /// sentence each. The linker has the host's `wal` and `blocks`, and WASI.
    pub fn broken<T: 'static>(
        &self,
        phase: Phase,
        linker: &Linker<T>,
        mut store: impl AsContextMut<Data = T>,
    ) -> Result<Vec<String>> {
        let name = match phase {
            Phase::Write => "write",
            Phase::ReadBack => "read-back",
        };
        let instance = linker.instantiate(&mut store, &self.0)?;
        let interface = instance
            .get_export_index(&mut store, None, INTERFACE)
            .context("the component has no checks")?;
        let function = instance
            .get_export_index(&mut store, Some(&interface), name)
            .context(format!("the checks have no {name}"))?;
        let check = instance.get_typed_func::<(), (Vec<String>,)>(&mut store, function)?;
        Ok(check.call(&mut store, ())?.0)
    }
}

/// Where cargo puts what it builds.
pub fn target_dir() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("CARGO_TARGET_DIR").map_or(workspace.join("target"), PathBuf::from)
}
