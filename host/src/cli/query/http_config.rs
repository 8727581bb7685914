//! The file of `--http.config.file`: how requests say who sends them, and what TLS needs. Keys are
//! those of Prometheus' HTTP client (`config/http_config.go` in prometheus/common), as far as they are
//! supported; any other is an error.
//!
//! ```yaml
//! basic_auth: {username: reader, password_file: password}
//! tls_config: {ca_file: ca.pem, server_name: node7.example}
//! ```

use crate::cli::CliError;
use crate::yaml;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The file. Paths are relative to its directory.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    basic_auth: Option<BasicAuth>,
    authorization: Option<Authorization>,
    /// What connections by TLS need.
    pub tls_config: TlsFiles,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BasicAuth {
    username: String,
    username_file: Option<PathBuf>,
    password: Secret,
    password_file: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Authorization {
    r#type: String,
    credentials: Secret,
    credentials_file: Option<PathBuf>,
}

impl Default for Authorization {
    fn default() -> Authorization {
        let (credentials, credentials_file) = Default::default();
        Authorization { r#type: "Bearer".into(), credentials, credentials_file }
    }
}

/// Files of certificates and keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsFiles {
    /// Whom the server's certificate must be signed by, instead of whom the system trusts.
    pub ca_file: Option<PathBuf>,
    /// The certificate that this client shows.
    pub cert_file: Option<PathBuf>,
    /// Its private key.
    pub key_file: Option<PathBuf>,
    /// The name that the server's certificate must have, instead of the URL's.
    pub server_name: Option<String>,
}

/// What errors do not show.
#[derive(Default, Deserialize)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<secret>")
    }
}

/// Who sends requests.
#[derive(PartialEq, Eq)]
pub enum Sender {
    /// By name and password.
    Basic(String, String),
    /// The value of the header `Authorization`.
    Header(String),
}

impl HttpConfig {
    /// Reads and checks the file, and who sends requests.
    pub fn open(path: &Path) -> Result<(HttpConfig, Option<Sender>), CliError> {
        let text = read(path)?;
        let named = |what: String| CliError::HttpConfig { path: path.to_owned(), what };
        let wrong = |what: &dyn std::fmt::Display| named(format!(" {what}"));
        // Its own begin with line and column.
        let misread = |error: yaml::Error| named(error.to_string());
        let node = yaml::load(&text).map_err(misread)?;
        let mut config = match node.data {
            yaml::Data::Nothing => HttpConfig::default(),
            _ => yaml::read::<HttpConfig>("", &node).map_err(misread)?,
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let tls = &mut config.tls_config;
        for file in [&mut tls.ca_file, &mut tls.cert_file, &mut tls.key_file].into_iter().flatten()
        {
            *file = folder.join(&file);
        }
        if tls.cert_file.is_some() != tls.key_file.is_some() {
            return Err(wrong(
                &"tls_config: cert_file and key_file belong together: give both or none",
            ));
        }
        let sender = config.sender(folder, &wrong)?;
        Ok((config, sender))
    }

    fn sender(
        &self,
        folder: &Path,
        wrong: &dyn Fn(&dyn std::fmt::Display) -> CliError,
    ) -> Result<Option<Sender>, CliError> {
        let one_of = |text: &str, file: &Option<PathBuf>, keys: &str| match (text, file) {
            (text, None) => Ok(text.to_owned()),
            ("", Some(file)) => Ok(read(&folder.join(file))?.trim().to_owned()),
            _ => Err(wrong(&format!("{keys}: only one of them is allowed"))),
        };
        Ok(match (&self.basic_auth, &self.authorization) {
            (Some(_), Some(_)) => {
                return Err(wrong(&"basic_auth and authorization: only one of them is allowed"));
            }
            (Some(basic), None) => Some(Sender::Basic(
                one_of(&basic.username, &basic.username_file, "username and username_file")?,
                one_of(&basic.password.0, &basic.password_file, "password and password_file")?,
            )),
            (None, Some(given)) => {
                let kind = given.r#type.trim();
                if kind.eq_ignore_ascii_case("basic") {
                    return Err(wrong(&"authorization: use basic_auth for the type Basic"));
                }
                let keys = "credentials and credentials_file";
                let secret = one_of(&given.credentials.0, &given.credentials_file, keys)?;
                let kind = if kind.is_empty() { "Bearer" } else { kind };
                Some(Sender::Header(format!("{kind} {secret}")))
            }
            (None, None) => None,
        })
    }
}

fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(CliError::file("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(text: &str) -> Result<(HttpConfig, Option<Sender>), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = folder.path().join("http.yml");
        std::fs::write(folder.path().join("secret"), "s3cret\n")
            .map_err(|error| error.to_string())?;
        std::fs::write(&path, text).map_err(|error| error.to_string())?;
        HttpConfig::open(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn senders_are_read() {
        let basic = Sender::Basic("me".into(), "s3cret".into());
        for (text, expected) in [
            ("", None),
            ("basic_auth: {username: me, password: s3cret}", Some(basic)),
            (
                "basic_auth: {username_file: secret, password_file: secret}",
                Some(Sender::Basic("s3cret".into(), "s3cret".into())),
            ),
            ("authorization: {credentials: abc}", Some(Sender::Header("Bearer abc".into()))),
            (
                "authorization: {type: Token, credentials_file: secret}",
                Some(Sender::Header("Token s3cret".into())),
            ),
        ] {
            let sender = opened(text).map(|(_, sender)| sender == expected);
            assert_eq!(sender, Ok(true), "{text}");
        }
        let tls =
            opened("tls_config: {ca_file: ca.pem}").map(|(config, _)| config.tls_config.ca_file);
        let file = tls.ok().flatten().expect("a file");
        assert!(file.is_absolute() && file.ends_with("ca.pem"), "{}", file.display());
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (text, why) in [
            (
                "proxy_url: http://proxy",
                "1:1: proxy_url: there is no such key; there are basic_auth",
            ),
            ("tls_config: {insecure_skip_verify: true}", "tls_config.insecure_skip_verify"),
            ("tls_config: {cert_file: a}", "cert_file and key_file belong together"),
            ("basic_auth: {}\nauthorization: {credentials: a}", "only one of them"),
            ("basic_auth: {password: s3cret, password_file: secret}", "only one of them"),
            ("authorization: {type: basic, credentials: a}", "use basic_auth"),
            ("authorization: {credentials_file: none}", "none: No such file"),
            ("basic_auth: [", "this is not YAML"),
        ] {
            let error = opened(text).map(|_| ()).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
