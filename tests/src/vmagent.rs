//! Starts vmagent, VictoriaMetrics' scraper, for comparison.

use crate::peers::{MissingPeer, built};
use crate::process::{Launch, ProcessError, free_address};
use std::path::Path;

pub const NAME: &str = "vmagent";

/// Reason why it did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Missing(#[from] MissingPeer),
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// Returns whether its binary is built.
pub fn is_installed() -> bool {
    built(NAME).is_ok()
}

/// Returns the launch with the queue in `queue` and the log beside it; the caller adds the URL of
/// the destination.
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
