//! Errors of collectors: reading a small file, calling the system, or parsing text has failed.

use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of characters of a line that an error quotes.
const QUOTE_CHARS: usize = 80;

/// Error of a collector. It sets `node_scrape_collector_success` to 0; other collectors continue.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The machine has nothing of this kind, such as no sensors. Only logged at debug level.
    #[error("there is nothing to collect: {0}")]
    NoData(&'static str),
    #[error("{}: cannot be read: {source}; check that this root is mounted here", path.display())]
    Read {
        /// Path of the file or directory.
        path: PathBuf,
        source: io::Error,
    },
    #[error("{}: has more than {bytes_max} bytes", path.display())]
    TooLarge {
        path: PathBuf,
        /// Maximum size of a file in bytes.
        bytes_max: usize,
    },
    #[error("{}:{line}: expected {expected}, found {found:?}", path.display())]
    Malformed {
        path: PathBuf,
        /// Number of the line, counted from 1.
        line: usize,
        expected: &'static str,
        /// Text that was found, cut if it is long.
        found: String,
    },
    #[error("{call}: {source}")]
    Call {
        /// Name of the system call.
        call: &'static str,
        source: io::Error,
    },
}

/// Error of a parser, which does not know the file's path.
#[derive(Debug)]
pub(crate) struct Malformed {
    line: usize,
    expected: &'static str,
    found: String,
}

pub(crate) type Result<T> = std::result::Result<T, CollectError>;

impl CollectError {
    pub(crate) fn read(path: &Path, source: impl Into<io::Error>) -> CollectError {
        CollectError::Read { path: path.to_owned(), source: source.into() }
    }

    /// Returns whether a file does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, CollectError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl Malformed {
    /// Creates an error. `line` is counted from 0.
    pub(crate) fn new(line: usize, expected: &'static str, found: &str) -> Malformed {
        let found = found.chars().take(QUOTE_CHARS).collect();
        Malformed { line: line + 1, expected, found }
    }

    pub(crate) fn of(self, path: &Path) -> CollectError {
        let Malformed { line, expected, found } = self;
        CollectError::Malformed { path: path.to_owned(), line, expected, found }
    }
}
