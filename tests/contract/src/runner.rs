//! Runs the checks for a host in Rust, on wasmtime.

use std::path::{Path, PathBuf};
use wasmtime::component::{Component, Linker};
use wasmtime::error::Context;
use wasmtime::{AsContextMut, Engine, Result};

const INTERFACE: &str = "tidepool:contract/checks@0.2.0";

/// One of the two parts of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// First run, on empty storage.
    Write,
    /// Second run, on the storage that the first one left.
    ReadBack,
}

impl Phase {
    /// Both phases in their order.
    pub const ALL: [Phase; 2] = [Phase::Write, Phase::ReadBack];
}

pub struct Checks(Component);

impl Checks {
    /// Loads the component that `cargo build-contract` built.
    pub fn load(engine: &Engine) -> Result<Checks> {
        let file = target_dir().join("wasm32-wasip2/component-small/tidepool_contract.wasm");
        let component = Component::from_file(engine, &file)
            .context(format!("cannot load {}; `cargo build-contract` makes it", file.display()))?;
        Ok(Checks(component))
    }

    /// Runs a phase in a new instance over the host's storage; returns a sentence for each broken
    /// promise. The linker has the host's `wal` and `blocks`, and WASI.
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

pub fn target_dir() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("CARGO_TARGET_DIR").map_or(workspace.join("target"), PathBuf::from)
}
