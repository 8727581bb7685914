//! The messages of OTLP, generated from `proto/`. Only what is small is decoded by them; requests
//! are walked over, since a byte of a request can ask for a hundred of its decoded form.

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
