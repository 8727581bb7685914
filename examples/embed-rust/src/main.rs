//! The tidepool component in a host of your own: load it, give it storage, write, read.
//!
//! `storage.rs` holds the storage, here plain memory, and answers the component's imports from it.
//! This file is all the rest that a host needs.

#[allow(missing_docs, clippy::all)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "engine",
        // An import may trap, which is for bugs; what can go wrong is in its result.
        imports: { default: trappable },
        with: {
            "tidepool:tsdb/wal.checkpoint": crate::storage::Checkpoint,
            "tidepool:tsdb/blocks.file": crate::storage::File,
            "tidepool:tsdb/blocks.writer": crate::storage::Writer,
        },
    });
}
mod storage;

use bindings::exports::tidepool::tsdb::store::{
    Columns, FrameFormat, LabelLimits, Options, Role, Selection,
};
use bindings::tidepool::tsdb::types::{Error, Label, MatchOp, Matcher, TimeRange};
use prost::Message;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::error::Context;
use wasmtime::{Config, Engine, Result, Store};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};

const COMPONENT: &str = "target/wasm32-wasip2/component/tidepool_engine.wasm";

/// A day in November 2023; a real host asks its clock.
const NOW_MS: i64 = 1_700_000_000_000;

/// What wasmtime keeps for one instance of the component.
struct State {
    storage: storage::Storage,
    table: ResourceTable,
    /// Rust's standard library wants some WASI; it gets a way to say why it panics.
    wasi: WasiCtx,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// The answer in the format `samples`: the fields of a `prometheus.QueryResult`.
#[derive(Message)]
struct Answer {
    #[prost(message, repeated, tag = "1")]
    series: Vec<TimeSeries>,
}

#[derive(Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp_ms: i64,
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| COMPONENT.into());
    let engine = Engine::new(&Config::new())?;
    let component = Component::from_file(&engine, &path)
        .context(format!("cannot load {path}; `cargo build-component` makes it"))?;

    let mut linker = Linker::<State>::new(&engine);
    wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?;
    bindings::Engine::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    let state = State {
        storage: storage::Storage::default(),
        table: ResourceTable::new(),
        wasi: WasiCtx::builder().inherit_stderr().build(),
    };
    let store = &mut Store::new(&engine, state);
    let instance = bindings::Engine::instantiate(&mut *store, &component, &linker)?;
    let tidepool = instance.tidepool_tsdb_store();

    // Open, and read the log back; this one is empty.
    let options = Options {
        role: Role::All,
        block_duration_ms: 2 * 60 * 60 * 1000,
        future_limit_ms: 10 * 60 * 1000,
        out_of_order_window_ms: 2 * 60 * 60 * 1000,
        series_max: 0,
        exemplars_max: 1000,
        memory_bytes_max: 0,
        label_limits: LabelLimits { labels_max: 128, name_bytes_max: 1024, value_bytes_max: 4096 },
        block_duration_max_ms: 0,
        retention_ms: 0,
        retention_bytes: 0,
        hash_seed: 0x7469_6465_706f_6f6c, // A real host takes a random one.
    };
    check(tidepool.call_open(&mut *store, options)?)?;
    while !check(tidepool.call_replay(&mut *store, 1 << 20)?)?.done {}

    // Write: label sets once, then rows as columns.
    let mut rows = Columns { series: vec![], timestamps_ms: vec![], values: vec![] };
    for (code, per_step) in [("200", 40.0), ("404", 1.0), ("500", 0.5)] {
        let labels = [("__name__", "http_requests_total"), ("code", code), ("job", "api")];
        let labels = labels.map(|(name, value)| Label { name: name.into(), value: value.into() });
        let series_ref = check(tidepool.call_series_ref(&mut *store, &labels)?)?;
        for step in 0..4 {
            rows.series.push(series_ref);
            rows.timestamps_ms.push(NOW_MS + 15_000 * step);
            rows.values.push(per_step * step as f64);
        }
    }
    let outcome = check(tidepool.call_append(&mut *store, &rows, NOW_MS)?)?;
    println!("{} samples written, {} refused", outcome.samples_written, outcome.refused);

    // Read, piece by piece: each call gives about as many bytes as asked for, and together they are
    // the message. A piece may end within a long series.
    let errors = Matcher { name: "code".into(), op: MatchOp::Regex, value: "[45]..".into() };
    let selection = Selection {
        matchers: vec![errors],
        range: TimeRange { start_ms: NOW_MS, end_ms: NOW_MS + 30_000 },
        format: FrameFormat::Samples,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external_labels: vec![],
    };
    let cursor = check(tidepool.call_select(&mut *store, &selection)?)?;
    let mut answer = vec![];
    loop {
        let bytes = check(tidepool.cursor().call_next_frames(&mut *store, cursor, 64 << 10)?)?;
        if bytes.is_empty() {
            break;
        }
        answer.extend(bytes);
    }
    for TimeSeries { labels, samples } in Answer::decode(&*answer)?.series {
        let label = |pair: LabelPair| format!("{}={:?}", pair.name, pair.value);
        println!("{{{}}}", labels.into_iter().map(label).collect::<Vec<_>>().join(", "));
        for Sample { value, timestamp_ms } in samples {
            println!("  {value} at {timestamp_ms}");
        }
    }
    cursor.resource_drop(&mut *store)?;
    check(tidepool.call_close(&mut *store)?)
}

/// What the store refused, as an error of this program.
fn check<T>(result: std::result::Result<T, Error>) -> Result<T> {
    result.map_err(wasmtime::Error::new)
}
