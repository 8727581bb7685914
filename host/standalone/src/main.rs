//! `cargo build-standalone`: builds the engine's component and two components around it, and
//! composes the three to `tidepool-standalone.wasm`, which only needs a directory.
//!
//! With `--promql`, the engine includes PromQL, and the result is
//! `tidepool-standalone-promql.wasm`. With `--contract`, the engine is replaced by the checks of a
//! host's storage (`tests/contract`), and the result is `tidepool-contract-standalone.wasm`.
//!
//! ```text
//!  store inspect query …        packed wasi:cli/run        directory
//!       ▲                            ▲                         ▲
//!  ┌────┴─────┐    store        ┌────┴────┐   directory  ┌─────┴─────┐
//!  │  engine  │───────────────▶ │  front  │ ◀─────────── │  storage  │──▶ wasi:filesystem
//!  └────▲─────┘                 └─────────┘              └─────┬─────┘
//!       └───────────── wal, blocks, head-source ───────────────┘
//! ```

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod strip;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use wac_graph::types::Package;
use wac_graph::{CompositionGraph, EncodeOptions, NodeId};

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Product {
    file: &'static str,
    /// Crates of the parts. Each comes after the crates whose exports it imports.
    parts: &'static [&'static str],
    /// Cargo profile, which optimizes for size, because users compile or transfer the result.
    profile: &'static str,
    /// Crates that are built with the feature `promql`.
    promql: &'static [&'static str],
}

const STANDALONE: Product = Product {
    file: "tidepool-standalone.wasm",
    parts: &["tidepool-standalone-storage", "tidepool-engine", "tidepool-standalone-front"],
    profile: "component-small",
    promql: &[],
};

const STANDALONE_PROMQL: Product = Product {
    file: "tidepool-standalone-promql.wasm",
    profile: "component-small-promql",
    promql: &["tidepool-engine", "tidepool-standalone-front"],
    ..STANDALONE
};

const CONTRACT: Product = Product {
    file: "tidepool-contract-standalone.wasm",
    parts: &["tidepool-standalone-storage", "tidepool-contract"],
    ..STANDALONE
};

/// Exports that only other parts import. They are not exported by the composed component.
const INSIDE: [&str; 3] =
    ["tidepool:tsdb/wal@", "tidepool:tsdb/blocks@", "tidepool:tsdb/head-source@"];

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let product = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => STANDALONE,
        ["--promql"] => STANDALONE_PROMQL,
        ["--contract"] => CONTRACT,
        _ => return Err("usage: cargo build-standalone [--promql | --contract]".into()),
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let folder = target_dir(&workspace).join("wasm32-wasip2").join(product.profile);
    let mut parts = Vec::new();
    let mut sources = String::new();
    for &part in product.parts {
        build(&workspace, part, &product)?;
        let built = folder.join(part.replace('-', "_")).with_extension("wasm");
        parts.push((part, std::fs::read(&built).map_err(|error| named(&built, error))?));
        sources += &sources_of(&built)?;
    }
    let composed = compose(parts)?;
    let composed = strip::stripped(&composed).ok_or("what was composed is no component")?;
    let output = folder.join(product.file);
    std::fs::write(&output, &composed).map_err(|error| named(&output, error))?;
    // Writes a dependency file with the sources of all parts, in cargo's format.
    let rule = format!("{}:{sources}\n", output.display());
    std::fs::write(output.with_extension("d"), rule)?;
    println!("{}: {} bytes", output.display(), composed.len());
    Ok(())
}

/// Returns the sources in the dependency file of a part, each after a blank.
fn sources_of(built: &Path) -> Outcome<String> {
    let path = built.with_extension("d");
    let rule = std::fs::read_to_string(&path).map_err(|error| named(&path, error))?;
    let (_, sources) = rule.trim_end().split_once(':').ok_or("cargo wrote no rule")?;
    Ok(sources.to_owned())
}

fn named(path: &Path, error: std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn target_dir(workspace: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(workspace.join("target"), PathBuf::from)
}

fn build(workspace: &Path, part: &str, product: &Product) -> Outcome<()> {
    // Cargo sets `CARGO` for programs that it runs, so that parts use the same toolchain.
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(workspace);
    cargo.args(["rustc", "--package", part, "--lib", "--crate-type", "cdylib"]);
    cargo.args(["--target", "wasm32-wasip2", "--profile", product.profile, "--locked"]);
    // The features are those of `cargo build-component-small` and `build-component-small-promql`.
    cargo.arg("--no-default-features");
    if product.promql.contains(&part) {
        cargo.args(["--features", "promql"]);
    }
    // Flags that the outer build sets for this machine are invalid for WebAssembly.
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("RUSTFLAGS");
    let status = cargo.status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("building {part} failed: {status}").into()),
    }
}

/// Connects the imports of each part to exports of earlier parts; exports all except [`INSIDE`].
fn compose(parts: Vec<(&str, Vec<u8>)>) -> Outcome<Vec<u8>> {
    let mut graph = CompositionGraph::new();
    let mut offered: Vec<(String, NodeId)> = Vec::new();
    for (name, bytes) in parts {
        let package = Package::from_bytes(name, None, bytes, graph.types_mut())?;
        let package = graph.register_package(package)?;
        let world = &graph.types()[graph[package].ty()];
        let imports: Vec<String> = world.imports.keys().cloned().collect();
        let exports: Vec<String> = world.exports.keys().cloned().collect();
        let instance = graph.instantiate(package);
        // Imports that no part exports, such as WASI's, remain imports of the composed component.
        for import in imports {
            if let Some((_, node)) = offered.iter().find(|(export, _)| *export == import) {
                graph.set_instantiation_argument(instance, &import, *node)?;
            }
        }
        for export in exports {
            let node = graph.alias_instance_export(instance, &export)?;
            offered.push((export, node));
        }
    }
    for (name, node) in offered {
        if !INSIDE.iter().any(|inside| name.starts_with(inside)) {
            graph.export(node, &name)?;
        }
    }
    Ok(graph.encode(EncodeOptions::default())?)
}
