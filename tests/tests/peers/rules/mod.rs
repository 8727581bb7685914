//! Recording and alerting rules.

mod samples;
mod verdicts;
