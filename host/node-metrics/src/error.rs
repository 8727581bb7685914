//! Why a collector gave nothing, or not all: one error for all of them, since all do the same two
//! things: they read small files and system calls, and they parse what stands there.

use std::io;
use std::path::{Path, PathBuf};

/// How much of a line an error quotes, in characters.
const QUOTE_CHARS: usize = 80;

/// Why a collector failed. Its `node_scrape_collector_success` is 0 then; all others go on.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// This machine has nothing of the kind: no sensors, no such kernel feature. Not worth more
    /// than a debug message.
    #[error("there is nothing to collect: {0}")]
    NoData(&'static str),
    /// A file or directory cannot be read.
    #[error("{}: cannot be read: {source}; check that this root is mounted here", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file has more than is read of one.
    #[error("{}: has more than {bytes_max} bytes", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// How much is read of a file.
        bytes_max: usize,
    },
    /// A file has other text than the kernel writes there.
    #[error("{}:{line}: expected {expected}, found {found:?}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What should stand there.
        expected: &'static str,
        /// What does, shortened.
        found: String,
    },
    /// A system call failed.
    #[error("{call}: {source}")]
    Call {
        /// Which.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// What a parser found, before it is known in which file.
#[derive(Debug)]
pub(crate) struct Malformed {
    line: usize,
    expected: &'static str,
    found: String,
}

/// Of one collector.
pub(crate) type Result<T> = std::result::Result<T, CollectError>;

impl CollectError {
    /// Cannot be read.
    pub(crate) fn read(path: &Path, source: impl Into<io::Error>) -> CollectError {
        CollectError::Read { path: path.to_owned(), source: source.into() }
    }

    /// Is it a file that is not there?
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, CollectError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl Malformed {
    /// `line` counts from 0, as iterators do.
    pub(crate) fn new(line: usize, expected: &'static str, found: &str) -> Malformed {
        let found = found.chars().take(QUOTE_CHARS).collect();
        Malformed { line: line + 1, expected, found }
    }

    /// Says in which file.
    pub(crate) fn of(self, path: &Path) -> CollectError {
        let Malformed { line, expected, found } = self;
        CollectError::Malformed { path: path.to_owned(), line, expected, found }
    }
}
