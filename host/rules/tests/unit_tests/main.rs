//! Unit tests of rules: upstream's verdicts and texts for its own files and for ours, and its
//! reading of series.

#[path = "../module/mod.rs"]
mod module;
mod notation;
mod promtool;
mod store;
