//! Errors of access files. No error quotes the content of a file.

use super::TlsFiles;
use std::io;
use std::path::{Path, PathBuf};

/// Errors of TLS and credentials files.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The file named by a flag cannot be used.
    #[error("{flag}: {source}")]
    Flag {
        /// The flag, with its dashes.
        flag: &'static str,
        source: Box<AccessError>,
    },
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// Path of the file that cannot be read.
        path: PathBuf,
        source: io::Error,
    },
    /// A line of a credentials file is invalid.
    #[error(
        "{}, line {line}: {problem}; a line is `basic USER:PASSWORD`, `basic USER:BCRYPT-HASH`, \
         `bearer TOKEN` or a comment after `#`",
        path.display()
    )]
    Line {
        path: PathBuf,
        /// Number of the line, counted from 1.
        line: usize,
        problem: &'static str,
    },
    /// A credentials file has no credential.
    #[error("{} holds no credential", path.display())]
    Empty {
        /// Path of the file without credentials.
        path: PathBuf,
    },
    /// A web configuration file is invalid.
    #[error("{}:{source}", path.display())]
    Web {
        path: PathBuf,
        /// Problem and position in the file.
        source: tidepool_settings::yaml::Error,
    },
    /// A web configuration file is not UTF-8.
    #[error("{} is not UTF-8", path.display())]
    NoText {
        /// Path of the file that is not text.
        path: PathBuf,
    },
    /// A section of the web configuration repeats a setting of flags.
    #[error(
        "{section} in {} and {flags} both configure {what}; remove one of them",
        path.display()
    )]
    Twice {
        path: PathBuf,
        section: &'static str,
        /// The flags, with their dashes.
        flags: &'static str,
        /// The setting that both configure.
        what: &'static str,
    },
    /// A section of the web configuration that protected the server was removed.
    #[error(
        "{} no longer has {section}; to apply this, reload the configuration (SIGHUP)",
        path.display()
    )]
    Unprotected {
        path: PathBuf,
        /// Name of the section that is missing.
        section: &'static str,
    },
    /// A PEM file has no usable certificate or key.
    #[error("{}: {problem}", path.display())]
    Pem {
        /// The PEM file, or the file and key that contain the PEM text.
        path: PathBuf,
        problem: String,
    },
    /// A certificate and a key cannot be used together.
    #[error("certificate {} and key {} cannot be used: {source}", certificate.display(), key.display())]
    Tls {
        /// Path of the certificate, or its key in the web configuration.
        certificate: PathBuf,
        key: PathBuf,
        source: tokio_rustls::rustls::Error,
    },
}

impl AccessError {
    /// Returns a function for `map_err` that adds the flag by which the file was given.
    pub(super) fn by_flag(flag: &'static str) -> impl FnOnce(AccessError) -> AccessError {
        move |source| AccessError::Flag { flag, source: Box::new(source) }
    }

    /// Same as `by_flag`, with the flag of the TLS file that failed.
    pub(super) fn by_tls_flag(files: &TlsFiles) -> impl FnOnce(AccessError) -> AccessError {
        |error| {
            let flag = match error.path() {
                // Compared in this order, because one file may contain certificate, key and CA.
                Some(path) if path == files.key => "--tls-key-file",
                Some(path) if path != files.certificate => "--tls-client-ca-file",
                _ => "--tls-cert-file",
            };
            AccessError::by_flag(flag)(error)
        }
    }

    /// Path of the file that the error is about.
    fn path(&self) -> Option<&Path> {
        match self {
            AccessError::Flag { source, .. } => source.path(),
            AccessError::Read { path, .. }
            | AccessError::Line { path, .. }
            | AccessError::Empty { path }
            | AccessError::Web { path, .. }
            | AccessError::NoText { path }
            | AccessError::Twice { path, .. }
            | AccessError::Unprotected { path, .. }
            | AccessError::Pem { path, .. } => Some(path),
            AccessError::Tls { .. } => None,
        }
    }
}
