//! Lists the imports and exports of the engine's component, so that a new import is a decision and
//! no accident: every embedder must provide each import.

use tidepool_tests::built;
use wasmparser::{Parser, Payload};

/// The project's own interfaces; `types` has types and no functions.
const TIDEPOOL: [&str; 4] = [
    "tidepool:tsdb/blocks@0.2.0",
    "tidepool:tsdb/head-source@0.2.0",
    "tidepool:tsdb/types@0.2.0",
    "tidepool:tsdb/wal@0.2.0",
];

/// Imports of Rust's standard library: the environment and standard streams (panic messages), the
/// exit, and the seed of its hash maps. No clock, file, socket or thread.
const WASI: [&str; 14] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure-seed",
];

/// Returns the sorted names of the component's own imports and exports.
fn interfaces(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), wasmparser::BinaryReaderError> {
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            // Nested modules and components have a version and an end of their own.
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    exports.push(export?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    imports.sort();
    exports.sort();
    Ok((imports, exports))
}

#[test]
fn the_component_imports_our_interfaces_and_what_std_needs() {
    let bytes = std::fs::read(built::component()).expect("it was built");
    let (imports, exports) = interfaces(&bytes).expect("the build gives a valid component");

    let (wasi, ours): (Vec<&str>, Vec<&str>) =
        imports.iter().map(String::as_str).partition(|name| name.starts_with("wasi:"));
    assert_eq!(ours, TIDEPOOL);
    // The toolchain determines the patch version of WASI; a host provides any 0.2.
    let names: Vec<&str> = wasi.iter().map(|name| name.split('@').next().unwrap_or(name)).collect();
    assert_eq!(names, WASI, "the component imports {wasi:?}");
    assert!(wasi.iter().all(|name| name.contains("@0.2.")), "not WASI 0.2: {wasi:?}");
    assert_eq!(
        exports,
        [
            "tidepool:tsdb/backfill@0.2.0",
            "tidepool:tsdb/forward@0.2.0",
            "tidepool:tsdb/inspect@0.2.0",
            "tidepool:tsdb/query@0.2.0",
            "tidepool:tsdb/store@0.2.0",
        ]
    );
}
