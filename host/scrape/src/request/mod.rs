//! The request of a scrape: what is asked for, and what an answer's head says.

mod accept;
mod http;

pub use accept::{accept_header, timeout_header};
pub use http::{Head, HttpSource, Seen};

/// Name of the header that tells a target how long the scrape waits, in seconds.
pub const TIMEOUT_HEADER: &str = "x-prometheus-scrape-timeout-seconds";
