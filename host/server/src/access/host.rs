//! Host names under which the server accepts requests. The owner of a web page can point the page's
//! host name at any address; browsers then treat the page as part of the server at that address
//! (DNS rebinding). A server without credentials must therefore check the name in the request.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// `HOSTS` has names of this machine (hosts(5)), `RESOLVER` search domains (resolv.conf(5)).
const HOSTS: &str = "/etc/hosts";
const RESOLVER: &str = "/etc/resolv.conf";
/// Maximum number of bytes read of each file.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Lifetime of the cached names of this machine; a change of network may change them.
const OWN_NAMES_FOR: Duration = Duration::from_secs(10);
/// Maximum length of a DNS name.
const NAME_BYTES_MAX: usize = 253;

/// A host name, or a whole domain, that is accepted in addition to the names in [`is_known`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHost {
    /// Every name, so that the check is disabled.
    Any,
    Name(String),
    /// All subdomains of this domain.
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

/// Returns whether a request may use this authority (`HOST`, `HOST:PORT`). It must be an address,
/// `localhost`, a name without dots (which no stranger can register), a name of this machine, or an
/// allowed name.
pub fn is_known(authority: &str, allowed: &[AllowedHost]) -> bool {
    let host = host_of(authority);
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let name = normal(host);
    host.parse::<Ipv4Addr>().is_ok()
        // Cheap checks are first: the machine's own names need a lock, and sometimes files.
        || !name.contains('.')
        || name.ends_with(".localhost")
        || allowed.iter().any(|allowed| allowed.is(&name))
        || own_names().contains(&name)
}

/// Returns the host name of an authority; `None` if `--allowed-host` would not accept the name.
pub fn name_of(authority: &str) -> Option<String> {
    let name = normal(host_of(authority));
    let is_name = name.len() <= NAME_BYTES_MAX && name.parse::<AllowedHost>().is_ok();
    // A wildcard is valid for the flag, but must not be proposed by a client's request.
    (is_name && !name.contains('*')).then_some(name)
}

/// Names of this machine: its host name, the host name in each search domain and in `.local` (which
/// the machine may announce, RFC 6762), and its names in `/etc/hosts`.
fn own_names() -> Arc<BTreeSet<String>> {
    static NAMES: Mutex<Option<(Instant, Arc<BTreeSet<String>>)>> = Mutex::new(None);
    // Locked while the files are read, so that concurrent requests read them once.
    let mut known = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some((read, names)) if read.elapsed() < OWN_NAMES_FOR => Arc::clone(names),
        _ => {
            let names = Arc::new(names_of_machine(&machine_name(), &read(HOSTS), &read(RESOLVER)));
            *known = Some((Instant::now(), Arc::clone(&names)));
            names
        }
    }
}

/// Parses the names from the texts of hosts(5) and resolv.conf(5).
fn names_of_machine(name: &str, hosts: &str, resolver: &str) -> BTreeSet<String> {
    let name = normal(name);
    let mut names = BTreeSet::new();
    let first = name.split('.').next().unwrap_or_default();
    // With an empty host name, `.local` alone would be accepted.
    if first.is_empty() {
        return names;
    }
    names.insert(format!("{first}.local"));
    for line in resolver.lines() {
        let mut words = line.split_ascii_whitespace();
        if matches!(words.next(), Some("search" | "domain")) {
            names.extend(words.map(|domain| format!("{first}.{}", normal(domain))));
        }
    }
    for line in hosts.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let of_line: Vec<String> = line.split_ascii_whitespace().skip(1).map(normal).collect();
        // Other lines name other machines; only lines with this machine's name are used.
        if of_line.contains(&name) || of_line.iter().any(|it| it == first) {
            names.extend(of_line);
        }
    }
    names.insert(name);
    names
}

/// Reads a small system file; empty if it does not exist.
fn read(path: &str) -> String {
    let mut text = Vec::new();
    if let Ok(file) = File::open(path) {
        // A read error only means that fewer names are known.
        let _ = file.take(FILE_BYTES_MAX).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Removes user and port from an authority.
fn host_of(authority: &str) -> &str {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    }
}

/// Normalizes a name: case and a final dot are not significant.
fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Host name from proc(5); empty if unknown.
pub fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_the_names_that_its_files_give_it() {
        let hosts = "127.0.0.1 localhost.example localhost\n\
                     127.0.1.1\tPi.Home.example pi # other.example\n10.0.0.9 far.example far\n";
        let resolver = "# a comment\nsearch lan example.org.\nnameserver 10.0.0.1\n";
        let names = names_of_machine("Pi", hosts, resolver);
        let expected = ["pi", "pi.example.org", "pi.home.example", "pi.lan", "pi.local"];
        assert!(names.iter().eq(expected), "{names:?}");
        let names = names_of_machine("pi.corp.example", hosts, "");
        let expected = ["pi", "pi.corp.example", "pi.home.example", "pi.local"];
        assert!(names.iter().eq(expected), "{names:?}");
        assert!(names_of_machine("", hosts, resolver).is_empty());
        assert_eq!(name_of("Node.example.:80").as_deref(), Some("node.example"));
        assert_eq!(name_of("*"), None);
        assert_eq!(name_of(&"a.".repeat(200)), None);
    }

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
        assert!(is_known(&format!("{}.local:9201", machine_name()), &[]));
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
