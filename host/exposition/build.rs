//! Generates the types of the protobuf format.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let include = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", include.join("io/prometheus/client").display());
    // protox compiles the schema in Rust, so a build needs no `protoc`.
    let files = protox::compile(["io/prometheus/client/metrics.proto"], [&include])?;
    prost_build::Config::new().compile_fds(files)?;
    Ok(())
}
