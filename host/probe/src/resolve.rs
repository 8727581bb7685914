//! Resolution of a host name to one IP address.

use crate::error::ProbeError;
use crate::report::{DNS_LOOKUP, IP_HASH, IP_PROTOCOL, Report};
use serde::Deserialize;
use std::net::IpAddr;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpChoice {
    pub preferred: IpProtocol,
    /// Whether the other IP version is used if the host has no address of the preferred version
    /// (`ip_protocol_fallback`).
    pub falls_back: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum IpProtocol {
    #[serde(rename = "ip4")]
    Ip4,
    #[default]
    #[serde(rename = "ip6")]
    Ip6,
}

/// Resolves a host and reports the duration, the IP version and a hash of the address.
pub(crate) async fn resolve(
    host: &str,
    choice: IpChoice,
    report: &mut Report,
) -> Result<IpAddr, ProbeError> {
    // The gauges exist before the lookup, as upstream registers them, so that a failed lookup
    // reports them as 0.
    report.set(IP_PROTOCOL, 0.0);
    report.set(DNS_LOOKUP, 0.0);
    report.set(IP_HASH, 0.0);
    let begun = Instant::now();
    let found = lookup(host, choice).await;
    report.set(DNS_LOOKUP, begun.elapsed().as_secs_f64());
    let address = found?;
    report.set(IP_PROTOCOL, if address.is_ipv4() { 4.0 } else { 6.0 });
    report.set(IP_HASH, f64::from(hash(address)));
    Ok(address)
}

/// Resolves a host to an address of the preferred IP version.
pub(crate) async fn lookup(host: &str, choice: IpChoice) -> Result<IpAddr, ProbeError> {
    let wrong = |what: String| ProbeError::Lookup { host: host.to_owned(), what };
    let found =
        // The function needs a port; it only copies the port into its results.
        tokio::net::lookup_host((host, 0)).await.map_err(|error| wrong(error.to_string()))?;
    let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    chosen(&found, choice).ok_or_else(|| {
        let version = if choice.preferred == IpProtocol::Ip4 { 4 } else { 6 };
        wrong(format!("it has no address of IPv{version}"))
    })
}

fn chosen(found: &[IpAddr], choice: IpChoice) -> Option<IpAddr> {
    let is_preferred =
        |address: &&IpAddr| address.is_ipv4() == (choice.preferred == IpProtocol::Ip4);
    let other = found.first().filter(|_| choice.falls_back);
    found.iter().find(is_preferred).or(other).copied()
}

/// Returns the 32-bit FNV-1a hash of the bytes of an address.
fn hash(address: IpAddr) -> u32 {
    let of = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    };
    match address {
        IpAddr::V4(address) => of(&address.octets()),
        // Go's `net.IP` does not distinguish a mapped IPv4 address from an IPv4 address, and the
        // hashes must be equal to Go's.
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => of(&address.octets()),
            None => of(&address.octets()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn the_preferred_version_comes_first() {
        let both = [address("127.0.0.1"), address("::1")];
        let choice = |preferred, falls_back| IpChoice { preferred, falls_back };
        for (found, choice, expected) in [
            (&both[..], choice(IpProtocol::Ip6, true), Some(both[1])),
            (&both, choice(IpProtocol::Ip4, false), Some(both[0])),
            (&both[..1], choice(IpProtocol::Ip6, true), Some(both[0])),
            (&both[..1], choice(IpProtocol::Ip6, false), None),
            (&[], choice(IpProtocol::Ip4, true), None),
        ] {
            assert_eq!(chosen(found, choice), expected, "{found:?} {choice:?}");
        }
    }

    /// Test vectors of draft-eastlake-fnv, appendix C: "" and "a"; and FNV-1a of `127.0.0.1` as
    /// four bytes, from a table.
    #[test]
    fn addresses_are_hashed_by_fnv_1a() {
        let by_hand = |bytes: [u8; 4]| {
            let mut hash = 2_166_136_261_u64;
            for byte in bytes {
                hash = ((hash ^ u64::from(byte)) * 16_777_619) % (1 << 32);
            }
            hash
        };
        assert_eq!(u64::from(hash(address("127.0.0.1"))), by_hand([127, 0, 0, 1]));
        assert_eq!(hash(address("::ffff:127.0.0.1")), hash(address("127.0.0.1")));
        assert_ne!(hash(address("::1")), hash(address("::2")));
    }
}
