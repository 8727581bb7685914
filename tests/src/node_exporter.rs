//! Starts a real node_exporter.

use crate::peers::{MissingPeer, built};
use crate::process::{Launch, ProcessError, free_address};
use std::path::Path;

/// How errors call it.
const NAME: &str = "node_exporter";

/// Why it cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It is not built.
    #[error(transparent)]
    Missing(#[from] MissingPeer),
    /// There is no address for it.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// What to start: its default collectors, with its log in `directory`.
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
