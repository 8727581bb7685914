//! Flags that say what clients may do, and who they must be.

use super::{HttpConfig, ServeConfig, bytes, duration};
use crate::access::{AccessConfig, AllowedHost, CorsOrigin, TlsFiles};
use crate::wasm::LabelLimits;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Args)]
pub(super) struct NetworkArgs {
    /// Request bodies in memory, all together: half of it as they arrive, half decompressed.
    /// Senders get 503 and try again beyond. By default what --memory-limit leaves for requests,
    /// and 64MiB at most
    #[arg(long, alias = "write-queue-bytes", value_name = "BYTES", value_parser = bytes)]
    pub max_inflight_bytes: Option<u64>,

    /// Most open connections. When more come, those that do nothing are closed; else they wait
    #[arg(long, value_name = "COUNT", default_value_t = 512)]
    max_connections: u32,

    /// How long a client may take to send a request's head, and then its body
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    request_timeout: Duration,

    /// How long a connection may wait for its next request
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    idle_timeout: Duration,

    /// How long a client may take nothing of its answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    send_timeout: Duration,

    /// Write a line to the log for each request, once it is answered
    #[arg(long)]
    pub access_log: bool,

    /// Reload the configuration on POST /-/reload, as on SIGHUP
    #[arg(long)]
    pub enable_lifecycle: bool,

    /// Which pages in a browser may read answers of the API: an expression for the whole of their
    /// origin, such as https://(a|b)\.example. Credentials never go with what `.*` allows
    #[arg(long, value_name = "REGEX", default_value = ".*")]
    pub cors_origin: CorsOrigin,

    /// A host name under which clients reach this server, such as node.example.com or *.example.com;
    /// may be given several times. Addresses, localhost, names without dots and the machine's own
    /// name need none. Only checked where neither credentials nor TLS are asked for: a page in a
    /// browser can point its own name at any address. * allows all
    #[arg(long, value_name = "NAME")]
    pub allowed_host: Vec<AllowedHost>,

    /// Most labels of a series. This limit and the next two refuse a new series, and keep the rest
    /// of its request. 0: no limit
    #[arg(long, value_name = "COUNT", default_value_t = 128)]
    max_label_names_per_series: u32,

    /// Longest name of a label. 0: no limit
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = bytes)]
    max_label_name_length: u64,

    /// Longest value of a label. 0: no limit
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = bytes)]
    max_label_value_length: u64,

    /// Certificate chain in PEM: connections are secured by TLS. Changed files are read again
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    tls_cert_file: Option<PathBuf>,

    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_key_file: Option<PathBuf>,

    /// Certificates in PEM, one of which must have signed the one that each client has to show
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_client_ca_file: Option<PathBuf>,

    /// Who may write: lines `basic USER:PASSWORD`, `basic USER:BCRYPT-HASH` or `bearer TOKEN`,
    /// comments after `#`. Without it, everyone. Changed files are read again
    #[arg(long, value_name = "FILE")]
    write_credentials_file: Option<PathBuf>,

    /// Who may read, /metrics included
    #[arg(long, value_name = "FILE")]
    read_credentials_file: Option<PathBuf>,

    /// Who may use the admin API
    #[arg(long, value_name = "FILE")]
    admin_credentials_file: Option<PathBuf>,
}

/// How long clients may take.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// For a request's head, and then for its body.
    pub request_timeout: Duration,
    /// Between two requests.
    pub idle_timeout: Duration,
    /// To take some of an answer.
    pub send_timeout: Duration,
}

impl NetworkArgs {
    pub fn client_limits(&self) -> ClientLimits {
        ClientLimits {
            request_timeout: self.request_timeout,
            idle_timeout: self.idle_timeout,
            send_timeout: self.send_timeout,
        }
    }

    pub fn connections_max(&self) -> u32 {
        self.max_connections.max(1)
    }

    pub fn label_limits(&self) -> LabelLimits {
        let limit = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX);
        LabelLimits {
            labels_max: self.max_label_names_per_series,
            name_bytes_max: limit(self.max_label_name_length),
            value_bytes_max: limit(self.max_label_value_length),
        }
    }

    pub fn access(self) -> AccessConfig {
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
        }
    }
}

impl ServeConfig {
    /// Whether what concerns the network goes together.
    pub(super) fn check_network(&self) -> Result<(), String> {
        let ServeConfig { access, http, .. } = self;
        let HttpConfig { inflight_bytes_max, request_bytes_max, .. } = *http;
        if inflight_bytes_max / 2 < request_bytes_max {
            return Err(format!(
                "--max-inflight-bytes={inflight_bytes_max} is less than twice \
                 --max-request-size={request_bytes_max}: the largest request would never find \
                 room. Raise the one or lower the other"
            ));
        }
        let has_others = access.write_credentials.is_some() || access.read_credentials.is_some();
        let lets_change = http.admin_api || http.lifecycle;
        if lets_change && has_others && access.admin_credentials.is_none() {
            return Err("--enable-admin-api and --enable-lifecycle let everyone delete data or \
                        reload, while other endpoints need credentials. Add \
                        --admin-credentials-file"
                .to_owned());
        }
        Ok(())
    }

    /// Logs what is no error but may be a mistake.
    pub fn warn_of_strangers(&self) {
        let ServeConfig { access, http, .. } = self;
        let AccessConfig { tls, write_credentials, read_credentials, .. } = access;
        let asks_clients = tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        if http.listen.is_loopback() || asks_clients {
            return;
        }
        if write_credentials.is_none() || read_credentials.is_none() {
            tracing::warn!(
                address = %http.listen,
                "others on the network may connect without credentials; see \
                 --write-credentials-file, --read-credentials-file and --tls-client-ca-file"
            );
        } else if tls.is_none() {
            tracing::warn!(
                address = %http.listen,
                "credentials come over the network in the clear; see --tls-cert-file"
            );
        }
    }
}
