//! The messages of `proto/`, generated at build time.

// Generated: documentation follows the .proto files, and enums larger than we would write.
#![allow(missing_docs, clippy::all)]

/// Remote write 1.0 and remote read.
pub mod prometheus {
    include!(concat!(env!("OUT_DIR"), "/prometheus.rs"));
}

/// Remote write 2.0.
pub mod write_v2 {
    include!(concat!(env!("OUT_DIR"), "/io.prometheus.write.v2.rs"));
}
