//! URLs of receivers, which are secrets: many have their token in the path.

use std::fmt;
use std::path::Path;
use tidepool_settings::{FileError, Secret};
use url::Url;

/// A URL in the configuration, or in a file that is read for each request. `Debug` shows at most
/// the path of the file.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(Secret);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretUrlError {
    #[error(transparent)]
    File(#[from] FileError),
    /// No part of the text is shown.
    #[error("expected a URL such as https://HOST/PATH")]
    NoUrl,
}

impl SecretUrl {
    pub(super) fn of(secret: Secret) -> Result<SecretUrl, SecretUrlError> {
        if let Secret::Text(text) = &secret {
            parse(text)?;
        }
        Ok(SecretUrl(secret))
    }

    /// Parses a URL that is no file's.
    pub fn parse(text: &str) -> Result<SecretUrl, SecretUrlError> {
        SecretUrl::of(Secret::Text(text.to_owned()))
    }

    pub(super) fn set_directory(&mut self, directory: &Path) {
        self.0.set_directory(directory);
    }

    /// Blocking if the URL is in a file.
    pub fn read(&self) -> Result<Url, SecretUrlError> {
        parse(&self.0.read("url_file")?)
    }

    pub fn is_in_file(&self) -> bool {
        matches!(self.0, Secret::File(_))
    }
}

fn parse(text: &str) -> Result<Url, SecretUrlError> {
    let url = Url::parse(text).map_err(|_| SecretUrlError::NoUrl)?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
    if is_http && url.port() != Some(0) { Ok(url) } else { Err(SecretUrlError::NoUrl) }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
