//! What counts memory, bytes on disk or time, so that nothing else may run meanwhile.

mod churn;
mod footprint;
mod head_memory;
mod host_metrics;
mod memory;
mod queries;
mod runaway;
mod scrape_body;
mod scrape_churn;
mod streaming;
mod wear;
