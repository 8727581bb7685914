//! Measurements that other tests do not disturb: linear memory, and counters of written bytes.

mod default_rules;
mod gathered_log;
mod head_memory;
mod least_memory;
mod scrape_churn;
