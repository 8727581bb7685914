//! The tidepool component in a host of your own, with storage in plain memory.
//!
//! This file provides what the component needs around its storage, `storage.rs` the storage behind
//! its imports, `query.rs` evaluates expressions, and `main.rs` uses all of them: opens a store,
//! writes, reads, and queries.

#[allow(missing_docs, clippy::all)]
pub mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        // With a component that was built without PromQL: `engine`.
        world: "engine-with-queries",
        // An import may trap, for bugs only; expected failures are in its result.
        imports: { default: trappable },
        with: {
            "tidepool:tsdb/wal.checkpoint": crate::storage::Checkpoint,
            "tidepool:tsdb/blocks.file": crate::storage::File,
            "tidepool:tsdb/blocks.writer": crate::storage::Writer,
        },
    });
}
pub mod query;
pub mod storage;

use bindings::tidepool::tsdb::{blocks, wal};
use storage::Storage;
use wasmtime::component::{HasSelf, Linker, ResourceType};
use wasmtime::{Engine, Result};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};

/// State that wasmtime keeps for one instance of the component.
#[derive(Default)]
pub struct State {
    /// Logs and blocks of the store.
    pub storage: Storage,
    /// Resources that the component holds open.
    pub table: ResourceTable,
    /// WASI for Rust's standard library, which uses it to print panics.
    pub wasi: WasiCtx,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Functions that the component calls for the heads of other instances.
const HEAD_SOURCE: [&str; 14] = [
    "open",
    "label-names",
    "label-values",
    "plan-cut",
    "truncate",
    "scan-exemplars",
    "deletion-mark",
    "[method]cursor.next",
    "[method]cursor.labels",
    "[method]cursor.keep",
    "[method]cursor.rewind",
    "[method]cursor.delete",
    "[method]strings.next",
    "[method]exemplars.next",
];

/// Defines the component's imports: WASI, both interfaces of storage, and `head-source`, which is
/// never called, because in the role `all` the store's own head answers.
pub fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?;
    wal::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    blocks::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    let mut other_head = linker.instance("tidepool:tsdb/head-source@0.2.0")?;
    for resource in ["cursor", "strings", "exemplars"] {
        other_head.resource(resource, ResourceType::host::<()>(), |_, _| Ok(()))?;
    }
    for function in HEAD_SOURCE {
        other_head.func_new(function, |_, _, _, _| wasmtime::bail!("there is no other head"))?;
    }
    Ok(linker)
}
