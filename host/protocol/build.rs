//! Generates the types of all protobuf messages.

use std::error::Error;
use std::path::Path;

const PROTO_FILES: [&str; 4] = [
    "prometheus/remote.proto",
    "opentelemetry/proto/collector/metrics/v1/metrics_service.proto",
    "google/rpc/status.proto",
    "tidepool/query.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    let include = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", include.display());
    // protox compiles the schemas in Rust, so a build needs no `protoc`.
    let files = protox::compile(PROTO_FILES, [&include])?;
    prost_build::Config::new().compile_fds(files)?;
    Ok(())
}
