//! Finds the module that the peers are built of, where Go keeps it.

use std::path::{Path, PathBuf};
use std::process::Command;

const MODULE: &str = "github.com/prometheus/prometheus";

/// Set where tests against other programs must not be skipped.
const REQUIRED: &str = "TIDEPOOL_REQUIRE_PEERS";

/// Returns the directory of the module; `None` if it is absent and not required.
pub fn module() -> Option<PathBuf> {
    match find() {
        Ok(directory) => Some(directory),
        Err(reason) => {
            let is_required = std::env::var_os(REQUIRED).is_some();
            assert!(!is_required, "upstream's files are missing: {reason}");
            eprintln!("SKIPPED: upstream's files are missing: {reason}");
            None
        }
    }
}

fn find() -> Result<PathBuf, String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/go.mod");
    let text = std::fs::read_to_string(&manifest).map_err(|error| error.to_string())?;
    let mut words = text.lines().filter_map(|line| line.trim().split_once(' '));
    let (_, version) = words.find(|(module, _)| *module == MODULE).ok_or("no version in go.mod")?;
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output();
    let output = output.map_err(|error| format!("go: {error}"))?;
    let cache = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = version.split_whitespace().next().unwrap_or_default();
    let directory = PathBuf::from(format!("{cache}/{MODULE}@{version}"));
    match directory.join("cmd/promtool").is_dir() {
        true => Ok(directory),
        false => Err(format!("{} is no folder", directory.display())),
    }
}
