//! Errors of access files. No error quotes a file's content.

use super::TlsFiles;
use std::io;
use std::path::{Path, PathBuf};

/// Why TLS or credentials cannot be used as they are.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A file that a flag names cannot be used.
    #[error("{flag}: {source}")]
    Flag {
        /// The flag, with its dashes.
        flag: &'static str,
        /// Why.
        source: Box<AccessError>,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// A line of a credentials file.
    #[error(
        "{}, line {line}: {problem}; a line is `basic USER:PASSWORD`, `basic USER:BCRYPT-HASH`, \
         `bearer TOKEN` or a comment after `#`",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// A credentials file without a credential.
    #[error("{} holds no credential", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A web configuration file that says something wrong.
    #[error("{}:{source}", path.display())]
    Web {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: tidepool_settings::yaml::Error,
    },
    /// A web configuration file that is no text.
    #[error("{} is not UTF-8", path.display())]
    NoText {
        /// The file.
        path: PathBuf,
    },
    /// A section of the web configuration file configures what flags configure, too.
    #[error(
        "{section} in {} and {flags} both configure {what}; remove one of them",
        path.display()
    )]
    Twice {
        /// The file.
        path: PathBuf,
        /// The section.
        section: &'static str,
        /// The flags, with their dashes.
        flags: &'static str,
        /// The setting that both configure.
        what: &'static str,
    },
    /// A section of the web configuration file that protected the server is gone.
    #[error(
        "{} no longer has {section}; to apply this, reload the configuration (SIGHUP)",
        path.display()
    )]
    Unprotected {
        /// The file.
        path: PathBuf,
        /// The section.
        section: &'static str,
    },
    /// PEM that does not hold what it should.
    #[error("{}: {problem}", path.display())]
    Pem {
        /// The file, or a file with the key that holds it.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A certificate and a key that cannot be used together.
    #[error("certificate {} and key {} cannot be used: {source}", certificate.display(), key.display())]
    Tls {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong.
        source: tokio_rustls::rustls::Error,
    },
}

impl AccessError {
    /// Says which flag names the file, for use with `map_err`.
    pub(super) fn by_flag(flag: &'static str) -> impl FnOnce(AccessError) -> AccessError {
        move |source| AccessError::Flag { flag, source: Box::new(source) }
    }

    /// The same, of one of several files.
    pub(super) fn by_tls_flag(files: &TlsFiles) -> impl FnOnce(AccessError) -> AccessError {
        |error| {
            let flag = match error.path() {
                Some(path) if path == files.key => "--tls-key-file",
                Some(path) if path != files.certificate => "--tls-client-ca-file",
                _ => "--tls-cert-file",
            };
            AccessError::by_flag(flag)(error)
        }
    }

    /// The file, if it is about one.
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
