//! What a destination's TLS configuration is made of: files of certificates and keys.

use super::client::{ClientError, read_file};
use super::config::TlsConfig;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// How errors call the keys of the files.
const CA_FILE: &str = "tls_config.ca_file";
const KEY_FILE: &str = "tls_config.key_file";

/// A number that is another one once any of the files has changed.
pub(super) fn files_checksum(tls: &TlsConfig) -> u32 {
    let client = tls.client.iter().flat_map(|(certificate, key)| [certificate, key]);
    let files = tls.ca_file.iter().chain(client);
    // What cannot be read is told by whoever needs it.
    files.fold(0, |sum, path| crc32c::crc32c_append(sum, &read_file("", path).unwrap_or_default()))
}

/// Reads the files.
fn certificates(
    key: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let wrong = |what: String| ClientError::File { key, path: path.to_owned(), what };
    let content = read_file(key, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(wrong("it holds no certificate in PEM".into())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

pub(super) fn connector(tls: &TlsConfig) -> Result<TlsConnector, ClientError> {
    let wrong = |error: &dyn std::fmt::Display| ClientError::Connection(format!("TLS: {error}"));
    let mut roots = RootCertStore::empty();
    match &tls.ca_file {
        Some(path) => {
            for certificate in certificates(CA_FILE, path)? {
                let unusable = |error: Error| ClientError::File {
                    key: CA_FILE,
                    path: path.clone(),
                    what: error.to_string(),
                };
                roots.add(certificate).map_err(unusable)?;
            }
        }
        None => {
            // One that does not parse keeps no other from being used.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                tracing::warn!(
                    "this system trusts no certificate authority, so no receiver can be reached by \
                     https; install its certificates, or name one in tls_config.ca_file"
                );
            }
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_root_certificates(roots);
    let config = match &tls.client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let no_key = |_| ClientError::File {
                key: KEY_FILE,
                path: key.clone(),
                what: "it holds no private key in PEM".into(),
            };
            let unusable = |error: Error| ClientError::File {
                key: KEY_FILE,
                path: key.clone(),
                what: format!("with {}: {error}", certificate.display()),
            };
            let read = PrivateKeyDer::from_pem_slice(&read_file(KEY_FILE, key)?);
            let chain = certificates("tls_config.cert_file", certificate)?;
            builder.with_client_auth_cert(chain, read.map_err(no_key)?).map_err(unusable)?
        }
    };
    Ok(Arc::new(config).into())
}
