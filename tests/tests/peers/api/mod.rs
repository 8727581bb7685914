//! The HTTP API: tidepool answers as Prometheus does, and promtool accepts the answers.

mod like_prometheus;
mod promtool;
