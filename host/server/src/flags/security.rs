//! Flags for TLS, credentials, and pages in browsers.

use crate::access::{Access, AccessConfig, AllowedHost, CorsOrigin, Scope, TlsFiles};
use crate::http::{HttpConfig, ListenAddress};
use clap::Args;
use std::path::PathBuf;
use tidepool_settings::flags::Marks;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Security")]
pub struct SecurityFlags {
    /// TLS certificate chain, PEM
    ///
    /// All connections then use TLS. Changed files are read again. Needs --tls-key-file.
    #[arg(long, value_name = "FILE")]
    tls_cert_file: Option<PathBuf>,

    /// Private key of the TLS certificate, PEM
    #[arg(long, value_name = "FILE")]
    tls_key_file: Option<PathBuf>,

    /// CA certificates for client certificates, PEM
    ///
    /// Clients must then present a certificate signed by one of them. Needs --tls-cert-file.
    #[arg(long, value_name = "FILE")]
    tls_client_ca_file: Option<PathBuf>,

    /// Credentials for write endpoints, one a line
    ///
    /// Lines are `basic USER:PASSWORD`, `basic USER:BCRYPT-HASH` or `bearer TOKEN`; comments
    /// begin with `#`. Without the flag, everyone may write. Changed files are read again.
    #[arg(long, value_name = "FILE")]
    write_credentials_file: Option<PathBuf>,

    /// Credentials for read endpoints and /metrics
    ///
    /// The format is that of --write-credentials-file. Without the flag, everyone may read.
    #[arg(long, value_name = "FILE")]
    read_credentials_file: Option<PathBuf>,

    /// Credentials for the admin API and /-/reload
    ///
    /// The format is that of --write-credentials-file.
    #[arg(long, value_name = "FILE")]
    admin_credentials_file: Option<PathBuf>,

    /// Prometheus' web configuration file
    ///
    /// TLS, users with bcrypt hashes for all endpoints, HTTP/2 and headers, as in Prometheus'
    /// --web.config.file. A changed file is read again.
    #[arg(long, value_name = "FILE")]
    web_config_file: Option<PathBuf>,

    /// Host name under which clients reach this server; repeatable
    ///
    /// Examples: node.example.com, *.example.com, or * for every name. IP addresses, localhost,
    /// names without dots and the machine's own names are always allowed: its host name, in .local
    /// and in the domains of /etc/resolv.conf, and those of /etc/hosts. The name is checked only
    /// where neither credentials nor TLS are required, because a page in a browser can point its
    /// own name at any address.
    #[arg(long, value_name = "NAME")]
    pub allowed_host: Vec<AllowedHost>,

    /// Regex for the origins of pages that may read API responses
    ///
    /// The expression matches the whole origin, such as https://(a|b)\.example. Browsers do not
    /// send credentials for origins that only `.*` matches.
    #[arg(long, value_name = "REGEX", default_value = ".*")]
    pub cors_origin: CorsOrigin,
}

impl SecurityFlags {
    /// Properties of the flags: reloadable, and names in Prometheus.
    pub const MARKS: Marks = Marks {
        short: &[
            "tls-cert-file",
            "tls-key-file",
            "write-credentials-file",
            "read-credentials-file",
        ],
        reloadable: &[
            "admin-credentials-file",
            "allowed-host",
            "cors-origin",
            "read-credentials-file",
            "tls-cert-file",
            "tls-client-ca-file",
            "tls-key-file",
            "web-config-file",
            "write-credentials-file",
        ],
        prometheus: &[("web.config.file", "web-config-file"), ("web.cors.origin", "cors-origin")],
        ..Marks::NONE
    };

    /// Checks that a flag that requires another flag is given with it.
    pub fn check(&self) -> Result<(), String> {
        let needs = |flag, needed| Err(format!("{flag} needs {needed}"));
        match (&self.tls_cert_file, &self.tls_key_file, &self.tls_client_ca_file) {
            (Some(_), None, _) => needs("--tls-cert-file", "--tls-key-file"),
            (None, Some(_), _) => needs("--tls-key-file", "--tls-cert-file"),
            (None, None, Some(_)) => needs("--tls-client-ca-file", "--tls-cert-file"),
            _ => Ok(()),
        }
    }

    /// Builds the configuration of access control.
    pub fn access(self) -> AccessConfig {
        // `check` has refused a certificate without a key, and a key without a certificate.
        let tls = self.tls_cert_file.zip(self.tls_key_file).map(|(certificate, key)| TlsFiles {
            certificate,
            key,
            client_ca: self.tls_client_ca_file,
        });
        AccessConfig {
            tls,
            write_credentials: self.write_credentials_file,
            read_credentials: self.read_credentials_file,
            admin_credentials: self.admin_credentials_file,
            web: self.web_config_file,
        }
    }
}

/// Refuses to leave admin and reload endpoints open if other endpoints need credentials.
pub(super) fn check_changing(access: &AccessConfig, http: &HttpConfig) -> Result<(), String> {
    let has_others = access.write_credentials.is_some() || access.read_credentials.is_some();
    let lets_change = http.admin_api || http.lifecycle;
    if lets_change && has_others && access.admin_credentials.is_none() {
        return Err(
            "--enable-admin-api and --enable-lifecycle need --admin-credentials-file when \
             other endpoints need credentials: otherwise everyone may delete data or reload"
                .to_owned(),
        );
    }
    Ok(())
}

/// Warns if the network can reach the server without credentials or without TLS.
pub fn warn_of_strangers(address: &ListenAddress, access: &Access) {
    // With required client certificates, clients are identified without credentials.
    if address.is_loopback() || access.asks_clients() {
        return;
    }
    let is_guarded = |scope| access.asks_for_credentials(scope);
    if !is_guarded(Scope::Write) || !is_guarded(Scope::Read) {
        tracing::warn!(
            %address,
            "the server accepts clients from the network without credentials; see \
             --write-credentials-file, --read-credentials-file and --tls-client-ca-file"
        );
    } else if access.tls().is_none() {
        tracing::warn!(
            %address,
            "the server accepts credentials over unencrypted connections; see --tls-cert-file"
        );
    }
}
