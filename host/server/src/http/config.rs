//! Configuration of the HTTP server, which the flags of the crate build.

use super::listen::ListenAddress;
use crate::access::{AllowedHost, CorsOrigin};
use std::collections::BTreeMap;
use std::time::Duration;
use tidepool_protocol::prom::external_labels::ExternalLabels;

/// Address, access and limits of the server.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    pub listen: ListenAddress,
    pub connections_max: u32,
    /// Timeouts of slow or idle clients.
    pub limits: ClientLimits,
    /// Maximum memory of all request bodies together.
    pub inflight_bytes_max: usize,
    /// Maximum size of a request body, both compressed and decompressed.
    pub request_bytes_max: usize,
    /// Labels that identify this node among all others.
    pub external_labels: ExternalLabels,
    /// Settings of the translation of OTLP metrics.
    pub otlp: tidepool_protocol::otlp::Settings,
    /// Whether the admin API may delete data and make snapshots.
    pub admin_api: bool,
    /// Whether `POST /-/reload` is enabled.
    pub lifecycle: bool,
    /// Whether each request is logged.
    pub access_log: bool,
    /// Names accepted besides those that no page can point elsewhere.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Origins of browser pages that may read responses.
    pub cors_origin: CorsOrigin,
    /// All flags as given, by name, for `/api/v1/status/flags`.
    pub flags: BTreeMap<String, String>,
    /// The loaded configuration as YAML, without secrets.
    pub yaml: String,
    /// Maximum number of samples in a SAMPLES response; 0 for no limit.
    pub read_samples_max: u64,
    /// Maximum size of a SAMPLES response in bytes; 0 for no limit.
    pub read_response_bytes_max: u64,
    /// Size in bytes at which a streamed frame ends.
    pub read_frame_bytes_max: u32,
}

/// Timeouts of clients; each counts from the last progress.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// For the head of a request, and then for its body.
    pub request_timeout: Duration,
    pub idle_timeout: Duration,
    /// Close connections whose client reads no response data for this long.
    pub send_timeout: Duration,
}
