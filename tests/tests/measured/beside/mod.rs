//! What is the same beside other tests: linear memory, and counters of what was written.

mod gathered_log;
mod head_memory;
mod least_memory;
mod scrape_churn;
