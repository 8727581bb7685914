//! Compiles `proto/` for the tests' own clients, with a protobuf compiler in pure Rust.

use std::path::Path;

const FILES: [&str; 5] = [
    "prometheus/remote.proto",
    "io/prometheus/write/v2/types.proto",
    "opentelemetry/proto/collector/metrics/v1/metrics_service.proto",
    "google/rpc/status.proto",
    "tidepool/query.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let descriptors = protox::compile(FILES, [&root])?;
    prost_build::Config::new().compile_fds(descriptors)?;
    Ok(())
}
