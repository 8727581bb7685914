//! The example's storage keeps the contract: the checks of `tests/contract`, run on it.

#[allow(missing_docs, clippy::all)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "engine",
        imports: { default: trappable },
        with: {
            "tidepool:tsdb/wal.checkpoint": crate::storage::Checkpoint,
            "tidepool:tsdb/blocks.file": crate::storage::File,
            "tidepool:tsdb/blocks.writer": crate::storage::Writer,
        },
    });
}
#[path = "../src/storage.rs"]
mod storage;

use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::error::Context;
use wasmtime::{Engine, Result, Store};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};

const COMPONENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../target/wasm32-wasip2/component/tidepool_contract.wasm"
);

struct State {
    storage: storage::Storage,
    table: ResourceTable,
    wasi: WasiCtx,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

#[test]
fn the_storage_keeps_the_contract() -> Result<()> {
    let engine = Engine::default();
    let component = Component::from_file(&engine, COMPONENT)
        .context("`cargo build-standalone --contract` makes it")?;
    let mut linker = Linker::<State>::new(&engine);
    wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?;
    bindings::Engine::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    let state = State {
        storage: storage::Storage::default(),
        table: ResourceTable::new(),
        wasi: WasiCtx::builder().build(),
    };
    let mut store = Store::new(&engine, state);
    for life in ["write", "read-back"] {
        let instance = linker.instantiate(&mut store, &component)?;
        let checks = instance
            .get_export_index(&mut store, None, "tidepool:contract/checks@0.1.0")
            .context("the checks")?;
        let function =
            instance.get_export_index(&mut store, Some(&checks), life).context("a function")?;
        let check = instance.get_typed_func::<(), (Vec<String>,)>(&mut store, function)?;
        let (broken,) = check.call(&mut store, ())?;
        assert_eq!(broken, Vec::<String>::new(), "{life}");
    }
    Ok(())
}
