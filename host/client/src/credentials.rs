//! The headers that identify the sender of a request. Files are read for each request.

use crate::ClientError;
use crate::config::{Credentials, HeaderConfig};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tidepool_settings::Secret;

/// Returns the value of `Authorization`; `None` without credentials or with OAuth 2.
pub fn authorization(credentials: &Credentials) -> Result<Option<HeaderValue>, ClientError> {
    match credentials {
        Credentials::None | Credentials::OAuth2(_) => Ok(None),
        Credentials::Basic { username, password } => {
            let username = username.read("basic_auth.username_file")?;
            let password = password.read("basic_auth.password_file")?;
            basic("basic_auth", &username, &password).map(Some)
        }
        Credentials::Authorization { kind, credentials } => {
            let secret = credentials.read("authorization.credentials_file")?;
            secret_value("authorization", &format!("{kind} {secret}")).map(Some)
        }
    }
}

/// Encodes name and password (RFC 7617). Errors name `key`.
pub(crate) fn basic(
    key: &'static str,
    username: &str,
    password: &str,
) -> Result<HeaderValue, ClientError> {
    let pair = STANDARD.encode(format!("{username}:{password}"));
    secret_value(key, &format!("Basic {pair}"))
}

/// Creates a header value that is never shown. Errors name `key`.
pub(crate) fn secret_value(key: &'static str, text: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| ClientError::Credentials(key))?;
    value.set_sensitive(true);
    Ok(value)
}
pub fn add_headers(
    to: &mut HeaderMap,
    headers: &[(HeaderName, HeaderConfig)],
) -> Result<(), ClientError> {
    for (name, header) in headers {
        for value in &header.values {
            to.append(name.clone(), value.clone());
        }
        for file in &header.files {
            let text = Secret::File(file.clone()).read("http_headers.files")?;
            to.append(name.clone(), secret_value("http_headers.files", &text)?);
        }
    }
    Ok(())
}
