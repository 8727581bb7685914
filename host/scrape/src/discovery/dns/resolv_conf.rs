//! Parses `/etc/resolv.conf`: DNS servers, and rules for search domains (`resolv.conf(5)`).

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Maximum number of servers, as in the C library.
const SERVERS_MAX: usize = 3;

/// Maximum number of search domains, as in older C libraries.
const SEARCH_MAX: usize = 6;

/// Settings of the file that the resolver uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvConf {
    pub servers: Vec<IpAddr>,
    pub search: Vec<String>,
    pub dots_min: usize,
    pub timeout: Duration,
    pub attempts: u32,
}

/// Parses the text. Unknown settings are ignored, as the C library does.
pub(super) fn parse(text: &str) -> ResolvConf {
    let mut conf = ResolvConf {
        servers: Vec::new(),
        search: Vec::new(),
        dots_min: 1,
        timeout: Duration::from_secs(5),
        attempts: 2,
    };
    for line in text.lines() {
        let line = line.split(['#', ';']).next().unwrap_or_default();
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") if conf.servers.len() < SERVERS_MAX => {
                // The zone of an address (the part after `%`) names an interface, and is not needed
                // here.
                let address = words.next().map(|word| word.split('%').next().unwrap_or(word));
                conf.servers.extend(address.and_then(|word| word.parse::<IpAddr>().ok()));
            }
            // Of all `domain` and `search` lines, the last one is used.
            Some("domain") => conf.search = words.take(1).map(str::to_owned).collect(),
            Some("search") => conf.search = words.take(SEARCH_MAX).map(str::to_owned).collect(),
            Some("options") => {
                for word in words {
                    let (name, value) = word.split_once(':').unwrap_or((word, ""));
                    let Ok(value) = value.parse::<u32>() else { continue };
                    // The bounds are those of resolv.conf(5).
                    match name {
                        "ndots" => conf.dots_min = value.min(15) as usize,
                        "timeout" => {
                            conf.timeout = Duration::from_secs(u64::from(value.clamp(1, 30)));
                        }
                        "attempts" => conf.attempts = value.clamp(1, 5),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    // resolv.conf(5): without a `nameserver` line, the server on this machine is asked.
    if conf.servers.is_empty() {
        conf.servers.push(Ipv4Addr::LOCALHOST.into());
    }
    conf
}

impl ResolvConf {
    /// Returns the full names to look up for a name, in this order. A name with a final dot gets no
    /// search domain.
    pub fn names(&self, name: &str) -> Vec<String> {
        let whole = || name.strip_suffix('.').unwrap_or(name).to_owned();
        if name.ends_with('.') {
            return vec![whole()];
        }
        let searched =
            self.search.iter().map(|domain| format!("{name}.{}", domain.trim_matches('.')));
        let has_dots = name.matches('.').count() >= self.dots_min;
        match has_dots {
            true => std::iter::once(whole()).chain(searched).collect(),
            false => searched.chain(std::iter::once(whole())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_as_the_system_does() {
        let text = "# comment\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\nnameserver nobody\n\
                    nameserver 192.0.2.2\nnameserver 192.0.2.3\ndomain old\nsearch a.example \
                    b.example. ; comment\noptions ndots:2 timeout:1 attempts:99 rotate\n";
        let conf = parse(text);
        let addresses = ["192.0.2.1", "fe80::1", "192.0.2.2"];
        let addresses = addresses.map(|text| text.parse::<IpAddr>().expect("an address"));
        assert_eq!(conf.servers, addresses);
        assert_eq!((conf.timeout, conf.attempts), (Duration::from_secs(1), 5));
        assert_eq!(conf.names("x.y"), ["x.y.a.example", "x.y.b.example", "x.y"]);
        assert_eq!(conf.names("x.y.z"), ["x.y.z", "x.y.z.a.example", "x.y.z.b.example"]);
        assert_eq!(conf.names("x."), ["x"]);
        let empty = parse("");
        assert_eq!(empty.servers, [IpAddr::from(Ipv4Addr::LOCALHOST)]);
        assert_eq!(empty.names("x"), ["x"]);
    }
}
