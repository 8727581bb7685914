//! What counts memory, bytes on disk or time, so that nothing else may run meanwhile.

mod churn;
mod footprint;
mod head_memory;
mod memory;
mod queries;
mod runaway;
mod streaming;
mod wear;
