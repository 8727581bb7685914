//! The HTTP API: as Prometheus answers, so tidepool answers; promtool is content.

mod like_prometheus;
mod promtool;
