//! The bindings generated from `wit/`. No other module contains generated code.

#![allow(missing_docs, clippy::all)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "engine-with-queries",
    imports: { default: trappable },
    with: {
        "tidepool:tsdb/wal.checkpoint": crate::imports::Checkpoint,
        "tidepool:tsdb/blocks.file": tidepool_disk::BlockFile,
        "tidepool:tsdb/blocks.writer": tidepool_disk::BlockWriter,
        "tidepool:tsdb/head-source.cursor": crate::imports::HeadCursor,
        "tidepool:tsdb/head-source.strings": crate::imports::HeadStrings,
        "tidepool:tsdb/head-source.exemplars": crate::imports::HeadExemplars,
    },
});
