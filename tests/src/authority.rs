//! A certificate authority for tests.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

pub struct Authority {
    /// The authority's own certificate, in PEM.
    pub certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Default for Authority {
    fn default() -> Authority {
        Authority::new()
    }
}

impl Authority {
    /// Makes a new authority, which no program trusts yet.
    ///
    /// # Panics
    /// If the system has no random numbers.
    pub fn new() -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new([]).expect("no names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "authority");
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = parameters.self_signed(&key).expect("a certificate").pem();
        Authority { certificate, issuer: Issuer::new(parameters, key) }
    }

    /// Issues a certificate for a name; returns it with its key.
    ///
    /// # Panics
    /// If the name is not valid in a certificate.
    pub fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new([name.to_string()]).expect("a name");
        parameters.distinguished_name.push(DnType::CommonName, name);
        let certificate = parameters.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}
