//! tidepool beside foreign servers and tools, which `tests/peers/build` and packages bring.

mod compliance;
mod histograms;
mod migration;
mod migration_formats;
mod migration_kinds;
mod otlp;
mod plugin_peers;
mod prometheus;
mod promtool;
mod reference;
mod senders;
mod text_import;
mod thanos;
mod tsdb;
