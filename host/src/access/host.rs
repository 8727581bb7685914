//! The host names under which this server accepts requests. A page in a browser can point a name of
//! its own at any address, and is then of the same origin as what answers there (DNS rebinding): a
//! server without credentials must at least check the name in the request.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A name, or all names below one, that is taken besides those that no page can point elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHost {
    /// Whatever clients say.
    Any,
    /// A name.
    Name(String),
    /// All names that end in a dot and this.
    Below(String),
}

impl AllowedHost {
    fn is(&self, name: &str) -> bool {
        match self {
            AllowedHost::Any => true,
            AllowedHost::Name(allowed) => name == allowed,
            AllowedHost::Below(domain) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
        }
    }
}

impl FromStr for AllowedHost {
    type Err = String;

    fn from_str(text: &str) -> Result<AllowedHost, String> {
        if text == "*" {
            return Ok(AllowedHost::Any);
        }
        let name = text.strip_prefix("*.").unwrap_or(text);
        let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_of_a_name) {
            return Err(format!(
                "{text:?} is not a host name such as node.example.com or *.example.com; leave out \
                 scheme and port"
            ));
        }
        let name = normal(name);
        Ok(if text.starts_with('*') { AllowedHost::Below(name) } else { AllowedHost::Name(name) })
    }
}

/// Whether a server may be asked under the name of an authority (`HOST`, `HOST:PORT`): an address,
/// `localhost`, a name without dots, which no stranger can own, this machine's name, or one that is
/// allowed.
pub fn is_known(authority: &str, allowed: &[AllowedHost]) -> bool {
    let host = host_of(authority);
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let name = normal(host);
    host.parse::<Ipv4Addr>().is_ok()
        || !name.contains('.')
        || name.ends_with(".localhost")
        || allowed.iter().any(|allowed| allowed.is(&name))
        || name == normal(&machine_name())
}

/// An authority without user and port.
fn host_of(authority: &str) -> &str {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    }
}

/// Names are the same in any case, and with a dot at the end.
fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// The name of this machine, as the system knows it (proc(5)); empty if it does not.
pub fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_stranger_can_own_are_known() -> Result<(), String> {
        for known in [
            "127.0.0.1:9201",
            "192.168.1.7",
            "[::1]:9201",
            "[fe80::1]",
            "localhost:9201",
            "LOCALHOST.",
            "app.localhost:1",
            "tidepool",
            "tidepool:9201",
            "user@tidepool:9201",
            "",
        ] {
            assert!(is_known(known, &[]), "{known}");
        }
        assert!(is_known(&machine_name(), &[]));
        for foreign in [
            "evil.example",
            "evil.example:9201",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example.",
            "localhost@evil.example",
            "[::1].evil.example",
            "[evil.example]",
            "1.2.3.4.5",
        ] {
            assert!(!is_known(foreign, &[]), "{foreign}");
        }
        let allowed = ["node.example.com", "*.Edge.example"].map(str::parse::<AllowedHost>);
        let allowed = allowed.into_iter().collect::<Result<Vec<_>, _>>()?;
        for known in
            ["NODE.example.com:1", "node.example.com.", "a.edge.example", "a.b.edge.example"]
        {
            assert!(is_known(known, &allowed), "{known}");
        }
        for foreign in ["example.com", "a.node.example.com", "edge.example", "badedge.example"] {
            assert!(!is_known(foreign, &allowed), "{foreign}");
        }
        assert!(is_known("evil.example", &["*".parse()?]));
        for wrong in ["", "http://a.example", "a.example:80", "*.", "a*.example"] {
            assert!(wrong.parse::<AllowedHost>().is_err(), "{wrong}");
        }
        Ok(())
    }
}
