//! The HTTP API: as Prometheus answers, so tidepool answers; whatever is long comes in pages; while
//! the log is replayed nothing is answered; promtool and browsers are content.

mod like_prometheus;
mod pages;
mod tools;
