//! TLS configuration from files. A changed certificate is used for new connections only.

use super::reload::Reloaded;
use super::{AccessError, TlsFiles};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidepool_client::parts::Certificate;
use tidepool_client::trust;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{self, ServerConfig, SupportedProtocolVersion};

/// Inputs of a TLS configuration.
pub(super) struct Parts {
    /// Certificate chain, the server's own first.
    pub certificate: Pem,
    pub key: Pem,
    /// CA of client certificates, and whether a client may connect without a certificate.
    pub clients: Option<(Pem, MustShow)>,
    pub terms: Terms,
}

/// PEM text, and its name in errors: the file, or the key of a configuration file.
pub(super) struct Pem {
    pub name: PathBuf,
    pub content: Vec<u8>,
}

/// Whether each client must present a certificate, or may connect without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MustShow {
    Each,
    None,
}

/// Protocol parameters offered to clients.
pub(super) struct Terms {
    /// Cipher suites and key exchange groups.
    pub provider: CryptoProvider,
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// Whether the server's order of cipher suites has priority over the client's.
    pub own_order: bool,
    pub http2: bool,
}

impl Default for Terms {
    fn default() -> Terms {
        let versions = vec![&TLS13, &TLS12];
        Terms { provider: default_provider(), versions, own_order: false, http2: true }
    }
}

/// A TLS acceptor and the expiry of its certificate.
pub(super) struct Tls {
    pub acceptor: TlsAcceptor,
    /// Earliest expiry in the chain, in seconds since the epoch; `None` if any cannot be parsed.
    pub expires: Option<i64>,
}

pub fn open(files: &TlsFiles) -> Result<Reloaded<Tls>, AccessError> {
    let TlsFiles { certificate, key, client_ca } = files.clone();
    Reloaded::open(move |files| {
        let mut pem = |path: &Path| {
            files.read(path).map(|content| Pem { name: path.to_owned(), content: content.to_vec() })
        };
        let (certificate, key) = (pem(&certificate)?, pem(&key)?);
        let client_ca = client_ca.as_deref().map(pem).transpose()?;
        let clients = client_ca.map(|client_ca| (client_ca, MustShow::Each));
        acceptor(Parts { certificate, key, clients, terms: Terms::default() })
    })
}

/// Builds the acceptor and checks that certificate and key belong together.
pub(super) fn acceptor(parts: Parts) -> Result<Tls, AccessError> {
    let Parts { certificate, key, clients, terms } = parts;
    let wrong = |source| AccessError::Tls {
        certificate: certificate.name.clone(),
        key: key.name.clone(),
        source,
    };
    let chain = certificates(&certificate)?;
    let ends = chain.iter().map(|der| Certificate::read(der).map(|read| read.expires));
    // `None` is the minimum, so one certificate that cannot be parsed makes the expiry unknown.
    let expires = ends.min().flatten();
    // The cause is dropped, because no error may quote the content of a file.
    let private = PrivateKeyDer::from_pem_slice(&key.content)
        .map_err(|_| pem_error(&key, "it holds no private key in PEM".to_owned()))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(terms.provider))
        .with_protocol_versions(&terms.versions)
        .map_err(wrong)?;
    let builder = match clients {
        Some((roots, must_show)) => builder.with_client_cert_verifier(verifier(&roots, must_show)?),
        None => builder.with_no_client_auth(),
    };
    // A key that does not match fails here, not at the first connection.
    let mut config = builder.with_single_cert(chain, private).map_err(wrong)?;
    let h2 = terms.http2.then(|| b"h2".to_vec());
    // HTTP/2 is first: of the protocols that the client offers, the first in this list is used.
    config.alpn_protocols = h2.into_iter().chain([b"http/1.1".to_vec()]).collect();
    config.ignore_client_order = terms.own_order;
    Ok(Tls { acceptor: Arc::new(config).into(), expires })
}

/// Accepts client certificates signed by one of these CAs.
fn verifier(
    roots: &Pem,
    must_show: MustShow,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, AccessError> {
    let wrong = |error: String| pem_error(roots, error);
    let pool = trust::pool(certificates(roots)?).map_err(|error| wrong(error.to_string()))?;
    let each = must_show == MustShow::Each;
    trust::clients(Arc::new(pool), Arc::new(default_provider()), each)
        .map_err(|error| wrong(error.to_string()))
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem.content).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(pem_error(pem, "it holds no certificate in PEM".to_owned())),
        Err(error) => Err(pem_error(pem, error.to_string())),
    }
}

fn pem_error(pem: &Pem, problem: String) -> AccessError {
    AccessError::Pem { path: pem.name.clone(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    /// Invalid pairs; [`Reloaded`] tests that an old certificate stays in use.
    #[test]
    fn certificates_and_keys_must_fit_together() -> Result<(), Box<dyn Error>> {
        let dir = tempfile::tempdir()?;
        let path = |name: &str| dir.path().join(name);
        let [one, other] = [(), ()].map(|()| rcgen::generate_simple_self_signed(vec!["a".into()]));
        let (one, other) = (one?, other?);
        std::fs::write(path("one.crt"), one.cert.pem())?;
        std::fs::write(path("one.key"), one.signing_key.serialize_pem())?;
        std::fs::write(path("other.key"), other.signing_key.serialize_pem())?;
        std::fs::write(path("text"), "no PEM")?;
        // Text in PEM whose bytes are no certificate, alone and beside one.
        let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(path("none.crt"), no_certificate)?;
        std::fs::write(path("both.crt"), format!("{no_certificate}{}", one.cert.pem()))?;
        let open = |certificate: &str, key: &str, client_ca: Option<&str>| {
            let files = TlsFiles {
                certificate: path(certificate),
                key: path(key),
                client_ca: client_ca.map(path),
            };
            open(&files).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(open("one.crt", "one.key", None), Ok(()));
        assert_eq!(open("one.crt", "one.key", Some("one.crt")), Ok(()));
        assert_eq!(open("one.crt", "one.key", Some("both.crt")), Ok(()));
        for (certificate, key, client_ca, problem) in [
            ("one.crt", "other.key", None, "cannot be used"),
            ("text", "one.key", None, "no certificate"),
            ("one.crt", "text", None, "no private key"),
            ("one.crt", "one.crt", None, "no private key"),
            ("one.crt", "one.key", Some("text"), "no certificate"),
            ("one.crt", "one.key", Some("none.crt"), "none.crt"),
            ("missing", "one.key", None, "cannot be read"),
        ] {
            let Err(error) = open(certificate, key, client_ca) else { panic!("{problem}") };
            assert!(error.contains(problem), "{error}");
        }
        Ok(())
    }
}
