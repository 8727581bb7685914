//! The messages of OTLP, generated from `proto/`. Only small messages are decoded. Requests are
//! read in place, because decoding can need a hundred bytes for each byte of a request.

// Generated: documentation follows the .proto files.
#![allow(missing_docs, dead_code, clippy::all)]

pub mod common {
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/opentelemetry.proto.common.v1.rs"));
    }
}

pub mod resource {
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/opentelemetry.proto.resource.v1.rs"));
    }
}

pub mod metrics {
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/opentelemetry.proto.metrics.v1.rs"));
    }
}

pub mod collector {
    pub mod metrics {
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/opentelemetry.proto.collector.metrics.v1.rs"));
        }
    }
}

pub mod rpc {
    include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
}
