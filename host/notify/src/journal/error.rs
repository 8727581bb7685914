//! Errors of the journal. Damage is none: readers skip, count and log it.

use std::io;
use std::path::{Path, PathBuf};
use tidepool_disk::error::Action;

pub type Result<T> = std::result::Result<T, JournalError>;

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("could not {action} {path} of the alert journal: {source}{}", advice(source))]
    Io {
        action: Action,
        /// File or directory of the failed operation.
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "could not start the thread that writes the alert journal: {source}; events stay in \
             memory, and are lost when the program ends"
    )]
    Thread { source: io::Error },
}

impl JournalError {
    /// For `map_err`.
    pub(super) fn on(action: Action, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
        move |source| JournalError::Io { action, path: path.to_owned(), source }
    }
}

fn advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => "; free space on the device, or shorten the retention",
        PermissionDenied => "; check the owner of the data directory",
        ReadOnlyFilesystem => {
            "; the file system is mounted read-only, which may mean that it is failing"
        }
        _ => "",
    }
}
