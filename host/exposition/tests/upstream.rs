//! Compares results with those of Prometheus' own parsers; where this crate differs, the case
//! states the other result and the reason.
//!
//! The cases are made by `tests/peers/expositioncases`, which asks Prometheus 3.15; the texts of
//! upstream's own tests are read in `tests/tests/peers`. A longer table may be given in
//! `TIDEPOOL_EXPOSITION_CASES`.

mod table;

use std::error::Error;
use std::path::Path;

type TestResult = Result<(), Box<dyn Error>>;

#[test]
fn text_is_read_as_upstream_reads_it() -> TestResult {
    check("text.jsonl")
}

#[test]
fn protobuf_is_read_as_upstream_reads_it() -> TestResult {
    check("protobuf.jsonl")
}

#[test]
fn further_cases() -> TestResult {
    match std::env::var_os("TIDEPOOL_EXPOSITION_CASES") {
        Some(path) => check_file(Path::new(&path)),
        None => Ok(()),
    }
}

fn check(name: &str) -> TestResult {
    check_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name))
}

fn check_file(path: &Path) -> TestResult {
    let (differences, _) = table::differences(path)?;
    let texts: Vec<String> =
        differences.into_iter().map(|one| format!("{} {}", one.name, one.text)).collect();
    assert!(texts.is_empty(), "{}\n{}", path.display(), texts.join("\n"));
    Ok(())
}
