//! Flags of the server by topic, and the configuration built from them.

mod http;
mod otlp;
mod remote_read;
mod security;

pub use http::HttpFlags;
pub use otlp::OtlpFlags;
pub use remote_read::RemoteReadFlags;
pub use security::{SecurityFlags, warn_of_strangers};

use crate::access::AccessConfig;
use crate::http::{External, HttpConfig};
use clap::Args;
use std::collections::BTreeMap;
use tidepool_protocol::prom::external_labels::ExternalLabels;
use tidepool_settings::flags::size;
use tidepool_store::MemorySplit;

/// Upper bounds of the defaults for the size of a request and for the memory of all requests.
const REQUEST_BYTES: u64 = 32 << 20;
const INFLIGHT_BYTES: u64 = 64 << 20;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
pub struct ServerFlags {
    #[command(flatten)]
    pub http: HttpFlags,
    #[command(flatten)]
    pub security: SecurityFlags,
    #[command(flatten)]
    pub read: RemoteReadFlags,
    #[command(flatten)]
    pub otlp: OtlpFlags,
}

impl ServerFlags {
    /// Builds the configuration of the server. The caller sets `flags` and `yaml`, which show the
    /// settings of the whole program.
    pub fn config(
        self,
        memory: &MemorySplit,
        external_labels: ExternalLabels,
        access_log: bool,
    ) -> (HttpConfig, AccessConfig) {
        let ServerFlags { http, security, read, otlp } = self;
        let inflight_bytes = memory.network_bytes.min(INFLIGHT_BYTES);
        // The request size follows from the explicit memory, so that lowering one flag suffices.
        let inflight_bytes = http.max_inflight_bytes.unwrap_or(inflight_bytes);
        let head_part = memory.head_bytes / 8;
        let request_bytes = head_part.min(REQUEST_BYTES).min(inflight_bytes / 2);
        let config = HttpConfig {
            connections_max: http.max_connections,
            limits: http.client_limits(),
            inflight_bytes_max: size(inflight_bytes),
            request_bytes_max: size(http.max_request_size.unwrap_or(request_bytes)),
            admin_api: http.enable_admin_api,
            lifecycle: http.enable_lifecycle,
            external: External { url: http.external_url, route_prefix: http.route_prefix },
            listen: http.listen,
            external_labels,
            otlp: otlp.settings(),
            access_log,
            allowed_hosts: security.allowed_host.clone(),
            cors_origin: security.cors_origin.clone(),
            flags: BTreeMap::new(),
            yaml: String::new(),
            read_samples_max: read.read_sample_limit,
            read_response_bytes_max: read.read_response_limit,
            // Frame lengths have 32 bits, so a larger limit is the same as the maximum.
            read_frame_bytes_max: u32::try_from(read.read_max_bytes_in_frame).unwrap_or(u32::MAX),
        };
        (config, security.access())
    }
}

/// Checks that the settings of the server are consistent with each other.
pub fn check(http: &HttpConfig, access: &AccessConfig) -> Result<(), String> {
    security::check_changing(access, http)?;
    // Half of the memory is for compressed bodies, so the largest request must fit into half.
    let HttpConfig { inflight_bytes_max, request_bytes_max, .. } = http;
    if inflight_bytes_max / 2 < *request_bytes_max {
        return Err(format!(
            "--max-inflight-bytes={inflight_bytes_max} is less than twice \
             --max-request-size={request_bytes_max}: the largest request would always be refused. \
             Raise the former or lower the latter"
        ));
    }
    Ok(())
}
