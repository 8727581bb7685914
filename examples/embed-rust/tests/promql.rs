//! Queries return the same as Prometheus for the same samples: the cases of
//! `tests/contract/queries`, over this example's storage, from the head and from blocks.

use embed_rust::bindings::EngineWithQueries;
use embed_rust::bindings::exports::tidepool::tsdb::query::{QueryError, ResultSeries, ValueType};
use embed_rust::bindings::exports::tidepool::tsdb::store::{
    Columns, LabelLimits, Options, Role, Room,
};
use embed_rust::bindings::tidepool::tsdb::types::Label;
use embed_rust::query::{Answer, Times, evaluate};
use embed_rust::{State, linker};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use tidepool_contract::target_dir;
use wasmtime::component::Component;
use wasmtime::{Engine, Result, Store};

const CASES: &str = include_str!("../../../tests/contract/queries/cases.json");

/// A label set, with its times and values.
type Series = (BTreeMap<String, String>, Vec<(i64, f64)>);

#[test]
fn queries_give_the_answers_of_prometheus() -> Result<()> {
    let cases: Json = serde_json::from_str(CASES)?;
    let engine = Engine::default();
    let file = target_dir().join("engine/wasm32-wasip2/component/tidepool_engine.wasm");
    let component = Component::from_file(&engine, file).expect("`cargo build-component` makes it");
    let store = &mut Store::new(&engine, State::default());
    let tidepool = EngineWithQueries::instantiate(&mut *store, &component, &linker(&engine)?)?;
    let guest = tidepool.tidepool_tsdb_store();
    // Blocks of five minutes, so that most of the 15 minutes of samples are cut from the head.
    let options = Options {
        role: Role::All,
        block_duration_ms: 300_000,
        future_limit_ms: 600_000,
        out_of_order_window_ms: 7_200_000,
        series_max: 0,
        exemplars_max: 0,
        memory_bytes_max: 0,
        label_limits: LabelLimits { labels_max: 0, name_bytes_max: 0, value_bytes_max: 0 },
        block_duration_max_ms: 0,
        retention_ms: 0,
        retention_bytes: 0,
        hash_seed: 1,
    };
    guest.call_open(&mut *store, options)??;
    while !guest.call_replay(&mut *store, 1 << 20)??.done {}
    let mut newest_ms = 0;
    for (labels, samples) in cases["series"].as_array().expect("series").iter().map(written) {
        let label =
            |(name, value): (&String, &String)| Label { name: name.into(), value: value.into() };
        let labels: Vec<Label> = labels.iter().map(label).collect();
        let series = guest.call_series_ref(&mut *store, &labels)??;
        let rows = Columns {
            series: vec![series; samples.len()],
            timestamps_ms: samples.iter().map(|sample| sample.0).collect(),
            values: samples.iter().map(|sample| sample.1).collect(),
        };
        newest_ms = newest_ms.max(samples[samples.len() - 1].0);
        let outcome = guest.call_append(&mut *store, &rows, newest_ms)??;
        assert_eq!(outcome.refused, 0);
    }
    assert_answers(&tidepool, store, &cases)?;

    let room = Room { free_bytes: u64::MAX, other_bytes: 0, memory_bytes: u64::MAX };
    let mut blocks = 0;
    loop {
        let progress = guest.call_compact(&mut *store, newest_ms, room)??;
        blocks += usize::from(progress.block.is_some());
        if progress.done {
            break;
        }
    }
    assert!(blocks > 0, "the head was cut");
    assert_answers(&tidepool, store, &cases)
}

fn written(series: &Json) -> Series {
    let number = |name: &str| series[name].as_i64().expect("a time");
    let values = series["values"].as_array().expect("values").iter();
    let samples = values.enumerate().map(|(step, value)| {
        let time_ms = number("startMs") + number("stepMs") * step as i64;
        (time_ms, value.as_f64().expect("a value"))
    });
    (labels_of(series), samples.collect())
}

fn labels_of(series: &Json) -> BTreeMap<String, String> {
    serde_json::from_value(series["labels"].clone()).expect("labels")
}

fn assert_answers(
    tidepool: &EngineWithQueries,
    store: &mut Store<State>,
    cases: &Json,
) -> Result<()> {
    let queries = cases["queries"].as_array().expect("queries");
    assert!(queries.len() >= 20);
    for case in queries {
        let expression = case["query"].as_str().expect("an expression");
        let number = |name: &str| case[name].as_i64().expect("a time");
        let times = match number("stepMs") {
            0 => Times::At(number("startMs")),
            step_ms => {
                Times::Range { start_ms: number("startMs"), end_ms: number("endMs"), step_ms }
            }
        };
        let found = evaluate(tidepool, store, expression, times)?;
        match (found, case["errorType"].as_str()) {
            (Ok(answer), None) => assert_answer(expression, &answer, case),
            (Err(QueryError::Parse(error)), Some("bad_data")) => {
                let message = case["error"].as_str().expect("a message");
                let message = message.trim_start_matches("invalid parameter \"query\": ");
                assert_eq!(error.text, message, "{expression}");
            }
            (Err(QueryError::Execution(_)), Some("execution")) => {}
            (found, failure) => panic!("{expression}: {found:?} instead of {failure:?}"),
        }
    }
    Ok(())
}

fn assert_answer(expression: &str, answer: &Answer, case: &Json) {
    let value_type = match answer.value_type {
        ValueType::Scalar => "scalar",
        ValueType::String => "string",
        ValueType::Vector => "vector",
        ValueType::Matrix => "matrix",
    };
    assert_eq!(case["resultType"], value_type, "{expression}");
    assert_eq!(case["text"].as_str().unwrap_or_default(), answer.text, "{expression}");
    for (name, is_warning) in [("warnings", true), ("infos", false)] {
        let found = answer.annotations.iter().filter(|one| one.is_warning == is_warning);
        let found: Vec<&str> = found.map(|one| &*one.text).collect();
        assert_eq!(case[name], Json::from(found), "{expression}");
    }
    let mut wanted: Vec<Series> = case["series"]
        .as_array()
        .expect("series")
        .iter()
        .map(|one| (labels_of(one), points(one)))
        .collect();
    let mut found: Vec<Series> = answer.series.iter().map(series_of).collect();
    wanted.sort_by(|one, other| one.0.cmp(&other.0));
    found.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(found.len(), wanted.len(), "{expression}: {found:?}");
    for ((labels, samples), (wanted_labels, wanted)) in found.iter().zip(&wanted) {
        assert_eq!(labels, wanted_labels, "{expression}");
        assert_eq!(samples.len(), wanted.len(), "{expression}{labels:?}");
        for (&(time_ms, value), &(wanted_ms, wanted)) in samples.iter().zip(wanted) {
            let is_same = value == wanted || (value - wanted).abs() <= 1e-12 * wanted.abs();
            assert!(
                time_ms == wanted_ms && (is_same || value.is_nan() && wanted.is_nan()),
                "{expression}{labels:?}: {value} at {time_ms} instead of {wanted} at {wanted_ms}"
            );
        }
    }
}

/// Reads values as Prometheus prints them.
fn points(series: &Json) -> Vec<(i64, f64)> {
    let point = |point: &Json| {
        let value = point[1].as_str().expect("a value").parse().expect("a number");
        (point[0].as_i64().expect("a time"), value)
    };
    series["points"].as_array().expect("points").iter().map(point).collect()
}

fn series_of(series: &ResultSeries) -> Series {
    assert!(series.histograms.is_empty());
    let labels = series.labels.iter().map(|label| (label.name.clone(), label.value.clone()));
    let samples = series.times_ms.iter().copied().zip(series.values.iter().copied());
    (labels.collect(), samples.collect())
}
