//! Starts a real node_exporter for comparison.

use crate::peers::{MissingPeer, built};
use crate::process::{Launch, ProcessError, free_address};
use std::path::Path;

const NAME: &str = "node_exporter";

/// Reason why it cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Missing(#[from] MissingPeer),
    /// No address is free for it.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// Returns the launch of its default collectors, with the log in `directory`.
pub fn launch(directory: &Path) -> Result<Launch, StartError> {
    let address = free_address()?;
    Ok(Launch {
        name: NAME,
        program: built(NAME)?,
        arguments: vec![format!("--web.listen-address={address}").into()],
        address,
        ready_path: "/",
        log_path: directory.join("node_exporter.log"),
    })
}
