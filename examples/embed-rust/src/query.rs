//! Evaluation of queries in PromQL.

use crate::State;
use crate::bindings::EngineWithQueries;
use crate::bindings::exports::tidepool::tsdb::query::{
    Annotation, Guest, QueryError, QueryOptions, ResultSeries, ValueType,
};
use wasmtime::component::ResourceAny;
use wasmtime::{Result, Store};

/// Approximate maximum of bytes of series that one call returns.
const PIECE_BYTES: u32 = 1 << 20;

/// Times of an evaluation, in milliseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub enum Times {
    At(i64),
    /// At the start, then every step until the end, which is included.
    Range {
        start_ms: i64,
        /// The last step is at this time or before it.
        end_ms: i64,
        step_ms: i64,
    },
}

/// A whole answer in memory. A host with large answers handles the series as they come.
#[derive(Debug)]
pub struct Answer {
    pub value_type: ValueType,
    /// Result of an expression of the type string; empty for other types.
    pub text: String,
    /// Result of an expression of any other type.
    pub series: Vec<ResultSeries>,
    /// Warnings first, then infos, as the store gives them.
    pub annotations: Vec<Annotation>,
}

/// Limits like those of the program `tidepool`, and Prometheus' defaults otherwise.
pub const OPTIONS: QueryOptions = QueryOptions {
    lookback_ms: 0,
    samples_max: 50_000_000,
    series_max: 0,
    memory_bytes_max: 256 << 20,
    subquery_step_ms: 0,
    experimental_functions: false,
    extended_range_selectors: false,
    binop_fill_modifiers: false,
    delayed_name_removal: false,
    type_and_unit_labels: false,
    start_timestamps: false,
    stats_per_step: false,
};

/// Evaluates an expression over the store that is open in an instance. The outer error is a trap of
/// the component, the inner one an error of the query.
pub fn evaluate(
    tidepool: &EngineWithQueries,
    store: &mut Store<State>,
    expression: &str,
    times: Times,
) -> Result<Result<Answer, QueryError>> {
    let guest = tidepool.tidepool_tsdb_query();
    let evaluation = match times {
        Times::At(time_ms) => guest.call_instant(&mut *store, expression, time_ms, OPTIONS)?,
        Times::Range { start_ms, end_ms, step_ms } => {
            guest.call_range(&mut *store, expression, start_ms, end_ms, step_ms, OPTIONS)?
        }
    };
    let evaluation = match evaluation {
        Ok(evaluation) => evaluation,
        Err(error) => return Ok(Err(error)),
    };
    let answer = read(guest, store, evaluation)?;
    // An open evaluation keeps the blocks that it reads from being dropped.
    evaluation.resource_drop(store)?;
    Ok(answer)
}

fn read(
    guest: &Guest,
    store: &mut Store<State>,
    evaluation: ResourceAny,
) -> Result<Result<Answer, QueryError>> {
    let mut series = Vec::new();
    loop {
        match guest.evaluation().call_next(&mut *store, evaluation, PIECE_BYTES)? {
            Ok(piece) if piece.is_empty() => break,
            Ok(piece) => series.extend(piece),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(Answer {
        value_type: guest.evaluation().call_value_type(&mut *store, evaluation)?,
        text: guest.evaluation().call_text(&mut *store, evaluation)?,
        series,
        annotations: guest.evaluation().call_annotations(&mut *store, evaluation, 0)?,
    }))
}
