//! The messages of OTLP, generated from `proto/`. Only small messages are decoded; requests are
//! read in place, since a byte of a request can take a hundred once decoded.

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
