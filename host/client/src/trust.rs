//! Verifies certificates as Go's `crypto/x509` does.
//!
//! The library below (rustls with webpki) accepts a certificate only if another certificate, of an
//! authority, has signed it. Most exporters have a self-signed certificate, which clients configure
//! as the trusted certificate (`openssl req -x509`). Go accepts a certificate that is itself in the
//! pool of trusted certificates if its time and name are valid, and so does this module.

use crate::certificate::Certificate;
use std::sync::Arc;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{
    VerifierBuilderError, WebPkiServerVerifier, verify_server_name,
};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};

/// Makes a pool of trusted certificates. As in Go, certificates that cannot be read are skipped; if
/// none can be read, returns an error.
pub fn pool(certificates: Vec<CertificateDer<'static>>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let mut wrong = None;
    for certificate in certificates {
        wrong = roots.add(certificate).err().or(wrong);
    }
    match wrong {
        Some(error) if roots.is_empty() => Err(error),
        _ => Ok(roots),
    }
}

/// Accepts servers whose certificate is in the pool, or signed by a certificate in the pool.
pub fn servers(
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, VerifierBuilderError> {
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider);
    Ok(Arc::new(Servers { signed: builder.build()?, roots }))
}

/// Accepts clients whose certificate is in the pool, or signed by a certificate in the pool.
/// Clients without a certificate are accepted unless `each` is true.
pub fn clients(
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
    each: bool,
) -> Result<Arc<dyn ClientCertVerifier>, VerifierBuilderError> {
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider);
    let builder = if each { builder } else { builder.allow_unauthenticated() };
    Ok(Arc::new(Clients { signed: builder.build()?, roots }))
}

/// Accepts any server, as `insecure_skip_verify` asks. Nothing is verified, not even signatures: a
/// signature by an untrusted key proves nothing, and the library rejects certificates of version 1
/// and weak keys, which old devices have.
pub fn any_server(provider: Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(AnyServer { provider })
}

#[derive(Debug)]
struct Servers {
    signed: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
}

#[derive(Debug)]
struct Clients {
    signed: Arc<dyn ClientCertVerifier>,
    roots: Arc<RootCertStore>,
}

#[derive(Debug)]
struct AnyServer {
    provider: Arc<CryptoProvider>,
}

/// Checks the validity period of a certificate that is in the pool, or has the same subject and key
/// as a certificate in the pool. Returns `None` if there is no such certificate.
fn pooled(
    roots: &RootCertStore,
    certificate: &CertificateDer<'_>,
    now: UnixTime,
) -> Option<Result<(), Error>> {
    let read = Certificate::read(certificate)?;
    let is_it = |subject: &[u8], key: &[u8]| subject == read.subject && key == read.key;
    let mut anchors = roots.roots.iter();
    anchors.find(|root| is_it(&root.subject, &root.subject_public_key_info))?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    Some(if now < read.begins {
        Err(CertificateError::NotValidYet.into())
    } else if now > read.expires {
        Err(CertificateError::Expired.into())
    } else {
        Ok(())
    })
}

impl ServerCertVerifier for Servers {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let signed = self.signed.verify_server_cert(certificate, intermediates, name, ocsp, now);
        let Err(error) = signed else { return signed };
        // The library rejects certificates that are in the pool themselves.
        pooled(&self.roots, certificate, now).unwrap_or(Err(error))?;
        // The library checks the name only if it accepts the certificate.
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

impl ClientCertVerifier for Clients {
    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let signed = self.signed.verify_client_cert(certificate, intermediates, now);
        let Err(error) = signed else { return signed };
        // As for servers, but clients have no name to check.
        pooled(&self.roots, certificate, now).unwrap_or(Err(error))?;
        Ok(ClientCertVerified::assertion())
    }

    fn client_auth_mandatory(&self) -> bool {
        self.signed.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.signed.root_hint_subjects()
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let mut schemes = self.provider.signature_verification_algorithms.supported_schemes();
        // Schemes of certificates that the provider cannot verify.
        for scheme in [
            SignatureScheme::ECDSA_NISTP521_SHA512,
            SignatureScheme::RSA_PKCS1_SHA1,
            SignatureScheme::ECDSA_SHA1_Legacy,
        ] {
            if !schemes.contains(&scheme) {
                schemes.push(scheme);
            }
        }
        schemes
    }
}
