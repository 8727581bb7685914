//! Paths of the foreign binaries: Prometheus and promtool, two generations of each, and others.
//!
//! The older Prometheus comes from Debian's package, most others from the Go modules in
//! `tests/peers`. A missing one is an error that names the command to install it; no test skips
//! itself. `tests/run --quick` has none of them: looking for one panics there, so that every test
//! that needs one is in `tests/tests/peers`, which is left out.

use crate::built::{target_dir, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set while `tests/run --quick` runs the tests.
const QUICK_VARIABLE: &str = "TIDEPOOL_QUICK";

/// Release of Prometheus under comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// 2.x, as Debian packages it.
    V2,
    /// 3.x, as `tests/peers/go.mod` pins it.
    V3,
}

/// Error for a binary that is missing.
#[derive(Debug, thiserror::Error)]
#[error("{path} is missing; install it with: {command}")]
pub struct MissingPeer {
    /// Expected path of the binary.
    pub path: PathBuf,
    /// Command that installs the binary.
    pub command: &'static str,
}

impl Release {
    /// Both releases, the older one first.
    pub const ALL: [Release; 2] = [Release::V2, Release::V3];

    /// Returns the path of the server's binary.
    pub fn prometheus(self) -> Result<PathBuf, MissingPeer> {
        self.binary("prometheus")
    }

    /// Returns the path of the command-line tool's binary.
    pub fn promtool(self) -> Result<PathBuf, MissingPeer> {
        self.binary("promtool")
    }

    fn binary(self, name: &str) -> Result<PathBuf, MissingPeer> {
        match self {
            Release::V2 => existing(Path::new("/usr/bin").join(name), "apt-get install prometheus"),
            Release::V3 => built(name),
        }
    }
}

/// Returns the folder of a Go module whose version `tests/peers/go.mod` pins.
pub fn go_module(module: &str) -> Result<PathBuf, MissingPeer> {
    go_module_of(".", module)
}

/// Returns the folder of a module that another `go.mod` below `tests/peers` pins.
pub fn go_module_of(folder: &str, module: &str) -> Result<PathBuf, MissingPeer> {
    let folder = workspace().join("tests/peers").join(folder);
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .current_dir(&folder)
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let found: serde_json::Value = serde_json::from_slice(&output).unwrap_or_default();
    let path = found["Dir"].as_str().map(PathBuf::from).unwrap_or_else(|| folder.join(module));
    let command = "Go, and `go mod download` in tests/peers";
    if path.is_dir() { Ok(path) } else { Err(MissingPeer { path, command }) }
}

/// Returns a binary that `tests/peers/build` builds, by its name there.
pub fn built(name: &str) -> Result<PathBuf, MissingPeer> {
    existing(target_dir().join("peers").join(name), "tests/peers/build")
}

/// Returns Python with the packages of an environment that `tests/venv` makes, by its folder in
/// `target`.
pub fn python(environment: &'static str) -> Result<PathBuf, MissingPeer> {
    let path = target_dir().join(environment).join("bin/python");
    existing(path, "tests/venv, for this folder and its list in tests/*/requirements.txt")
}

/// Returns a tool that `tests/run` installs with cargo.
pub fn tool(name: &str) -> Result<PathBuf, MissingPeer> {
    existing(target_dir().join("tools/bin").join(name), "tests/run rust")
}

/// Returns the example of a plugin in Python, which is built with Python's tools.
pub fn python_plugin() -> Result<PathBuf, MissingPeer> {
    let folder = workspace().join("examples/plugins/lookup-py");
    existing(folder.join("lookup_py.wasm"), "examples/plugins/lookup-py/build")
}

/// # Panics
///
/// If `tests/run --quick` runs, which excludes foreign programs.
fn existing(path: PathBuf, command: &'static str) -> Result<PathBuf, MissingPeer> {
    if std::env::var_os(QUICK_VARIABLE).is_some() {
        let path = path.display();
        panic!("{path} is a foreign program: move this test to tests/tests/peers");
    }
    if path.is_file() { Ok(path) } else { Err(MissingPeer { path, command }) }
}
