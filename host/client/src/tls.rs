//! Creates TLS settings from a configuration: certificates and keys, trust, versions.

use crate::config::{TlsConfig, TlsVersion};
use crate::{ClientError, trust};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tidepool_settings::{FileError, Secret};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

/// Names of the file keys in errors.
const CA_FILE: &str = "tls_config.ca_file";
const CERT_FILE: &str = "tls_config.cert_file";
const KEY_FILE: &str = "tls_config.key_file";

const NO_AUTHORITY: &str = "this system trusts no certificate authority, so no server can be reached \
     by https; install its certificates, or name one in tls_config.ca_file";

/// State of files, which differs after a change: for each file its inode, length, modification time
/// and change time; `None` for an inaccessible file.
pub(crate) type Stamps = Vec<Option<[i64; 6]>>;

/// TLS settings, created at first use: loading the system's trust store costs time and memory.
pub struct LazyTls {
    config: TlsConfig,
    offers_http2: bool,
    made: OnceLock<Arc<ClientConfig>>,
}

impl LazyTls {
    pub fn new(config: &TlsConfig, offers_http2: bool) -> LazyTls {
        LazyTls { config: config.clone(), offers_http2, made: OnceLock::new() }
    }

    /// Returns the settings; the first call creates them.
    pub fn get(&self) -> Result<Arc<ClientConfig>, ClientError> {
        if let Some(made) = self.made.get() {
            return Ok(Arc::clone(made));
        }
        let mut made = client_config(&self.config)?;
        if self.offers_http2 {
            made.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        }
        // If another thread was faster, its settings are used.
        Ok(Arc::clone(self.made.get_or_init(|| Arc::new(made))))
    }

    /// Returns the name that a server's certificate must have.
    pub fn server_name(&self, host: &str) -> Result<ServerName<'static>, ClientError> {
        let name = self.config.server_name.as_deref().unwrap_or(host);
        ServerName::try_from(name.to_owned()).map_err(|_| ClientError::ServerName(name.to_owned()))
    }
}

/// Returns the current state of the certificate and key files.
pub(crate) fn stamps(config: &TlsConfig) -> Stamps {
    let stamp = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        // The value is only compared, so a wrong sign does no harm.
        let inode = i64::from_ne_bytes(meta.ino().to_ne_bytes());
        let size = i64::try_from(meta.size()).unwrap_or(i64::MAX);
        Some([inode, size, meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()])
    };
    config.files().map(stamp).collect()
}

/// Returns settings that trust the system's certificate authorities.
pub fn system_config() -> Result<ClientConfig, ClientError> {
    client_config(&TlsConfig::default())
}

fn client_config(tls: &TlsConfig) -> Result<ClientConfig, ClientError> {
    let wrong = |error: &dyn std::fmt::Display| ClientError::Tls(error.to_string());
    let provider = Arc::new(default_provider());
    // The CA file is read even if nothing is verified, so that a wrong file is reported.
    let roots = match &tls.ca {
        Some(ca) => Arc::new(roots_of(ca)?),
        None => system_roots(),
    };
    let versions = versions(tls);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(|error| wrong(&error))?;
    let verifier = match tls.insecure_skip_verify {
        // The library rejects an empty trust store.
        false if !roots.is_empty() => {
            trust::servers(roots, provider).map_err(|error| wrong(&error))?
        }
        false => return Err(ClientError::Tls(NO_AUTHORITY.to_owned())),
        true => trust::any_server(provider),
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    match &tls.client {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key)) => {
            let read = PrivateKeyDer::from_pem_slice(&key.read_bytes(KEY_FILE)?);
            let read =
                read.map_err(|_| unusable(KEY_FILE, key, "it holds no private key in PEM".into()))?;
            let chain = certificates(CERT_FILE, certificate)?;
            builder.with_client_auth_cert(chain, read).map_err(|error| {
                let what = match certificate {
                    Secret::File(path) => format!("with {}: {error}", path.display()),
                    Secret::Text(_) => error.to_string(),
                };
                unusable(KEY_FILE, key, what)
            })
        }
    }
}

fn versions(tls: &TlsConfig) -> Vec<&'static SupportedProtocolVersion> {
    let is_spoken = |version: TlsVersion| {
        tls.min_version.is_none_or(|min| min <= version)
            && tls.max_version.is_none_or(|max| version <= max)
    };
    let all = [(TlsVersion::Tls13, &TLS13), (TlsVersion::Tls12, &TLS12)];
    all.into_iter().filter(|(version, _)| is_spoken(*version)).map(|(_, known)| known).collect()
}

/// Returns an error about a file, or about the text given instead of the file.
fn unusable(key: &'static str, pem: &Secret, what: String) -> ClientError {
    match pem {
        Secret::File(path) => FileError { key, path: path.clone(), what }.into(),
        Secret::Text(_) => ClientError::Pem { key: key.strip_suffix("_file").unwrap_or(key), what },
    }
}

fn certificates(
    key: &'static str,
    pem: &Secret,
) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let content = pem.read_bytes(key)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unusable(key, pem, "it holds no certificate in PEM".into())),
        Err(error) => Err(unusable(key, pem, error.to_string())),
    }
}

fn roots_of(ca: &Secret) -> Result<RootCertStore, ClientError> {
    let pool = trust::pool(certificates(CA_FILE, ca)?);
    pool.map_err(|error| unusable(CA_FILE, ca, error.to_string()))
}

/// Returns the system's trust store, read once for all clients.
fn system_roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        // Certificates that do not parse are skipped.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            tracing::warn!("{NO_AUTHORITY}");
        }
        Arc::new(roots)
    };
    Arc::clone(ROOTS.get_or_init(read))
}
