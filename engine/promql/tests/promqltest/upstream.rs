//! Location of upstream's scripts: the module cache of Go, or [`SCRIPTS`].

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODULE: &str = "github.com/prometheus/prometheus";

/// Directory of scripts, for a program that cannot ask Go: a WebAssembly component.
const SCRIPTS: &str = "TIDEPOOL_PROMQL_SCRIPTS";

/// Set if tests against other programs must not be skipped.
const REQUIRED: &str = "TIDEPOOL_REQUIRE_PEERS";

/// Writes a line that the test harness does not capture.
pub fn say(text: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "promqltest: {text}");
}

/// Directory of scripts; `None` if it is absent and not required.
pub fn scripts() -> Option<PathBuf> {
    match find() {
        Ok(directory) => Some(directory),
        Err(reason) => {
            assert!(
                std::env::var_os(REQUIRED).is_none(),
                "upstream's scripts are missing: {reason}"
            );
            say(&format!("SKIPPED: upstream's scripts are missing: {reason}"));
            None
        }
    }
}

fn find() -> Result<PathBuf, String> {
    if let Some(directory) = std::env::var_os(SCRIPTS) {
        return existing(PathBuf::from(directory));
    }
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/go.mod");
    let text = std::fs::read_to_string(&manifest).map_err(|error| error.to_string())?;
    let mut words = text.lines().filter_map(|line| line.trim().split_once(' '));
    let (_, version) = words.find(|(module, _)| *module == MODULE).ok_or("no version in go.mod")?;
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output();
    let output = output.map_err(|error| format!("go: {error}"))?;
    let cache = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = version.split_whitespace().next().unwrap_or_default();
    let directory = format!("{cache}/{MODULE}@{version}/promql/promqltest/testdata");
    existing(PathBuf::from(directory))
}

fn existing(directory: PathBuf) -> Result<PathBuf, String> {
    match directory.is_dir() {
        true => Ok(directory),
        false => Err(format!("{} is not there (go mod download)", directory.display())),
    }
}
