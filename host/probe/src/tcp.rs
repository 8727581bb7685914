//! A TCP probe. It succeeds if the connection, and TLS if configured, is established.
//!
//! Source: `prober/tcp.go` of prometheus/blackbox_exporter.

use crate::config::TcpProbe;
use crate::connect::{Tls, connect};
use crate::error::ProbeError;
use crate::report::{FAILED_BYTES, FAILED_REGEX, Report};
use crate::resolve::resolve;
use std::net::SocketAddr;
use tidepool_client::parts::LazyTls;

pub(crate) async fn probe(
    probe: &TcpProbe,
    target: &str,
    report: &mut Report,
) -> Result<(), ProbeError> {
    let (host, port) = host_and_port(target)?;
    let address = SocketAddr::new(resolve(host, probe.ip, report).await?, port);
    let tls = match probe.tls {
        true => {
            // Created for each probe, because certificate files may change.
            let made = LazyTls::new(&probe.tls_config, false);
            let name = made.server_name(host)?;
            let is_verified = !probe.tls_config.insecure_skip_verify;
            Some(Tls { config: made.get()?, name, is_verified })
        }
        false => None,
    };
    let connection = connect(address, tls).await?;
    // Upstream sets both for `query_response`, which is not supported here, so they are 0.
    report.set(FAILED_REGEX, 0.0);
    report.set(FAILED_BYTES, 0.0);
    if let Some((_, facts)) = &connection.tls {
        facts.report(false, report);
    }
    Ok(())
}

fn host_and_port(target: &str) -> Result<(&str, u16), ProbeError> {
    let wrong =
        |what: &str| ProbeError::Target { target: target.to_owned(), what: what.to_owned() };
    // The last colon, because an IPv6 address contains colons.
    let (host, port) = target.rsplit_once(':').ok_or_else(|| wrong("it has no port"))?;
    let port = port.parse().map_err(|_| wrong("its port is no number"))?;
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match (inner, host.contains(':')) {
        (Some(host), _) => Ok((host, port)),
        (None, true) => Err(wrong("an IPv6 address has to be in brackets")),
        (None, false) if host.is_empty() => Err(wrong("it has no host")),
        (None, false) => Ok((host, port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_a_host_and_a_port() {
        for (target, expected) in [
            ("a:1", Some(("a", 1))),
            ("127.0.0.1:65535", Some(("127.0.0.1", 65535))),
            ("[::1]:80", Some(("::1", 80))),
            ("::1:80", None),
            ("a", None),
            ("a:", None),
            (":80", None),
            ("a:65536", None),
            ("http://a:80/", None),
        ] {
            assert_eq!(host_and_port(target).ok(), expected, "{target}");
        }
    }
}
