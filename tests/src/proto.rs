//! The messages of `proto/`, generated at build time.

// Generated: documentation follows the .proto files, and some enums are large.
#![allow(missing_docs, clippy::all)]

/// Remote write 1.0 and remote read.
pub mod prometheus {
    include!(concat!(env!("OUT_DIR"), "/prometheus.rs"));
}

pub mod tidepool {
    include!(concat!(env!("OUT_DIR"), "/tidepool.rs"));
}

pub mod opentelemetry {
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
}

pub mod rpc {
    include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
}

pub mod write_v2 {
    include!(concat!(env!("OUT_DIR"), "/io.prometheus.write.v2.rs"));
}
