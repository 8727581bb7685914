//! Tests the interface `forward` of the compiled component, call by call. A store writes rows into
//! its logs, and destinations make requests of the records. The requests, decoded with the schemas
//! of `proto/`, contain the rows that were written.

mod gaps;
#[path = "../image/mod.rs"]
mod image;
mod node;
mod positions;
mod received;
mod requests;
mod rules;
mod series;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Time of the first row: the beginning of a store window of half an hour.
const BASE_MS: i64 = 944_445 * WINDOW_MS;

const WINDOW_MS: i64 = 30 * 60 * 1000;

const MINUTE_MS: i64 = 60 * 1000;
