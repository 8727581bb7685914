//! Why a command could not do its work.

use std::io;
use std::path::PathBuf;
use tidepool_disk::DiskError;
use tidepool_exposition::ReadError;
use tidepool_runtime::{CallError, Error, in_words};
use tidepool_ship::ShipError;
use tidepool_store::CompactionSettingsError;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The data directory cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The engine says no.
    #[error("{}", in_words(.0))]
    Refused(Error),
    /// The engine instance stopped.
    #[error("the engine stopped: {0}")]
    Crashed(String),
    /// The engine instance needed more memory than it may have.
    #[error("the engine ran out of memory; allow it more with --memory-limit")]
    Memory,
    /// The WebAssembly runtime could not be started.
    #[error("the engine could not be started: {0}")]
    Runtime(String),
    /// The program does not carry the viewer.
    #[cfg(feature = "ui")]
    #[error(
        "there is no viewer in this program: {0}. With npm on the machine that builds it, cargo build \
         makes it; `npm run build:viewer` in js/ui makes one, too"
    )]
    NoViewer(&'static str),
    /// A person would get two megabytes on the screen.
    #[cfg(feature = "ui")]
    #[error("standard output is a terminal; write a file: tidepool viewer > viewer.html")]
    ViewerOnTerminal,
    /// There is nothing to analyze.
    #[error(
        "{} holds no {}; `tidepool tsdb list` shows what there is",
        dir.display(),
        block.as_ref().map_or("block".to_owned(), |block| format!("sound block {block}"))
    )]
    NoBlock {
        /// The data directory.
        dir: PathBuf,
        /// The block that was asked for.
        block: Option<String>,
    },
    /// A text to be imported is wrong.
    #[error("nothing was imported: {name}: {source}")]
    Text {
        /// The file's name, or that it is standard input.
        name: String,
        /// Where, and what is wrong.
        source: ReadError,
    },
    /// An import reaches into the time of the head.
    #[error(
        "nothing was imported: its newest sample, at {newest_ms} ms, is not before the oldest that \
         is only in the logs, at {head_ms} ms; run `tidepool tsdb compact --head` first"
    )]
    ImportIntoHead {
        /// Newest time to be imported.
        newest_ms: i64,
        /// Oldest time in the head.
        head_ms: i64,
    },
    /// The log of a data directory is to be restored into the same one.
    #[error(
        "{} is the data directory itself; name one of the logs in its set-aside",
        dir.display()
    )]
    RestoreOfItself {
        /// The directory.
        dir: PathBuf,
    },
    /// A block without a sound `meta.json`.
    #[error("the meta.json of {} cannot be read; `tidepool tsdb verify` says more", path.display())]
    NoMeta {
        /// The block.
        path: PathBuf,
    },
    /// An import reaches far beyond now.
    #[error(
        "nothing was imported: its newest sample, at {newest_ms} ms, is ahead of this machine's \
         clock by more than --max-future; in OpenMetrics times are seconds, in Prometheus' text \
         milliseconds"
    )]
    ImportFromFuture {
        /// Newest time to be imported.
        newest_ms: i64,
    },
    /// The settings that the node left cannot be used.
    #[error(transparent)]
    Settings(#[from] CompactionSettingsError),
    /// It is not known which blocks wait for an upload.
    #[error("nothing was changed, because it is not known which blocks wait for an upload: {0}")]
    Waiting(ShipError),
    /// A server works in the data directory that is asked.
    #[error(
        "a server is running on {}: it has samples in memory that are not to be read here. Ask the \
         server, as in `tidepool query instant http://127.0.0.1:9201 EXPR`, or stop it",
        dir.display()
    )]
    Served {
        /// The data directory.
        dir: PathBuf,
    },
    /// The file of `--http.config.file` is wrong.
    #[error("{}:{what}", path.display())]
    HttpConfig {
        /// Which file.
        path: PathBuf,
        /// Line and column where they are known, and what is wrong.
        what: String,
    },
    /// No request to a server can be made.
    #[error("{0}")]
    Request(String),
    /// Standard output does not take what is written.
    #[error("could not write to standard output: {0}")]
    Output(io::Error),
    /// A file that is not part of the data directory.
    #[error("could not {action} {path}: {source}")]
    File {
        /// What was tried.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
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
    /// Turns an operating system's error into one that names the file, for use with `map_err`.
    pub(super) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> CliError {
        move |source| CliError::File { action, path: path.into(), source }
    }
}
