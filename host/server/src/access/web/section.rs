//! Sections of the web configuration file, except those in [`super::tls`] and [`super::http`].

use super::super::AccessError;
use super::super::credentials::{Credentials, check_hash};
use super::USERS;
use super::http::HttpServerConfig;
use super::tls::TlsServerConfig;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::path::Path;
use tidepool_settings::yaml;

/// The file as a whole.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WebConfig {
    pub tls_server_config: TlsServerConfig,
    pub http_server_config: HttpServerConfig,
    #[serde(deserialize_with = "yaml::pairs")]
    pub basic_auth_users: Vec<(String, PasswordHash)>,
    #[serde(rename = "rate_limit", deserialize_with = "no_rate_limit")]
    _rate_limit: (),
}

/// A bcrypt hash of a password.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct PasswordHash(String);

impl TryFrom<String> for PasswordHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<PasswordHash, &'static str> {
        check_hash(&text).map(|()| PasswordHash(text))
    }
}

impl WebConfig {
    /// Returns the credentials of the users; `None` if the file has no users.
    pub fn users(&self, path: &Path) -> Result<Option<Credentials>, AccessError> {
        if self.basic_auth_users.is_empty() {
            return Ok(None);
        }
        let users = self.basic_auth_users.iter();
        let users = users.map(|(user, PasswordHash(hash))| (user.clone(), hash.clone()));
        // The only error is a failing random generator, which has no position in the file.
        Credentials::of_users(users.collect()).map(Some).map_err(|what| {
            let source = yaml::Error::new(yaml::Position { line: 1, column: 1 }, USERS, what);
            AccessError::Web { path: path.to_owned(), source }
        })
    }
}

/// Refuses an unsupported setting, and names an alternative.
pub(super) fn refused<'de, D: Deserializer<'de>>(
    deserializer: D,
    instead: &str,
) -> Result<(), D::Error> {
    IgnoredAny::deserialize(deserializer)?;
    Err(D::Error::custom(instead))
}

fn no_rate_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    refused(deserializer, "not supported: use --max-connections and --max-inflight-bytes")
}
