//! Errors of collectors, which all read small files or call the system, and parse the text.

use std::io;
use std::path::{Path, PathBuf};

/// Number of characters of a line that an error quotes.
const QUOTE_CHARS: usize = 80;

/// Error of a collector. Its `node_scrape_collector_success` is 0 then; all others continue.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The machine has nothing of the kind, such as sensors: worth a debug message only.
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
        /// Size limit of a file.
        bytes_max: usize,
    },
    #[error("{}:{line}: expected {expected}, found {found:?}", path.display())]
    Malformed {
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        expected: &'static str,
        /// Text that was found, shortened.
        found: String,
    },
    #[error("{call}: {source}")]
    Call {
        /// Name of the system call.
        call: &'static str,
        source: io::Error,
    },
}

/// Fault found by a parser, before the file is known.
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
    /// Creates a fault. `line` counts from 0, as iterators do.
    pub(crate) fn new(line: usize, expected: &'static str, found: &str) -> Malformed {
        let found = found.chars().take(QUOTE_CHARS).collect();
        Malformed { line: line + 1, expected, found }
    }

    pub(crate) fn of(self, path: &Path) -> CollectError {
        let Malformed { line, expected, found } = self;
        CollectError::Malformed { path: path.to_owned(), line, expected, found }
    }
}
