//! Listen addresses in the format of Prometheus' `--web.listen-address`.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use tokio::net::{TcpListener, lookup_host};

/// An address to listen on. A name is resolved when the listener is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// One address, such as `127.0.0.1:9201`; `0.0.0.0` stands for all IPv4 addresses.
    Ip(SocketAddr),
    /// All addresses of the machine, as in `:9201`.
    All(u16),
    /// The first address that a name resolves to, such as of `localhost:9201`.
    Name(String, u16),
}

/// The text is not a listen address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected HOST:PORT, such as 127.0.0.1:9201, [::1]:9201, localhost:9201, or :9201 for all addresses"
)]
pub struct NoAddress;

impl FromStr for ListenAddress {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<ListenAddress, NoAddress> {
        if let Ok(address) = text.parse() {
            return Ok(ListenAddress::Ip(address));
        }
        let (host, port) = text.rsplit_once(':').ok_or(NoAddress)?;
        let is_digit = |c: char| c.is_ascii_digit();
        let port = Some(port).filter(|port| port.chars().all(is_digit)).ok_or(NoAddress)?;
        let port = port.parse().map_err(|_| NoAddress)?;
        // Underscores are not valid in host names, but resolvers accept them.
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        // A text of only digits and dots must be an IPv4 address: no host has such a name.
        let is_name =
            host.chars().all(is_of_name) && !host.chars().all(|c| is_digit(c) || c == '.');
        match host {
            "" => Ok(ListenAddress::All(port)),
            _ if is_name => Ok(ListenAddress::Name(host.to_owned(), port)),
            _ => Err(NoAddress),
        }
    }
}

impl ListenAddress {
    pub fn port(&self) -> u16 {
        match self {
            ListenAddress::Ip(address) => address.port(),
            ListenAddress::All(port) | ListenAddress::Name(_, port) => *port,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Ip(address) => address.fmt(f),
            ListenAddress::All(port) => write!(f, ":{port}"),
            ListenAddress::Name(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

impl ListenAddress {
    /// Returns whether only this machine can connect.
    pub fn is_loopback(&self) -> bool {
        match self {
            ListenAddress::Ip(address) => address.ip().is_loopback(),
            ListenAddress::All(_) => false,
            ListenAddress::Name(host, _) => host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Binds a listener to the address.
    pub async fn bind(&self) -> io::Result<TcpListener> {
        let listener = match self {
            ListenAddress::Ip(address) => TcpListener::bind(address).await,
            ListenAddress::All(port) => {
                // The IPv6 socket also accepts IPv4, but a machine may have no IPv6.
                match TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port)).await {
                    Ok(listener) => Ok(listener),
                    Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).await,
                }
            }
            ListenAddress::Name(host, port) => {
                let addresses = lookup_host((host.as_str(), *port)).await;
                // IPv4 is preferred, as in Go's `net.Listen`.
                match addresses.map(|found| found.min_by_key(SocketAddr::is_ipv6)) {
                    Ok(Some(address)) => TcpListener::bind(address).await,
                    Ok(None) => Err(io::Error::other("the name has no address")),
                    Err(error) => Err(error),
                }
            }
        };
        listener.map_err(|error| {
            io::Error::new(error.kind(), format!("could not listen on {self}: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn addresses_names_and_ports_are_read() {
        for (text, is_loopback) in [
            ("127.0.0.1:9201", true),
            ("0.0.0.0:9201", false),
            ("[::1]:9201", true),
            ("[::]:0", false),
            (":9201", false),
            ("localhost:9201", true),
            ("edge-7.example:9201", false),
        ] {
            let address: Result<ListenAddress, _> = text.parse();
            let address = address.map(|address| (address.to_string(), address.is_loopback()));
            assert_eq!(address, Ok((text.to_owned(), is_loopback)));
        }
        for text in [
            "",
            ":",
            "9201",
            "localhost",
            "localhost:",
            "127.0.0.1",
            ":http",
            ":+1",
            ":-1",
            ":65536",
            "::1:9201",
            "[::1]",
            "http://localhost:9201",
            "a b:9201",
            "1.2.3:9201",
            "1.2.3.456:9201",
            ":9201 ",
        ] {
            assert_eq!(text.parse::<ListenAddress>(), Err(NoAddress), "{text:?}");
        }
    }

    #[tokio::test]
    async fn all_addresses_and_names_can_be_reached() -> io::Result<()> {
        for text in [":0", "localhost:0", "127.0.0.1:0"] {
            let address: ListenAddress = text.parse().map_err(io::Error::other)?;
            let listener = address.bind().await?;
            // The kernel completes a connection before it is accepted.
            TcpStream::connect((Ipv4Addr::LOCALHOST, listener.local_addr()?.port()))?;
        }
        let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = taken.local_addr()?;
        let error = ListenAddress::Ip(address).bind().await.err().map(|error| error.to_string());
        let start = format!("could not listen on {address}: ");
        assert!(error.as_ref().is_some_and(|error| error.starts_with(&start)), "{error:?}");
        Ok(())
    }
}
