//! Flags of the HTTP server: address, and limits on connections, memory and time of clients.

use crate::http::{ClientLimits, ExternalUrl, ListenAddress};
use clap::Args;
use std::time::Duration;
use tidepool_settings::duration::duration;
use tidepool_settings::flags::{Marks, at_least};

const INFLIGHT_BYTES_MIN: u64 = 64 << 10;

const REQUEST_BYTES_MIN: u64 = 1 << 10;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "HTTP server")]
pub struct HttpFlags {
    /// Address to listen on
    ///
    /// Without a host, as in :9201, the server listens on all addresses of the machine.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9201")]
    pub listen: ListenAddress,

    /// URL under which users reach this server
    ///
    /// For links in alerts, and for a reverse proxy. The default is the host name and the port
    /// behind http://, or https:// with TLS. Its path is the default of --route-prefix.
    #[arg(long, value_name = "URL")]
    pub external_url: Option<ExternalUrl>,

    /// Prefix of all paths of this server [default: the path of --external-url]
    ///
    /// A reverse proxy that removes the prefix needs --route-prefix=/.
    #[arg(long, value_name = "PATH")]
    pub route_prefix: Option<String>,

    /// Maximum number of open connections
    ///
    /// When more clients connect, idle connections are closed; otherwise new ones wait.
    #[arg(
        long, value_name = "COUNT", default_value_t = 512,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub max_connections: u32,

    /// Maximum size of a request body, compressed as well as decompressed
    ///
    /// The default is an eighth of the head's memory, at most 32MiB.
    #[arg(long, value_name = "BYTES", value_parser = at_least(REQUEST_BYTES_MIN))]
    pub max_request_size: Option<u64>,

    /// Maximum memory of all request bodies
    ///
    /// Half is for compressed and half for decompressed bodies. Further requests get 503, and
    /// senders retry. The default is the share of --memory-limit for requests, at most 64MiB.
    #[arg(
        long, alias = "write-queue-bytes", value_name = "BYTES",
        value_parser = at_least(INFLIGHT_BYTES_MIN)
    )]
    pub max_inflight_bytes: Option<u64>,

    /// Maximum time to receive the head of a request, and then its body
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    request_timeout: Duration,

    /// Close connections that send no request for this long
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    idle_timeout: Duration,

    /// Close connections whose client reads no response data for this long
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    send_timeout: Duration,

    /// Serve the admin API, which deletes series and makes snapshots
    ///
    /// Without --admin-credentials-file, every client that reaches the port may delete data.
    #[arg(long)]
    pub enable_admin_api: bool,

    /// Reload the configuration on POST /-/reload, as on SIGHUP
    #[arg(long)]
    pub enable_lifecycle: bool,
}

impl HttpFlags {
    /// Properties of the flags: reloadable, and names in Prometheus.
    pub const MARKS: Marks = Marks {
        short: &["listen"],
        reloadable: &[
            "enable-admin-api",
            "enable-lifecycle",
            "idle-timeout",
            "max-request-size",
            "request-timeout",
            "send-timeout",
        ],
        prometheus: &[
            ("web.enable-admin-api", "enable-admin-api"),
            ("web.enable-lifecycle", "enable-lifecycle"),
            ("web.external-url", "external-url"),
            ("web.listen-address", "listen"),
            ("web.max-connections", "max-connections"),
            ("web.read-timeout", "request-timeout"),
            ("web.route-prefix", "route-prefix"),
        ],
        ..Marks::NONE
    };

    pub fn client_limits(&self) -> ClientLimits {
        ClientLimits {
            request_timeout: self.request_timeout,
            idle_timeout: self.idle_timeout,
            send_timeout: self.send_timeout,
        }
    }
}
