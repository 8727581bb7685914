//! Bindings that are generated from `wit/plugin/`.

#![allow(missing_docs, clippy::all)]

pub mod transform {
    wasmtime::component::bindgen!({
        path: "../../wit/plugin",
        world: "transform",
        exports: { default: async },
    });
}

pub mod decoder {
    wasmtime::component::bindgen!({
        path: "../../wit/plugin",
        world: "decoder",
        exports: { default: async },
        with: { "tidepool:plugin/types": super::transform::tidepool::plugin::types },
    });
}

pub mod job {
    wasmtime::component::bindgen!({
        path: "../../wit/plugin",
        world: "job",
        imports: { default: async | trappable },
        exports: { default: async },
        with: {
            "tidepool:plugin/types": super::transform::tidepool::plugin::types,
            "tidepool:plugin/store.cursor": crate::plugin::store_import::JobCursor,
        },
    });
}

pub mod observer {
    wasmtime::component::bindgen!({
        path: "../../wit/plugin",
        world: "observer",
        exports: { default: async },
        with: {
            "tidepool:plugin/types": super::transform::tidepool::plugin::types,
            "tidepool:plugin/webhook": super::job::tidepool::plugin::webhook,
        },
    });
}
