//! TLS as the files say. Certificates that are changed while the server runs serve the next
//! connections; open ones go on.

use super::reload::Reloaded;
use super::{AccessError, TlsFiles};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

/// Reads the files.
pub fn open(files: &TlsFiles) -> Result<Reloaded<TlsAcceptor>, AccessError> {
    let files = files.clone();
    let mut paths = vec![files.certificate.clone(), files.key.clone()];
    paths.extend(files.client_ca.clone());
    Reloaded::open(paths, move |contents| load(&files, contents))
}

fn load(files: &TlsFiles, contents: &[Vec<u8>]) -> Result<TlsAcceptor, AccessError> {
    let [certificate, key, client_ca @ ..] = contents else { unreachable!("at least two files") };
    let wrong = |source| AccessError::Tls {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        source,
    };
    let chain = certificates(&files.certificate, certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|_| pem(&files.key, "it holds no private key in PEM".to_owned()))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(wrong)?;
    let builder = match (&files.client_ca, client_ca) {
        (Some(path), [roots]) => builder.with_client_cert_verifier(verifier(path, roots)?),
        _ => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(wrong)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config).into())
}

/// Takes clients whose certificates one of these has signed.
fn verifier(
    path: &Path,
    roots: &[u8],
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, AccessError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path, roots)? {
        store.add(certificate).map_err(|error| pem(path, error.to_string()))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::new(default_provider()))
        .build()
        .map_err(|error| pem(path, error.to_string()))
}

fn certificates(path: &Path, content: &[u8]) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(content).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(pem(path, "it holds no certificate in PEM".to_owned())),
        Err(error) => Err(pem(path, error.to_string())),
    }
}

fn pem(path: &Path, problem: String) -> AccessError {
    AccessError::Pem { path: path.to_path_buf(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    /// Whether the old certificate stays is [`Reloaded`]'s affair; which pairs are bad is ours.
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
        for (certificate, key, client_ca, problem) in [
            ("one.crt", "other.key", None, "cannot be used"),
            ("text", "one.key", None, "no certificate"),
            ("one.crt", "text", None, "no private key"),
            ("one.crt", "one.crt", None, "no private key"),
            ("one.crt", "one.key", Some("text"), "no certificate"),
            ("missing", "one.key", None, "cannot be read"),
        ] {
            let Err(error) = open(certificate, key, client_ca) else { panic!("{problem}") };
            assert!(error.contains(problem), "{error}");
        }
        Ok(())
    }
}
