//! The component in wasmtime, in a host such as `examples/embed-rust`.

use crate::work::{self, RUNS, SERIES, STEPS, STEPS_A_CALL, Spent, timed};
use crate::{Figures, Outcome};
use embed_rust::State;
use embed_rust::bindings::EngineWithQueries as Bindings;
use embed_rust::bindings::exports::tidepool::tsdb::store::{
    Columns, FrameFormat, LabelLimits, Options, Role, Selection,
};
use embed_rust::bindings::tidepool::tsdb::types::{ChunkEncoding, Label, TimeRange};
use std::time::Instant;
use tidepool_engine::chunk::{Chunk, Encoding, samples};
use wasmtime::component::Component;
use wasmtime::{Engine, Store};

struct Opened {
    store: Store<State>,
    bindings: Bindings,
}

fn open(engine: &Engine, component: &Component) -> Outcome<Opened> {
    let mut store = Store::new(engine, State::default());
    let bindings = Bindings::instantiate(&mut store, component, &embed_rust::linker(engine)?)?;
    let tidepool = bindings.tidepool_tsdb_store();
    let options = Options {
        role: Role::All,
        block_duration_ms: 2 * 60 * 60 * 1000,
        future_limit_ms: 10 * 60 * 1000,
        out_of_order_window_ms: 2 * 60 * 60 * 1000,
        series_max: 0,
        exemplars_max: 0,
        memory_bytes_max: 0,
        label_limits: LabelLimits { labels_max: 0, name_bytes_max: 0, value_bytes_max: 0 },
        block_duration_max_ms: 0,
        retention_ms: 0,
        retention_bytes: 0,
        hash_seed: 7,
    };
    tidepool.call_open(&mut store, options)??;
    while !tidepool.call_replay(&mut store, 1 << 20)??.done {}
    Ok(Opened { store, bindings })
}

fn read(Opened { store, bindings }: &mut Opened) -> Outcome<(u64, f64)> {
    let tidepool = bindings.tidepool_tsdb_store();
    let selection = Selection {
        matchers: vec![],
        range: TimeRange { start_ms: i64::MIN, end_ms: i64::MAX },
        format: FrameFormat::ChunkedSeries,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external_labels: vec![],
    };
    let cursor = tidepool.call_select(&mut *store, &selection)??;
    let (mut count, mut sum) = (0, 0.0);
    loop {
        let series = tidepool.cursor().call_next(&mut *store, cursor, 1 << 20)??;
        if series.is_empty() {
            cursor.resource_drop(&mut *store)?;
            return Ok((count, sum));
        }
        for chunk in series.into_iter().flat_map(|series| series.chunks) {
            if chunk.encoding != ChunkEncoding::Xor {
                return Err("a chunk of histograms".into());
            }
            let chunk = Chunk {
                encoding: Encoding::Xor,
                min_time_ms: chunk.min_time_ms,
                max_time_ms: chunk.max_time_ms,
                data: chunk.data.into(),
            };
            for sample in samples(&chunk)? {
                count += 1;
                sum += sample?.value;
            }
        }
    }
}

pub fn measure() -> Outcome<Figures> {
    let file =
        tidepool_contract::target_dir().join("engine/wasm32-wasip2/component/tidepool_engine.wasm");
    let began = Instant::now();
    let engine = Engine::default();
    let component = Component::from_file(&engine, &file)?;
    drop(open(&engine, &component)?);
    let load_ms = began.elapsed().as_secs_f64() * 1e3;
    let compiled = component.serialize()?;
    let began = Instant::now();
    // SAFETY: the same engine has just returned these bytes.
    #[allow(unsafe_code)]
    let component = unsafe { Component::deserialize(&engine, &compiled) }?;
    drop(open(&engine, &component)?);
    let reload_ms = began.elapsed().as_secs_f64() * 1e3;

    let (mut append, mut select) = (Spent::MOST, Spent::MOST);
    let mut found = (0, 0.0);
    for _ in 0..RUNS {
        let mut opened = open(&engine, &component)?;
        let Opened { store, bindings } = &mut opened;
        let tidepool = bindings.tidepool_tsdb_store();
        let mut refs = Vec::new();
        for series in 0..SERIES {
            let labels = work::labels(series);
            let labels = labels.map(|(name, value)| Label { name: name.into(), value });
            refs.push(tidepool.call_series_ref(&mut *store, &labels)??);
        }
        let batch = |from: usize| {
            let mut rows = Columns { series: vec![], timestamps_ms: vec![], values: vec![] };
            for step in from..from + STEPS_A_CALL {
                for (series, number) in refs.iter().enumerate() {
                    rows.series.push(*number);
                    rows.timestamps_ms.push(work::time_ms(step));
                    rows.values.push(work::value(series, step));
                }
            }
            rows
        };
        let batches: Vec<Columns> = (0..STEPS).step_by(STEPS_A_CALL).map(batch).collect();
        let (appended, spent) = timed(|| -> Outcome<()> {
            for rows in &batches {
                tidepool.call_append(&mut *store, rows, work::END_MS)??;
            }
            Ok(())
        });
        appended?;
        append = append.least(spent);
        let (read, spent) = timed(|| read(&mut opened));
        found = read?;
        select = select.least(spent);
    }
    Ok(Figures {
        load_ms,
        reload_ms: Some(reload_ms),
        append_seconds: append.seconds,
        append_cpu_seconds: append.cpu_seconds,
        select_seconds: select.seconds,
        select_cpu_seconds: select.cpu_seconds,
        samples: found.0,
        sum: found.1,
    })
}
