//! The section `tls_server_config` of the web configuration.

use super::super::AccessError;
use super::super::reload::Files;
use super::super::tls::{MustShow, Parts, Pem, Terms, acceptor};
use super::section::refused;
use super::{TLS, WebTls};
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use tidepool_settings::yaml;
use tokio_rustls::rustls::crypto::SupportedKxGroup;
use tokio_rustls::rustls::crypto::ring::{ALL_CIPHER_SUITES, default_provider, kx_group};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};

/// The section's keys. An empty text means that the key is absent.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TlsServerConfig {
    cert: String,
    cert_file: PathBuf,
    key: String,
    key_file: PathBuf,
    client_ca: String,
    client_ca_file: PathBuf,
    #[serde(deserialize_with = "client_auth")]
    client_auth_type: Option<ClientAuth>,
    #[serde(rename = "client_allowed_sans", deserialize_with = "no_allowed_sans")]
    _client_allowed_sans: (),
    #[serde(deserialize_with = "version")]
    min_version: Version,
    #[serde(deserialize_with = "version")]
    max_version: Version,
    cipher_suites: Vec<CipherSuite>,
    curve_preferences: Vec<Curve>,
    prefer_server_cipher_suites: bool,
}

/// Whether clients must present a certificate, under the names of Go's `crypto/tls`.
#[derive(Clone, Copy)]
enum ClientAuth {
    NoClientCert,
    VerifyClientCertIfGiven,
    RequireAndVerifyClientCert,
}

type Version = &'static SupportedProtocolVersion;

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct CipherSuite(SupportedCipherSuite);

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Curve(&'static dyn SupportedKxGroup);

impl Default for TlsServerConfig {
    fn default() -> TlsServerConfig {
        TlsServerConfig {
            cert: String::new(),
            cert_file: PathBuf::new(),
            key: String::new(),
            key_file: PathBuf::new(),
            client_ca: String::new(),
            client_ca_file: PathBuf::new(),
            client_auth_type: None,
            _client_allowed_sans: (),
            min_version: &TLS12,
            max_version: &TLS13,
            cipher_suites: Vec::new(),
            curve_preferences: Vec::new(),
            prefer_server_cipher_suites: true,
        }
    }
}

fn client_auth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ClientAuth>, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "" => Ok(None),
        "NoClientCert" => Ok(Some(ClientAuth::NoClientCert)),
        "VerifyClientCertIfGiven" => Ok(Some(ClientAuth::VerifyClientCertIfGiven)),
        "RequireAndVerifyClientCert" => Ok(Some(ClientAuth::RequireAndVerifyClientCert)),
        // In these modes, Go accepts certificates without verifying them.
        "RequestClientCert" | "RequireAnyClientCert" | "RequireClientCert" => Err(format!(
            "{text} is not supported, as it verifies nothing; use RequireAndVerifyClientCert"
        )),
        _ => Err("expected NoClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert"
            .to_owned()),
    })
}

fn no_allowed_sans<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    refused(deserializer, "not supported: use a CA that signs only the clients that may connect")
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "TLS12" => Ok(&TLS12),
        "TLS13" => Ok(&TLS13),
        "TLS10" | "TLS11" => Err(format!("{text} is not supported; use TLS12 or TLS13")),
        _ => Err("expected TLS12 or TLS13".to_owned()),
    })
}

/// Returns the name of a cipher suite in Go, which omits the version from TLS 1.3 suites.
fn go_name(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
}

impl TryFrom<String> for CipherSuite {
    type Error = String;

    fn try_from(text: String) -> Result<CipherSuite, String> {
        let suite = ALL_CIPHER_SUITES.iter().find(|suite| go_name(suite) == text);
        suite.copied().map(CipherSuite).ok_or_else(|| {
            let known: Vec<String> = ALL_CIPHER_SUITES.iter().map(go_name).collect();
            format!("{text:?} is not supported; supported values: {}", known.join(", "))
        })
    }
}

impl TryFrom<String> for Curve {
    type Error = String;

    fn try_from(text: String) -> Result<Curve, String> {
        match text.as_str() {
            "X25519" => Ok(Curve(kx_group::X25519)),
            "CurveP256" => Ok(Curve(kx_group::SECP256R1)),
            "CurveP384" => Ok(Curve(kx_group::SECP384R1)),
            _ => Err(format!(
                "{text:?} is not supported; supported values: X25519, CurveP256, CurveP384"
            )),
        }
    }
}

impl TlsServerConfig {
    fn is_set(&self) -> bool {
        let files = [&self.cert_file, &self.key_file, &self.client_ca_file];
        let texts = [&self.cert, &self.key, &self.client_ca];
        // As in upstream, parameters such as cipher suites do not enable TLS by themselves.
        files.iter().any(|file| !file.as_os_str().is_empty())
            || texts.iter().any(|text| !text.is_empty())
            || self.client_auth_type.is_some()
    }

    fn terms(&self, http2: bool) -> Terms {
        let mut provider = default_provider();
        if !self.cipher_suites.is_empty() {
            // As in Go, the TLS 1.3 suites are always enabled.
            let is_listed = |suite: &SupportedCipherSuite| {
                let mut listed = self.cipher_suites.iter().map(|CipherSuite(listed)| listed);
                suite.version().version == ProtocolVersion::TLSv1_3
                    || listed.any(|listed| listed.suite() == suite.suite())
            };
            provider.cipher_suites.retain(is_listed);
        }
        if !self.curve_preferences.is_empty() {
            // The order in the file is the order of preference.
            provider.kx_groups = self.curve_preferences.iter().map(|Curve(group)| *group).collect();
        }
        let number = |version: Version| u16::from(version.version);
        let bounds = number(self.min_version)..=number(self.max_version);
        let mut versions = vec![&TLS13, &TLS12];
        versions.retain(|version| bounds.contains(&number(version)));
        Terms { provider, versions, own_order: self.prefer_server_cipher_suites, http2 }
    }
}

/// Builds TLS if the section configures it. Paths are relative to the directory of the file.
pub(super) fn open(
    config: TlsServerConfig,
    http2: bool,
    path: &Path,
    files: &mut Files,
) -> Result<Option<WebTls>, AccessError> {
    if !config.is_set() {
        return Ok(None);
    }
    let name = |key: &str| PathBuf::from(format!("{}: {TLS}.{key}", path.display()));
    let wrong = |key: &str, problem: &str| AccessError::Pem {
        path: name(key),
        problem: problem.to_owned(),
    };
    let mut pem = |file: &Path, text: &str, key: &str| -> Result<Option<Pem>, AccessError> {
        if !file.as_os_str().is_empty() {
            let file = path.parent().unwrap_or(Path::new("")).join(file);
            let content = files.read(&file)?.to_vec();
            return Ok(Some(Pem { name: file, content }));
        }
        let content = text.as_bytes().to_vec();
        Ok((!text.is_empty()).then(|| Pem { name: name(key), content }))
    };
    let certificate = pem(&config.cert_file, &config.cert, "cert")?;
    let certificate =
        certificate.ok_or_else(|| wrong("cert_file", "neither cert_file nor cert is set"))?;
    let key = pem(&config.key_file, &config.key, "key")?;
    let key = key.ok_or_else(|| wrong("key_file", "neither key_file nor key is set"))?;
    let client_ca = pem(&config.client_ca_file, &config.client_ca, "client_ca")?;
    let must_show = match config.client_auth_type {
        None | Some(ClientAuth::NoClientCert) => None,
        Some(ClientAuth::VerifyClientCertIfGiven) => Some(MustShow::None),
        Some(ClientAuth::RequireAndVerifyClientCert) => Some(MustShow::Each),
    };
    // One without the other is a mistake, because clients would not be verified as intended.
    if client_ca.is_some() != must_show.is_some() {
        let problem = "it must verify clients if, and only if, client_ca_file or client_ca is set";
        return Err(wrong("client_auth_type", problem));
    }
    let terms = config.terms(http2);
    if terms.versions.is_empty() {
        return Err(wrong("min_version", "it is higher than max_version"));
    }
    let clients = client_ca.zip(must_show);
    let asks_clients = must_show == Some(MustShow::Each);
    let tls = acceptor(Parts { certificate, key, clients, terms })?;
    Ok(Some(WebTls { tls, asks_clients }))
}
