//! Errors of the commands that need no server.

use std::io;
use std::path::PathBuf;
use tidepool_disk::DiskError;
use tidepool_exposition::ReadError;
use tidepool_runtime::{CallError, Error, in_words};
use tidepool_ship::ShipError;
use tidepool_store::CompactionSettingsError;

#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("{}", in_words(.0))]
    Refused(Error),
    #[error("the engine stopped: {0}")]
    Crashed(String),
    #[error("the engine ran out of memory; allow it more with --memory-limit")]
    Memory,
    #[error("the engine could not be started: {0}")]
    Runtime(String),
    #[cfg(feature = "ui")]
    #[error(
        "there is no viewer in this program: {0}. With npm on the machine that builds it, cargo build \
         makes it; `npm run build:viewer` in js/ui makes one, too"
    )]
    NoViewer(&'static str),
    /// Refused because the page of two megabytes would fill the screen.
    #[cfg(feature = "ui")]
    #[error("standard output is a terminal; write a file: tidepool viewer > viewer.html")]
    ViewerOnTerminal,
    #[error(
        "{} holds no {}; `tidepool tsdb list` shows what there is",
        dir.display(),
        block.as_ref().map_or("block".to_owned(), |block| format!("sound block {block}"))
    )]
    NoBlock {
        dir: PathBuf,
        /// The requested block; `None` if the newest was requested.
        block: Option<String>,
    },
    #[error("nothing was imported: {name}: {source}")]
    Text {
        /// Name of the file, or `standard input`.
        name: String,
        source: ReadError,
    },
    /// The range of the import overlaps the range of the head.
    #[error(
        "nothing was imported: its newest sample, at {newest_ms} ms, is not before the oldest that \
         is only in the logs, at {head_ms} ms; run `tidepool tsdb compact --head` first"
    )]
    ImportIntoHead {
        newest_ms: i64,
        /// Oldest time of the samples that are only in the logs.
        head_ms: i64,
    },
    #[error(
        "{} is the data directory itself; name one of the logs in its set-aside",
        dir.display()
    )]
    RestoreOfItself {
        /// The directory that both operands name.
        dir: PathBuf,
    },
    #[error("the meta.json of {} cannot be read; `tidepool tsdb verify` says more", path.display())]
    NoMeta {
        /// Directory of the block without a valid `meta.json`.
        path: PathBuf,
    },
    #[error(
        "nothing was imported: its newest sample, at {newest_ms} ms, is ahead of this machine's \
         clock by more than --max-future; in OpenMetrics times are seconds, in Prometheus' text \
         milliseconds"
    )]
    ImportFromFuture {
        /// Newest time in the import, in milliseconds.
        newest_ms: i64,
    },
    /// The compaction settings that the node has stored cannot be used.
    #[error(transparent)]
    Settings(#[from] CompactionSettingsError),
    #[error("nothing was changed, because it is not known which blocks wait for an upload: {0}")]
    Waiting(ShipError),
    #[error(
        "a server is running on {}: it has samples in memory that are not to be read here. Ask the \
         server, as in `tidepool query instant http://127.0.0.1:9201 EXPR`, or stop it",
        dir.display()
    )]
    Served {
        /// Data directory that is locked by a server.
        dir: PathBuf,
    },
    #[error("{}:{what}", path.display())]
    HttpConfig {
        path: PathBuf,
        /// Line and column if known, and the reason.
        what: String,
    },
    #[error("{0}")]
    Request(String),
    #[error("could not write to standard output: {0}")]
    Output(io::Error),
    /// A file outside the data directory could not be used.
    #[error("could not {action} {path}: {source}")]
    File {
        /// Operation that failed, as a verb for the message.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl From<CallError> for CliError {
    fn from(error: CallError) -> CliError {
        match error {
            CallError::Refused(error) => CliError::Refused(error),
            CallError::Memory(_) => CliError::Memory,
            ended => CliError::Crashed(ended.to_string()),
        }
    }
}

impl CliError {
    /// Returns a function for `map_err` that adds the operation and the file to an error.
    pub(super) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> CliError {
        move |source| CliError::File { action, path: path.into(), source }
    }
}
