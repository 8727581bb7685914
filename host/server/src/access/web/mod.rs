//! Prometheus' web configuration file (prometheus/exporter-toolkit, `web/tls_config.go`): TLS,
//! users and HTTP settings in one file, reloaded when it changes.
//!
//! ```yaml
//! tls_server_config: {cert_file: node.crt, key_file: node.key}
//! http_server_config: {headers: {X-Frame-Options: deny}}
//! basic_auth_users: {anna: $2y$10$…}
//! ```

mod http;
mod section;
mod tls;

use super::credentials::Credentials;
use super::reload::{Files, Reloaded};
use super::tls::Tls;
use super::{AccessConfig, AccessError};
use http::HttpServerConfig;
use hyper::header::{HeaderName, HeaderValue};
use section::WebConfig;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidepool_settings::yaml;

const TLS: &str = "tls_server_config";
const USERS: &str = "basic_auth_users";

/// Parsed content of the file.
pub struct Web {
    path: PathBuf,
    /// TLS, if the file configures it.
    pub tls: Option<WebTls>,
    /// Users of all endpoints; `None` if the file has no users.
    pub users: Option<Arc<Credentials>>,
    pub http2: bool,
    /// Headers added to every response.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// TLS as configured in the file.
pub struct WebTls {
    pub tls: Tls,
    /// Whether each client must present a certificate.
    pub asks_clients: bool,
}

/// Loads the file and refuses settings that flags already have.
pub fn open(path: &Path, flags: &AccessConfig) -> Result<Reloaded<Web>, AccessError> {
    let (path, flags) = (path.to_owned(), flags.clone());
    Reloaded::open(move |files| load(&path, &flags, files))
}

fn load(path: &Path, flags: &AccessConfig, files: &mut Files) -> Result<Web, AccessError> {
    let text = std::str::from_utf8(files.read(path)?);
    let text = text.map_err(|_| AccessError::NoText { path: path.to_owned() })?;
    let config = yaml::load(text).and_then(|node| yaml::read::<WebConfig>("", &node));
    let config = config.map_err(|source| AccessError::Web { path: path.to_owned(), source })?;
    let twice = |section, flags, what| {
        Err(AccessError::Twice { path: path.to_owned(), section, flags, what })
    };
    let users = config.users(path)?.map(Arc::new);
    let HttpServerConfig { http2, headers } = config.http_server_config;
    // Read through `files`, so that a change of a certificate causes a reload as well.
    let tls = tls::open(config.tls_server_config, http2, path, files)?;
    // Refused, because a user could otherwise believe that the ignored setting is in force.
    if tls.is_some() && flags.tls.is_some() {
        return twice(TLS, "--tls-cert-file", "the certificate of this server");
    }
    let AccessConfig { write_credentials, read_credentials, admin_credentials, .. } = flags;
    for (file, flag) in [
        (write_credentials, "--write-credentials-file"),
        (read_credentials, "--read-credentials-file"),
        (admin_credentials, "--admin-credentials-file"),
    ] {
        // Users apply to all endpoints, a credentials file to one kind of access: a conflict.
        if file.is_some() && users.is_some() {
            return twice(USERS, flag, "the credentials of clients");
        }
    }
    Ok(Web { path: path.to_owned(), tls, users, http2, headers })
}

impl Web {
    /// Checks that a new version may replace this one without an explicit reload. A file that is
    /// being written may not yet have the sections that protect the server.
    pub fn may_follow(&self, new: &Web) -> Result<(), AccessError> {
        for (section, is_gone) in [
            (TLS, self.tls.is_some() && new.tls.is_none()),
            (USERS, self.users.is_some() && new.users.is_none()),
        ] {
            if is_gone {
                return Err(AccessError::Unprotected { path: self.path.clone(), section });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
