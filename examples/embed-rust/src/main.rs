//! Loads the component, gives it storage, writes a few series, reads some of them back, and
//! evaluates a query.

use embed_rust::bindings::exports::tidepool::tsdb::store::{
    Columns, LabelLimits, Options, Role, TextFormat,
};
use embed_rust::bindings::tidepool::tsdb::types::{Error, Label, MatchOp, Matcher, TimeRange};
use embed_rust::query::{Times, evaluate};
use embed_rust::{State, bindings, linker};
use wasmtime::component::Component;
use wasmtime::error::Context;
use wasmtime::{Engine, Result, Store};

const COMPONENT: &str = "target/engine/wasm32-wasip2/component/tidepool_engine.wasm";

/// A day in November 2023; a real host asks its clock.
const NOW_MS: i64 = 1_700_000_000_000;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| COMPONENT.into());
    let engine = Engine::default();
    let component = Component::from_file(&engine, &path)
        .context(format!("cannot load {path}; `cargo build-component` makes it"))?;
    let store = &mut Store::new(&engine, State::default());
    let instance =
        bindings::EngineWithQueries::instantiate(&mut *store, &component, &linker(&engine)?)?;
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

    // Read, piece by piece: here as lines of text. `select` returns chunks, or bytes for the
    // network.
    let errors = Matcher { name: "code".into(), op: MatchOp::Regex, value: "[45]..".into() };
    let range = TimeRange { start_ms: NOW_MS, end_ms: NOW_MS + 30_000 };
    let lines = tidepool.call_dump(&mut *store, &[vec![errors]], range, TextFormat::Dump)?;
    let lines = check(lines)?;
    loop {
        let piece = check(tidepool.line_cursor().call_next(&mut *store, lines, 64 << 10)?)?;
        if piece.is_empty() {
            break;
        }
        print!("{}", String::from_utf8_lossy(&piece));
    }
    lines.resource_drop(&mut *store)?;

    // Query: requests per second that failed, and their share.
    let now = Times::At(NOW_MS + 45_000);
    for expression in [
        r#"rate(http_requests_total{code="500"}[1m])"#,
        r#"sum(rate(http_requests_total{code="500"}[1m])) / sum(rate(http_requests_total[1m]))"#,
    ] {
        for series in evaluate(&instance, store, expression, now)??.series {
            let labels: Vec<_> = series
                .labels
                .iter()
                .map(|Label { name, value }| format!("{name}={value:?}"))
                .collect();
            println!("{{{}}} {:.4}", labels.join(", "), series.values[0]);
        }
    }
    check(tidepool.call_close(&mut *store)?)
}

/// Converts an error of the store into an error of this program.
fn check<T>(result: Result<T, Error>) -> Result<T> {
    result.map_err(wasmtime::Error::new)
}
