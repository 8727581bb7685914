//! Facts of a TLS handshake: expiry of certificates, version, cipher suite.

use crate::report::{Report, SSL_CHAIN_EXPIRY, SSL_EARLIEST_EXPIRY, TLS_CIPHER, TLS_VERSION};
use tidepool_client::parts::Certificate;
use tokio_rustls::rustls::{ClientConnection, ProtocolVersion};

/// Go's zero `time.Time` in seconds since the epoch: 1 January of the year 1.
const NO_TIME: i64 = -62_135_596_800;

/// Maximum number of certificates in a chain. The bound prevents an endless loop if names repeat.
const CHAIN_MAX: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct TlsFacts {
    /// Earliest expiry of all certificates that were sent, in seconds since the epoch.
    earliest_expiry: i64,
    /// Earliest expiry of the verified chain, in seconds since the epoch.
    chain_expiry: i64,
    version: &'static str,
    cipher: String,
}

impl TlsFacts {
    /// Reads the facts of a completed handshake. The chain expiry is set for a verified chain only.
    pub fn of(connection: &ClientConnection, is_verified: bool) -> TlsFacts {
        let sent = connection.peer_certificates().unwrap_or_default();
        let read: Vec<Certificate<'_>> =
            sent.iter().filter_map(|der| Certificate::read(der)).collect();
        let earliest = read.iter().map(|certificate| certificate.expires).min();
        let chain = if is_verified { chain_expiry(&read) } else { None };
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            _ => "unknown",
        };
        let cipher = connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
        // IANA names of cipher suites have no TLS version, unlike rustls' names.
        let cipher = cipher.unwrap_or("unknown").replacen("TLS13_", "TLS_", 1);
        TlsFacts {
            earliest_expiry: earliest.unwrap_or(NO_TIME),
            chain_expiry: chain.unwrap_or(NO_TIME),
            version,
            cipher,
        }
    }

    /// Reports the facts. Only HTTP probes report the cipher suite.
    pub fn report(&self, with_cipher: bool, report: &mut Report) {
        // Exact below 2⁵³ seconds, which is far beyond any calendar.
        report.set(SSL_EARLIEST_EXPIRY, self.earliest_expiry as f64);
        report.set(SSL_CHAIN_EXPIRY, self.chain_expiry as f64);
        report.set_of(TLS_VERSION, self.version, 1.0);
        if with_cipher {
            report.set_of(TLS_CIPHER, &self.cipher, 1.0);
        }
    }
}

/// Returns the earliest expiry of the chain that begins with the first certificate.
fn chain_expiry(sent: &[Certificate<'_>]) -> Option<i64> {
    let mut next = sent.first();
    let mut earliest = None;
    for _ in 0..CHAIN_MAX {
        let Some(certificate) = next else { break };
        let expires = certificate.expires;
        earliest = Some(earliest.map_or(expires, |earliest: i64| earliest.min(expires)));
        // A root certificate is its own issuer, and would be found again.
        let is_root = certificate.issuer == certificate.subject;
        let is_issuer = |other: &&Certificate<'_>| other.subject == certificate.issuer;
        next = sent.iter().filter(|_| !is_root).find(is_issuer);
    }
    earliest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate<'a>(subject: &'a str, issuer: &'a str, expires: i64) -> Certificate<'a> {
        let (issuer, subject) = (issuer.as_bytes(), subject.as_bytes());
        Certificate { issuer, subject, key: b"", begins: 0, expires }
    }

    #[test]
    fn a_chain_expires_with_its_first_certificate() {
        let leaf = certificate("leaf", "middle", 50);
        let middle = certificate("middle", "root", 40);
        let other = certificate("other", "root", 10);
        let looped = certificate("middle", "leaf", 45);
        assert_eq!(chain_expiry(&[]), None);
        assert_eq!(chain_expiry(&[leaf.clone(), other, middle]), Some(40));
        assert_eq!(chain_expiry(&[leaf, looped]), Some(45));
        assert_eq!(chain_expiry(&[certificate("own", "own", 7)]), Some(7));
    }
}
