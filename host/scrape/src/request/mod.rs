//! The HTTP request of a scrape: its headers, and how the response is read.

mod accept;
mod http;

pub use accept::{accept_header, timeout_header};
pub use http::{Head, HttpSource, ResponseSummary};

/// Header that tells a target the timeout of the scrape, in seconds.
pub const TIMEOUT_HEADER: &str = "x-prometheus-scrape-timeout-seconds";
