//! The tidepool storage engine.
//!
//! A pure library: no clock, thread, socket, path or global state. It builds natively (tests,
//! fuzzing, benchmarks) and for `wasm32-wasip2` as the component that everyone runs.
//!
//! Reading order: [`model`] and [`storage`] give the words and the outside world.

pub mod codec;
pub mod model;
pub mod storage;
