//! What measures the whole process: nothing else may run meanwhile.

mod churn;
mod footprint;
mod host_metrics;
mod memory;
mod queries;
mod runaway;
mod scrape_body;
mod streaming;
mod wear;
