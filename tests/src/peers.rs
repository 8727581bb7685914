//! Where the foreign binaries are: Prometheus and promtool, two generations of each, and others.
//!
//! The older Prometheus comes from Debian's package, all else from the Go modules in `tests/peers`.
//! A missing one is an error that names the command to install it; no test skips itself.

use std::path::{Path, PathBuf};

/// Which Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// 2.x, as Debian packages it.
    V2,
    /// 3.x, as `tests/peers/go.mod` pins it.
    V3,
}

/// A binary that is not there.
#[derive(Debug, thiserror::Error)]
#[error("{path} is missing; install it with: {command}")]
pub struct MissingPeer {
    /// Where it should be.
    pub path: PathBuf,
    /// What installs it.
    pub command: &'static str,
}

impl Release {
    /// Both, the older first.
    pub const ALL: [Release; 2] = [Release::V2, Release::V3];

    /// The server's binary.
    pub fn prometheus(self) -> Result<PathBuf, MissingPeer> {
        self.binary("prometheus")
    }

    /// The command-line tool's binary.
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

/// A binary that `tests/peers/build` builds, by the name that it has there.
pub fn built(name: &str) -> Result<PathBuf, MissingPeer> {
    existing(workspace().join("target/peers").join(name), "tests/peers/build")
}

fn existing(path: PathBuf, command: &'static str) -> Result<PathBuf, MissingPeer> {
    if path.is_file() { Ok(path) } else { Err(MissingPeer { path, command }) }
}

/// Where cargo puts what it builds: this program is in a folder of it.
pub fn target_dir() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let is_target = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    let found = program.ancestors().skip(1).find(is_target);
    found.map_or_else(|| workspace().join("target"), Path::to_path_buf)
}

/// The root of the repository.
pub fn workspace() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests)
}
