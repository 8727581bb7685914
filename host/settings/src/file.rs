//! Files that a key of the configuration names.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Largest file of a secret, a key or certificates: a bundle of the world's authorities has 300
/// KiB.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} {}: {what}", path.display())]
pub struct FileError {
    /// The key that names it.
    pub key: &'static str,
    /// Which one.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

/// Reads a file of at most [`FILE_BYTES_MAX`] bytes.
pub fn read_file(key: &'static str, path: &Path) -> Result<Vec<u8>, FileError> {
    let failed = |what: String| FileError { key, path: path.to_owned(), what };
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(error.to_string()))?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(failed(format!("it has more than {FILE_BYTES_MAX} bytes"))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_bound() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("bundle");
        let file = File::create(&path)?;
        file.set_len(FILE_BYTES_MAX)?;
        assert_eq!(read_file("ca_file", &path).map(|bytes| bytes.len()), Ok(4 << 20));
        file.set_len(FILE_BYTES_MAX + 1)?;
        let error = read_file("ca_file", &path).map_err(|error| error.to_string());
        let expected = format!("ca_file {}: it has more than 4194304 bytes", path.display());
        assert_eq!(error, Err(expected));
        let missing = read_file("ca_file", &folder.path().join("none")).map(drop);
        assert!(missing.is_err_and(|error| error.what.starts_with("No such file")));
        Ok(())
    }
}
