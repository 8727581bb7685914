//! Generated from `wit/`: the only place where generated code is made.

#![allow(missing_docs, clippy::all)]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "engine-with-queries",
    imports: { default: trappable },
    with: {
        "tidepool:tsdb/wal.checkpoint": crate::wasm::imports::Checkpoint,
        "tidepool:tsdb/blocks.file": crate::disk::BlockFile,
        "tidepool:tsdb/blocks.writer": crate::disk::BlockWriter,
        "tidepool:tsdb/head-source.cursor": crate::wasm::imports::HeadCursor,
        "tidepool:tsdb/head-source.strings": crate::wasm::imports::HeadStrings,
        "tidepool:tsdb/head-source.exemplars": crate::wasm::imports::HeadExemplars,
    },
});
