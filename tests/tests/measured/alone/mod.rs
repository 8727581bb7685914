//! Tests that measure the whole process, so that nothing else may run.

mod churn;
mod footprint;
pub mod host_metrics;
mod memory;
mod queries;
mod runaway;
mod scrape_body;
mod streaming;
mod wear;
