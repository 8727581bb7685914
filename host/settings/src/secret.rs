//! Values that are never shown.

use crate::file::{FileError, read_file};
use std::fmt;
use std::path::{Path, PathBuf};

/// A value that errors, logs and pages never show.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The value itself, from the configuration.
    Text(String),
    /// Path of a file with the value, which is read each time the secret is needed.
    File(PathBuf),
}

impl Secret {
    /// Makes a secret from a value and a file's path; the error is `both` if both are given.
    pub fn of<E>(
        text: Option<String>,
        file: Option<PathBuf>,
        both: E,
    ) -> Result<Option<Secret>, E> {
        match (text, file) {
            (Some(_), Some(_)) => Err(both),
            (Some(text), None) => Ok(Some(Secret::Text(text))),
            (None, file) => Ok(file.map(Secret::File)),
        }
    }

    /// Resolves a relative path against a directory.
    pub fn set_directory(&mut self, directory: &Path) {
        if let Secret::File(path) = self {
            // `join` keeps an absolute path as it is.
            *path = directory.join(&path);
        }
    }

    /// Reads the secret as bytes. Errors contain `key` and the file's path.
    pub fn read_bytes(&self, key: &'static str) -> Result<Vec<u8>, FileError> {
        match self {
            Secret::Text(text) => Ok(text.clone().into_bytes()),
            Secret::File(path) => read_file(key, path),
        }
    }

    /// Reads the secret as text; a file's content is trimmed. Errors contain `key` and the path.
    pub fn read(&self, key: &'static str) -> Result<String, FileError> {
        match self {
            Secret::Text(text) => Ok(text.clone()),
            Secret::File(path) => {
                let text = String::from_utf8(read_file(key, path)?);
                let what = "it is not text".to_owned();
                let text = text.map_err(|_| FileError { key, path: path.clone(), what })?;
                // Editors end a file with a line break, which is no part of the secret.
                Ok(text.trim().to_owned())
            }
        }
    }
}

/// Prints the path of a file, but never a value.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Text(_) => f.write_str("<secret>"),
            Secret::File(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_each_time() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("secret");
        let secret = Secret::of(None, Some(path.clone()), "both")?.ok_or("no secret")?;
        for text in ["one", "two"] {
            std::fs::write(&path, format!(" {text}\n"))?;
            assert_eq!(secret.read("password_file")?, text);
        }
        std::fs::write(&path, [0xff])?;
        let error = secret.read("password_file").map_err(|error| error.what);
        assert_eq!(error, Err("it is not text".to_owned()));
        Ok(())
    }

    #[test]
    fn it_is_not_shown() {
        let secret = Secret::of(Some("hunter2".into()), None, "both");
        assert_eq!(format!("{secret:?}"), "Ok(Some(<secret>))");
        let both = Secret::of(Some("hunter2".into()), Some("a".into()), "both");
        assert_eq!(both, Err("both"));
    }
}
