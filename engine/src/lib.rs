//! The tidepool storage engine.
//!
//! A pure library: no clock, thread, socket, path or global state. It builds natively (tests,
//! fuzzing, benchmarks) and for `wasm32-wasip2` as the component that everyone runs.
//!
//! Reading order: [`model`], [`memory`] and [`storage`] give the words and the outside world; [`codec`],
//! [`chunk`] and [`index`] the small formats; [`head`], [`wal`] and [`wire`] the way in;
//! [`block`], [`select`] and [`compact`] the way to disk and back, [`text`] the way to people;
//! [`backfill`] makes blocks of old samples, [`inspect`] looks at what is there;
//! [`engine`] joins them.
//! Dependencies point up this list only.

pub mod model;

pub mod memory;

pub mod codec;

pub mod storage;

pub mod chunk;

pub mod index;

pub mod head;

pub mod wal;

pub mod wire;

pub mod text;

pub mod block;

pub mod select;

pub mod compact;

pub mod backfill;

pub mod inspect;

pub mod engine;

mod error;

pub use error::{Error, Result};

#[cfg(test)]
mod upstream_tests;

#[cfg(target_arch = "wasm32")]
mod component;
