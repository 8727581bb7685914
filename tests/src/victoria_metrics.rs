//! Starts VictoriaMetrics as one process, for comparison.

use crate::http::{Client, HttpError};
use crate::peers::{MissingPeer, built};
use crate::process::{Launch, ProcessError, Server, free_address};
use std::ffi::OsString;
use std::path::Path;

/// How errors call it.
pub const NAME: &str = "VictoriaMetrics";
const BINARY: &str = "victoria-metrics";

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
    built(BINARY).is_ok()
}

/// What to start, with its data in `data` and its log beside it; it keeps data of any age, and
/// shows what it has at once.
pub fn launch(directory: &Path) -> Result<Launch, StartError> {
    let address = free_address()?;
    let mut data = OsString::from("-storageDataPath=");
    data.push(directory.join("data"));
    Ok(Launch {
        name: NAME,
        program: built(BINARY)?,
        arguments: vec![
            data,
            format!("-httpListenAddr={address}").into(),
            "-retentionPeriod=100y".into(),
            "-search.latencyOffset=0s".into(),
        ],
        address,
        ready_path: "/health",
        log_path: directory.join("victoria-metrics.log"),
    })
}

/// Makes what was just written visible to queries.
pub fn flush(server: &Server) -> Result<(), HttpError> {
    Client::default().get(&format!("{}/internal/force_flush", server.url())).map(|_| ())
}

/// Merges everything as far as it ever will be, and waits for the end.
pub fn merge(server: &Server) -> Result<(), HttpError> {
    Client::default().get(&format!("{}/internal/force_merge", server.url())).map(|_| ())
}
