//! Starts VictoriaMetrics as one process, for comparison.

use crate::http::{Client, HttpError};
use crate::peers::{MissingPeer, built};
use crate::process::{Launch, ProcessError, Server, free_address};
use std::ffi::OsString;
use std::path::Path;

pub const NAME: &str = "VictoriaMetrics";
const BINARY: &str = "victoria-metrics";

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
    built(BINARY).is_ok()
}

/// Returns the launch with the data in `data` and the log beside it; it keeps data of any age, and
/// shows accepted samples at once.
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

/// Makes accepted samples visible to queries.
pub fn flush(server: &Server) -> Result<(), HttpError> {
    Client::default().get(&format!("{}/internal/force_flush", server.url())).map(|_| ())
}

/// Merges all parts as far as possible, and waits for the end.
pub fn merge(server: &Server) -> Result<(), HttpError> {
    Client::default().get(&format!("{}/internal/force_merge", server.url())).map(|_| ())
}
