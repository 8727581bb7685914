//! The configuration of the server, which the flags of `config/` make.

use super::listen::ListenAddress;
use crate::access::{AllowedHost, CorsOrigin};
use std::collections::BTreeMap;
use std::time::Duration;
use tidepool_protocol::prom::external_labels::ExternalLabels;

/// Where the server listens, whom it answers, and within which limits.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Address to listen on.
    pub listen: ListenAddress,
    /// Most open connections.
    pub connections_max: u32,
    /// How long clients may take.
    pub limits: ClientLimits,
    /// Request bodies in memory, all together.
    pub inflight_bytes_max: usize,
    /// Largest request body, compressed as well as decompressed.
    pub request_bytes_max: usize,
    /// What tells this node from all others.
    pub external_labels: ExternalLabels,
    /// How OTLP metrics are translated.
    pub otlp: tidepool_protocol::otlp::Settings,
    /// Whether stored data may be deleted and copied.
    pub admin_api: bool,
    /// Whether a request may reload the configuration.
    pub lifecycle: bool,
    /// Whether each request gets a line in the log.
    pub access_log: bool,
    /// Names under which this server may be asked, besides those that no page can point elsewhere.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Which pages in a browser may read answers.
    pub cors_origin: CorsOrigin,
    /// All flags as they were given, by name, to be shown.
    pub flags: BTreeMap<String, String>,
    /// The loaded configuration as YAML, without secrets.
    pub yaml: String,
    /// Most samples in an answer of kind SAMPLES; 0 means no limit.
    pub read_samples_max: u64,
    /// Most bytes in an answer of kind SAMPLES; 0 means no limit.
    pub read_response_bytes_max: u64,
    /// Size of a streamed frame.
    pub read_frame_bytes_max: u32,
}

/// How long clients may take.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// For a request's head, and then for its body.
    pub request_timeout: Duration,
    /// Between two requests.
    pub idle_timeout: Duration,
    /// To read some of a response.
    pub send_timeout: Duration,
}
