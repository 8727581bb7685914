//! The storage engine: head, chunks, blocks and their index, content of records of the write-ahead
//! log, selection, compaction, and the bodies of requests that forward samples.
//!
//! A pure library: no clock, thread, socket, path or global state. It builds natively (tests,
//! fuzzing, benchmarks) and for `wasm32-wasip2` as the component that everyone runs.
//!
//! Reading order: [`model`], [`memory`] and [`storage`] define data types, memory limits and the
//! traits of the outside world; [`codec`], [`chunk`] and [`index`] the low-level formats; [`head`],
//! [`wal`] and [`wire`] the write path; [`block`], [`select`] and [`compact`] blocks and reads;
//! [`text`] the text formats. [`backfill`] makes blocks of old samples, [`inspect`] verifies and
//! analyses stored data, [`forward`] makes remote-write requests of stored samples, after
//! [`relabel`] changed their labels, and [`engine`] joins them all. A module depends only on
//! modules before it in this list.
//!
//! # Used directly
//!
//! A Rust program may link the engine instead of running the component: [`engine::Engine`] is the
//! same store, and [`storage`] has the two traits to implement (in memory in this example). The
//! engine then runs without a sandbox, and an `Engine` cannot be sent to another thread.
//!
//! ```
//! use std::rc::Rc;
//! use tidepool_engine::chunk::samples;
//! use tidepool_engine::engine::{Engine, Role, Room, Storage};
//! use tidepool_engine::head::HeadOptions;
//! use tidepool_engine::model::{Labels, MatchOp, MatcherSpec, Sample, TimeRange};
//! use tidepool_engine::select::{FrameFormat, Selection};
//! use tidepool_engine::storage::memory::{MemoryBlocks, MemoryWal};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (wal, blocks) = (MemoryWal::default(), Rc::new(MemoryBlocks::default()));
//! let storage = Storage { wal: Box::new(wal), blocks, head: None };
//! // A random seed of the label hashes keeps crafted labels from slowing down the series table.
//! let mut store = Engine::open(Role::All, HeadOptions::new(7), storage)?;
//! while !store.replay(1 << 20)?.done {}
//!
//! // A series is looked up once; its rows then name its number. The time now is a parameter.
//! let now_ms = 1_700_000_000_000;
//! let up = store.series_ref(&Labels::from_pairs([("__name__", "up"), ("job", "api")])?)?;
//! let rows = (0..4).map(|step| Sample { timestamp_ms: now_ms + 15_000 * step, value: 1.0 });
//! let outcome = store.append(rows.map(|sample| (up, sample)), now_ms)?;
//! assert_eq!(outcome.samples_written, 4);
//!
//! // Chunks are returned whole, so they may reach past the range. A page has about a mebibyte.
//! let api = MatcherSpec { name: "job".into(), op: MatchOp::Equal, value: "api".into() };
//! let range = TimeRange { start_ms: now_ms, end_ms: now_ms + 30_000 };
//! let mut cursor = store.select(&Selection {
//!     matchers: vec![api],
//!     range,
//!     format: FrameFormat::ChunkedSeries,
//!     query_index: 0,
//!     frame_bytes_max: 0,
//!     samples_max: 0,
//!     external: Labels::default(),
//! })?;
//! let series = cursor.next(1 << 20)?;
//! assert_eq!(series[0].labels.to_string(), r#"{__name__="up", job="api"}"#);
//! let mut times_ms = Vec::new();
//! for sample in samples(&series[0].chunks[0])? {
//!     times_ms.push(sample?.timestamp_ms);
//! }
//! assert_eq!(times_ms.len(), 4);
//! assert!(cursor.next(1 << 20)?.is_empty());
//! drop(cursor); // An open cursor keeps the head from truncating.
//!
//! // Each call does a bounded slice of cutting blocks, merging them and retention.
//! let room = Room { free_bytes: u64::MAX, other_bytes: 0, memory_bytes: u64::MAX };
//! while !store.compact(now_ms, room)?.done {}
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

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

#[cfg(feature = "promql")]
pub mod query;
pub mod select;

pub mod compact;

pub mod backfill;

pub mod inspect;

pub use tidepool_relabel as relabel;

pub mod forward;

pub mod engine;

mod error;

pub use error::{Error, Result};

#[cfg(test)]
mod upstream_tests;

#[cfg(target_arch = "wasm32")]
mod component;
