//! Configuration of the HTTP server, built from the flags of this crate.

use super::external::External;
use super::listen::ListenAddress;
use crate::access::{AllowedHost, CorsOrigin};
use std::collections::BTreeMap;
use std::time::Duration;
use tidepool_protocol::prom::external_labels::ExternalLabels;

/// Address, access and limits of the server.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    pub listen: ListenAddress,
    pub external: External,
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
    /// Host names from `--allowed-host`, accepted in addition to the machine's own names.
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
    /// Size in bytes at which a frame of a streamed response is ended.
    pub read_frame_bytes_max: u32,
}

/// Timeouts for clients. Each is measured from the last progress.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// Maximum time to receive a request head, and then the same again for the body.
    pub request_timeout: Duration,
    pub idle_timeout: Duration,
    /// Close connections whose client reads no response data for this long.
    pub send_timeout: Duration,
}
