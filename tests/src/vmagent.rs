//! Starts vmagent, for comparison.

use crate::peers::{MissingPeer, built};
use crate::process::{Launch, ProcessError, free_address};
use std::path::Path;

/// How errors call it.
pub const NAME: &str = "vmagent";

/// Why it did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It is not built.
    #[error(transparent)]
    Missing(#[from] MissingPeer),
    /// It did not run.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// Whether it is built.
pub fn is_installed() -> bool {
    built(NAME).is_ok()
}

/// What to start, with its queue in `queue` and its log beside it; where it writes to has to be
/// added.
pub fn launch(directory: &Path) -> Result<Launch, StartError> {
    let address = free_address()?;
    let queue = directory.join("queue");
    Ok(Launch {
        name: NAME,
        program: built(NAME)?,
        arguments: vec![
            format!("-httpListenAddr={address}").into(),
            format!("-remoteWrite.tmpDataPath={}", queue.display()).into(),
        ],
        address,
        ready_path: "/health",
        log_path: directory.join("vmagent.log"),
    })
}
