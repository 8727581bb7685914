//! Chooses the proxy of a request from the configuration or from environment variables.
//!
//! Source: golang.org/x/net, `http/httpproxy`. A proxy without `no_proxy` is used for all hosts;
//! with `no_proxy`, loopback addresses are always reached without the proxy, too.
//!
//! hyper-util's `client::proxy::matcher` supports neither ports nor loopback rules in `no_proxy`.

use crate::ClientError;
use crate::config::ProxyConfig;
use crate::credentials::basic;
use hyper::header::{HeaderMap, HeaderValue, PROXY_AUTHORIZATION};
use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use std::net::IpAddr;
use url::Url;

/// The proxies and exceptions. Created once, because a process's environment does not change.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    exceptions: Option<Exceptions>,
}

#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    pub url: Url,
    /// Headers of `CONNECT` requests, including credentials.
    pub connect_headers: HeaderMap,
}

/// Hosts that are reached without a proxy.
#[derive(Debug, Default)]
struct Exceptions {
    all: bool,
    networks: Vec<IpNet>,
    addresses: Vec<(IpAddr, Option<u16>)>,
    names: Vec<Name>,
}

#[derive(Debug)]
struct Name {
    /// The name with a dot before it.
    suffix: String,
    /// Whether the name itself matches, in addition to its subdomains.
    itself: bool,
    port: Option<u16>,
}

impl Proxies {
    /// Creates the proxies of a configuration; `variable` reads the environment.
    pub fn new(
        config: &ProxyConfig,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Proxies, ClientError> {
        let proxy = |url: &Url| Proxy::new(url, config);
        if config.from_environment {
            let either = |upper: &str, lower: &str| {
                let set = |name: &str| variable(name).filter(|text| !text.is_empty());
                // As in Go, the upper-case name takes precedence.
                set(upper).or_else(|| set(lower))
            };
            let found = |upper: &str, lower: &str| match either(upper, lower) {
                None => Ok(None),
                Some(text) => proxy(&of_environment(upper, &text)?).map(Some),
            };
            let exceptions = either("NO_PROXY", "no_proxy").unwrap_or_default();
            return Ok(Proxies {
                http: found("HTTP_PROXY", "http_proxy")?,
                https: found("HTTPS_PROXY", "https_proxy")?,
                exceptions: Some(Exceptions::parse(&exceptions)),
            });
        }
        let Some(url) = &config.url else { return Ok(Proxies::default()) };
        let proxy = proxy(&url.0)?;
        let exceptions = Some(&config.no_proxy).filter(|text| !text.is_empty());
        Ok(Proxies {
            http: Some(proxy.clone()),
            https: Some(proxy),
            exceptions: exceptions.map(|text| Exceptions::parse(text)),
        })
    }

    /// Returns the proxy for a host; `host` has no brackets.
    pub fn for_host(&self, is_https: bool, host: &str, port: u16) -> Option<&Proxy> {
        let proxy = if is_https { &self.https } else { &self.http };
        let is_exception = |exceptions: &Exceptions| exceptions.has(host, port);
        proxy.as_ref().filter(|_| !self.exceptions.as_ref().is_some_and(is_exception))
    }
}

impl Proxy {
    fn new(url: &Url, config: &ProxyConfig) -> Result<Proxy, ClientError> {
        let mut connect_headers = HeaderMap::new();
        for (name, values) in &config.connect_headers {
            for value in values {
                connect_headers.append(name.clone(), value.clone());
            }
        }
        // A configured header takes precedence over credentials in the URL.
        if let Some(value) = url_credentials("proxy_url", url)? {
            connect_headers.entry(PROXY_AUTHORIZATION).or_insert(value);
        }
        Ok(Proxy { url: url.clone(), connect_headers })
    }

    /// Returns the credentials for requests without a tunnel.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.connect_headers.get(PROXY_AUTHORIZATION)
    }
}

/// Returns the credentials in a URL. Errors name `key`.
pub fn url_credentials(key: &'static str, url: &Url) -> Result<Option<HeaderValue>, ClientError> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let password = url.password().unwrap_or_default();
    basic(key, &percent_decoded(url.username()), &percent_decoded(password)).map(Some)
}

/// Decodes a percent-encoded part of a URL.
pub fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Parses a proxy of the environment, which may lack the scheme.
fn of_environment(name: &str, text: &str) -> Result<Url, ClientError> {
    let with_scheme = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let is_usable = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let url = Url::parse(&with_scheme).ok().filter(is_usable);
    // The error omits the text, which may contain a password.
    let wrong = || ClientError::Url(format!("the variable {name} is no http or https URL"));
    url.ok_or_else(wrong)
}

impl Exceptions {
    fn parse(text: &str) -> Exceptions {
        let mut exceptions = Exceptions::default();
        for entry in text.split(',') {
            let entry = entry.trim().to_ascii_lowercase();
            if entry.is_empty() {
                continue;
            }
            if entry == "*" {
                exceptions.all = true;
                continue;
            }
            if let Ok(network) = entry.parse::<IpNet>() {
                exceptions.networks.push(network);
                continue;
            }
            let (host, port) = host_and_port(&entry);
            if let Ok(address) = host.parse::<IpAddr>() {
                exceptions.addresses.push((address, port));
                continue;
            }
            // `*.example` means the same as `.example`.
            let host = host.strip_prefix('*').unwrap_or(host);
            let suffix = match host.starts_with('.') {
                true => host.to_owned(),
                false => format!(".{host}"),
            };
            // An entry such as `:80` has no host, and is ignored.
            if suffix.len() > 1 {
                exceptions.names.push(Name { suffix, itself: !host.starts_with('.'), port });
            }
        }
        exceptions
    }

    fn has(&self, host: &str, port: u16) -> bool {
        // A trailing dot makes a name absolute, but means the same host.
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_port = |wanted: Option<u16>| wanted.is_none_or(|wanted| wanted == port);
        if self.all || host == "localhost" {
            return true;
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            // An IPv4 address may be written as a mapped IPv6 address.
            let address = address.to_canonical();
            return address.is_loopback()
                || self.networks.iter().any(|network| network.contains(&address))
                || self.addresses.iter().any(|(one, port)| *one == address && is_port(*port));
        }
        self.names.iter().any(|name| {
            let is_below = host.ends_with(&name.suffix);
            let is_itself = name.itself && name.suffix.get(1..) == Some(host.as_str());
            (is_below || is_itself) && is_port(name.port)
        })
    }
}

/// Splits a host and an optional port: `host`, `host:80`, `[::1]:80` or `::1`.
fn host_and_port(entry: &str) -> (&str, Option<u16>) {
    if let Some((host, behind)) = entry.strip_prefix('[').and_then(|entry| entry.split_once(']')) {
        return (host, behind.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match entry.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, port.parse().ok()),
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ShownUrl;

    fn config(url: &str, no_proxy: &str) -> ProxyConfig {
        let url = Url::parse(url).ok().map(ShownUrl);
        ProxyConfig { url, no_proxy: no_proxy.into(), ..ProxyConfig::default() }
    }

    fn is_proxied(proxies: &Proxies, url: &str) -> bool {
        let url = Url::parse(url).expect("a URL");
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default().unwrap_or(0);
        proxies.for_host(url.scheme() == "https", host, port).is_some()
    }

    /// The cases are those of upstream's `proxy_test.go`.
    #[test]
    fn exceptions_are_gos() -> Result<(), ClientError> {
        let rules = "foobar.com, .barbaz.net, *.quux.com, 192.168.1.1, 192.168.1.2:81, \
                     192.168.1.3:80, 10.0.0.0/30, 2001:db8::52:0:1, [2001:db8::52:0:2]:443, \
                     2002:db8:a::45/64, port.example:8080";
        let proxies = Proxies::new(&config("http://proxy:3128", rules), |_| None)?;
        for (host, expected) in [
            ("localhost", false),
            ("127.0.0.1", false),
            ("127.0.0.2", false),
            ("[::1]", false),
            ("[::2]", true),
            ("192.168.1.1", false),
            ("192.168.1.2", true),
            ("192.168.1.3", false),
            ("192.168.1.4", true),
            ("10.0.0.2", false),
            ("10.0.0.4", true),
            ("[2001:db8::52:0:1]", false),
            ("[2001:db8::52:0:2]", true),
            ("[2002:db8:a::123]", false),
            ("[fe80::424b:c8be:1643:a1b6]", true),
            ("barbaz.net", true),
            ("www.barbaz.net", false),
            ("foobar.com", false),
            ("www.foobar.com", false),
            ("foofoobar.com", true),
            ("baz.com", true),
            ("localhost.net", true),
            ("quux.com", true),
            ("www.quux.com", false),
            ("port.example:8080", false),
            ("port.example", true),
        ] {
            assert_eq!(is_proxied(&proxies, &format!("http://{host}/")), expected, "{host}");
        }
        let all = Proxies::new(&config("http://proxy:3128", "a, *"), |_| None)?;
        assert!(!is_proxied(&all, "http://elsewhere.example/"));
        let without_rules = Proxies::new(&config("http://proxy:3128", ""), |_| None)?;
        assert!(is_proxied(&without_rules, "http://127.0.0.1/"));
        Ok(())
    }

    #[test]
    fn the_environment_says_both() -> Result<(), ClientError> {
        let from_environment = ProxyConfig { from_environment: true, ..ProxyConfig::default() };
        let variable = |name: &str| match name {
            "HTTP_PROXY" => Some("me:p%40ss@proxy:3128".to_owned()),
            "no_proxy" => Some("inside.example".to_owned()),
            _ => None,
        };
        let proxies = Proxies::new(&from_environment, variable)?;
        assert!(is_proxied(&proxies, "http://a.example/"));
        assert!(!is_proxied(&proxies, "http://inside.example/"));
        assert!(!is_proxied(&proxies, "http://127.0.0.1/"));
        assert!(!is_proxied(&proxies, "https://a.example/"), "there is none for https");
        let proxy = proxies.for_host(false, "a.example", 80).and_then(Proxy::authorization);
        assert_eq!(proxy.map(HeaderValue::as_bytes), Some(&b"Basic bWU6cEBzcw=="[..]));
        let wrong = Proxies::new(&from_environment, |_| Some("ftp://hunter2@a".into()));
        let wrong = wrong.map(drop).map_err(|error| error.to_string());
        let said = "the variable HTTP_PROXY is no http or https URL".to_owned();
        assert_eq!(wrong, Err(said));
        Ok(())
    }
}
