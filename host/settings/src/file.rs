//! Files that a key of the configuration names.
//!
//! Files that are read again while the program runs must be regular files, or links to them:
//! opening or reading a pipe could wait without end.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Maximum size of a file of secrets or certificates; a bundle of all public CAs has 300 KiB.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} {}: {what}", path.display())]
pub struct FileError {
    /// The key that names the file.
    pub key: &'static str,
    pub path: PathBuf,
    pub what: String,
}

/// Reads a regular file of at most [`FILE_BYTES_MAX`] bytes.
pub fn read_file(key: &'static str, path: &Path) -> Result<Vec<u8>, FileError> {
    read_regular(path, FILE_BYTES_MAX).map_err(|error| FileError {
        key,
        path: path.to_owned(),
        what: error.to_string(),
    })
}

/// Opens a regular file for reading, without blocking; pipes and devices are errors.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Without the first flag, opening a pipe waits for a writer. Regular files ignore it.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
    // Checked on the open file, because the path may name another file by now.
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Reads a regular file of at most `bytes_max` bytes.
pub fn read_regular(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed detects a longer file, even one that grows meanwhile.
    open_regular(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!("it has more than {bytes_max} bytes"))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe in place of a token blocked all scrapes and the stop of the program.
    #[test]
    fn only_regular_files_are_read() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )?;
        for path in [&*pipe, folder.path(), Path::new("/dev/zero")] {
            let error = read_file("ca_file", path).map_err(|error| error.what);
            assert_eq!(error, Err("it is not a regular file".to_owned()), "{}", path.display());
        }
        std::fs::write(folder.path().join("file"), "text")?;
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("file", &link)?;
        assert_eq!(read_file("ca_file", &link), Ok(b"text".to_vec()));
        Ok(())
    }

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
