//! The engine's component keeps what `wit/` says of absence, emptiness, zero, limits and order, as
//! seen through a host.

use embed_rust::State;
use embed_rust::bindings::EngineWithQueries as Component;
use embed_rust::bindings::exports::tidepool::tsdb::backfill::Rows;
use embed_rust::bindings::exports::tidepool::tsdb::inspect::{AnalysisOptions, Finding, Severity};
use embed_rust::bindings::exports::tidepool::tsdb::store::{
    CardinalityList, Columns, FrameFormat, Guest, LabelLimits, Options, RemoteWriteVersion,
    ReplayProgress, Role, Room, Selection, TextFormat,
};
use embed_rust::bindings::tidepool::tsdb::types::{
    Error, Label, Limit, Lookup, MatchOp, Matcher, StorageError, TimeRange,
};
use std::sync::LazyLock;
use tidepool_contract::target_dir;
use wasmtime::component::ResourceAny;
use wasmtime::{Engine, Result, Store};

const NOW_MS: i64 = 1_700_000_000_000;
const ALL: TimeRange = TimeRange { start_ms: i64::MIN, end_ms: i64::MAX };
const NEVER: TimeRange = TimeRange { start_ms: NOW_MS, end_ms: NOW_MS - 1 };
const ROOM: Room = Room { free_bytes: u64::MAX, other_bytes: 0, memory_bytes: u64::MAX };
const NO_BLOCK: &str = "01HF7YAT000000000000000000";

const OPTIONS: Options = Options {
    role: Role::All,
    block_duration_ms: 60_000,
    future_limit_ms: 600_000,
    out_of_order_window_ms: 600_000,
    series_max: 0,
    exemplars_max: 0,
    memory_bytes_max: 0,
    label_limits: LabelLimits { labels_max: 0, name_bytes_max: 0, value_bytes_max: 0 },
    block_duration_max_ms: 0,
    retention_ms: 0,
    retention_bytes: 0,
    hash_seed: 1,
};

static LOADED: LazyLock<(Engine, wasmtime::component::Component)> = LazyLock::new(|| {
    let engine = Engine::default();
    let file = target_dir().join("engine/wasm32-wasip2/component/tidepool_engine.wasm");
    let component = wasm_run::load(&engine, &file);
    (engine, component.expect("`cargo build-component` makes it"))
});

struct Tidepool {
    store: Store<State>,
    component: Component,
}

impl Tidepool {
    fn closed() -> Result<Tidepool> {
        let (engine, component) = &*LOADED;
        let linker = embed_rust::linker(engine)?;
        let mut store = Store::new(engine, State::default());
        let component = Component::instantiate(&mut store, component, &linker)?;
        Ok(Tidepool { store, component })
    }

    fn unread(options: Options) -> Result<Tidepool> {
        let mut tidepool = Tidepool::closed()?;
        tidepool.call(|guest, store| guest.call_open(store, options))??;
        Ok(tidepool)
    }

    fn open() -> Result<Tidepool> {
        let mut tidepool = Tidepool::unread(OPTIONS)?;
        assert_eq!(tidepool.replay()?.samples, 0);
        Ok(tidepool)
    }

    /// Replays to the end in the smallest steps.
    fn replay(&mut self) -> Result<ReplayProgress> {
        loop {
            let progress = self.call(|guest, store| guest.call_replay(store, 0))??;
            if progress.done {
                return Ok(progress);
            }
        }
    }

    /// Makes a store with three series, `a`, `b` and `c`, of ten samples each.
    fn filled() -> Result<Tidepool> {
        let mut tidepool = Tidepool::open()?;
        for name in ["a", "b", "c"] {
            tidepool.write(name, 0..10)?;
        }
        Ok(tidepool)
    }

    fn write(&mut self, name: &str, steps: std::ops::Range<i64>) -> Result<u64> {
        let series = self.call(|guest, store| guest.call_series_ref(store, &[label(name)]))??;
        let rows = Columns {
            series: steps.clone().map(|_| series).collect(),
            timestamps_ms: steps.clone().map(|step| NOW_MS + 15_000 * step).collect(),
            values: steps.map(|step| step as f64).collect(),
        };
        let now_ms = rows.timestamps_ms.last().copied().unwrap_or(NOW_MS);
        let outcome = self.call(|guest, store| guest.call_append(store, &rows, now_ms))??;
        Ok(outcome.samples_written)
    }

    fn call<T>(&mut self, call: impl FnOnce(&Guest, &mut Store<State>) -> T) -> T {
        call(self.component.tidepool_tsdb_store(), &mut self.store)
    }

    fn select(
        &mut self,
        matchers: Vec<Matcher>,
        range: TimeRange,
    ) -> Result<Result<ResourceAny, Error>> {
        let selection = Selection {
            matchers,
            range,
            format: FrameFormat::Samples,
            query_index: 0,
            frame_bytes_max: 0,
            samples_max: 0,
            external_labels: vec![],
        };
        self.call(|guest, store| guest.call_select(store, &selection))
    }

    /// Returns the number of series in each answer of a cursor.
    fn answers(&mut self, cursor: ResourceAny, bytes_max: u32) -> Result<Vec<usize>> {
        let mut answers = vec![];
        loop {
            let next = |guest: &Guest, store: &mut Store<State>| {
                guest.cursor().call_next(store, cursor, bytes_max)
            };
            let series = self.call(next)??;
            if series.is_empty() {
                cursor.resource_drop(&mut self.store)?;
                return Ok(answers);
            }
            answers.push(series.len());
        }
    }

    fn dump(&mut self, selectors: &[Vec<Matcher>], bytes_max: u32) -> Result<Vec<String>> {
        let call = |guest: &Guest, store: &mut Store<State>| {
            guest.call_dump(store, selectors, ALL, TextFormat::Dump)
        };
        let cursor = self.call(call)??;
        let mut pieces = vec![];
        loop {
            let next = |guest: &Guest, store: &mut Store<State>| {
                guest.line_cursor().call_next(store, cursor, bytes_max)
            };
            let piece = self.call(next)??;
            if piece.is_empty() {
                cursor.resource_drop(&mut self.store)?;
                return Ok(pieces);
            }
            pieces.push(String::from_utf8(piece)?);
        }
    }

    fn label_values(
        &mut self,
        lookup: &Lookup,
        bytes_max: u32,
    ) -> Result<(Vec<Vec<String>>, bool)> {
        let call = |guest: &Guest, store: &mut Store<State>| {
            guest.call_label_values(store, "__name__", lookup)
        };
        let strings = self.call(call)??;
        let mut pieces = vec![];
        loop {
            let next = |guest: &Guest, store: &mut Store<State>| {
                guest.strings().call_next(store, strings, bytes_max)
            };
            let piece = self.call(next)??;
            if piece.is_empty() {
                let is_truncated =
                    self.call(|guest, store| guest.strings().call_is_truncated(store, strings))?;
                strings.resource_drop(&mut self.store)?;
                return Ok((pieces, is_truncated));
            }
            pieces.push(piece);
        }
    }

    /// Returns the number of label pairs, and of metrics in a list of at most `items_max` items.
    fn metrics_by_series(&mut self, items_max: u32) -> Result<(u64, usize)> {
        let walk = self.call(|guest, store| guest.call_cardinality(store, items_max))??;
        let list = CardinalityList::MetricsBySeries;
        let next = |guest: &Guest, store: &mut Store<State>| {
            guest.cardinality_walk().call_next(store, walk, list, 0)
        };
        assert!(matches!(self.call(next)?, Err(Error::Invalid(_))), "nothing is known yet");
        let label_pairs = loop {
            let step = |guest: &Guest, store: &mut Store<State>| {
                guest.cardinality_walk().call_walk(store, walk)
            };
            if let Some(label_pairs) = self.call(step)?? {
                break label_pairs;
            }
        };
        let mut items = 0;
        loop {
            match self.call(next)??.len() {
                0 => break,
                more => items += more,
            }
        }
        walk.resource_drop(&mut self.store)?;
        Ok((label_pairs, items))
    }
}

fn label(metric: &str) -> Label {
    Label { name: "__name__".into(), value: metric.into() }
}

fn matcher(op: MatchOp, value: &str) -> Matcher {
    Matcher { name: "__name__".into(), op, value: value.into() }
}

fn lookup(limit: u64) -> Lookup {
    Lookup { matcher_sets: vec![], range: ALL, limit }
}

fn columns(series: &[u64], timestamps_ms: &[i64]) -> Columns {
    let values = vec![1.0; timestamps_ms.len()];
    Columns { series: series.into(), timestamps_ms: timestamps_ms.into(), values }
}

#[test]
fn before_open_and_after_close_calls_are_refused() -> Result<()> {
    let mut tidepool = Tidepool::closed()?;
    let stats = |guest: &Guest, store: &mut Store<State>| guest.call_stats(store);
    assert!(matches!(tidepool.call(stats)?, Err(Error::NotOpen)));
    // These two calls need no open store.
    let time =
        tidepool.call(|guest, store| guest.call_sample_time(store, RemoteWriteVersion::V1, &[]))?;
    assert_eq!(time?, None);
    assert!(
        tidepool.component.tidepool_tsdb_inspect().call_blocks(&mut tidepool.store)??.is_empty()
    );

    let short = Options { block_duration_ms: 999, ..OPTIONS };
    let opened = tidepool.call(|guest, store| guest.call_open(store, short))?;
    assert!(matches!(opened, Err(Error::Invalid(_))), "{opened:?}");
    tidepool.call(|guest, store| guest.call_open(store, OPTIONS))??;
    let early = tidepool.write("a", 0..1);
    assert!(early.is_err(), "replay must follow before anything else");
    tidepool.replay()?;
    tidepool.write("a", 0..1)?;
    tidepool.call(|guest, store| guest.call_close(store))??;
    assert!(matches!(tidepool.call(stats)?, Err(Error::NotOpen)));
    tidepool.call(|guest, store| guest.call_open(store, OPTIONS))??;
    let replayed = tidepool.replay()?;
    assert_eq!((replayed.samples, replayed.skipped_records), (1, 0));
    // Opening a store closes the one that is open.
    tidepool.call(|guest, store| guest.call_open(store, OPTIONS))??;
    assert_eq!(tidepool.replay()?.samples, 1);
    Ok(())
}

#[test]
fn an_empty_store_answers_with_nothing() -> Result<()> {
    let mut tidepool = Tidepool::open()?;
    let cursor = tidepool.select(vec![], ALL)??;
    assert!(tidepool.answers(cursor, 0)?.is_empty());
    assert_eq!(tidepool.dump(&[vec![]], 0)?, [""; 0]);
    assert_eq!(tidepool.label_values(&lookup(0), 0)?, (vec![], false));
    assert!(tidepool.call(|guest, store| guest.call_metadata(store, "", 1000))??.is_empty());
    assert!(tidepool.call(|guest, store| guest.call_plan_cut(store))??.is_none());
    assert!(tidepool.call(|guest, store| guest.call_compact(store, NOW_MS, ROOM))??.done);
    assert!(tidepool.call(|guest, store| guest.call_clean_tombstones(store, NOW_MS, ROOM))??.done);
    let figures = tidepool.call(|guest, store| guest.call_stats(store))??;
    assert_eq!((figures.head_min_time_ms, figures.head_max_time_ms), (i64::MAX, i64::MIN));
    assert_eq!((figures.head_series, figures.blocks), (0, 0));
    let signs = tidepool.call(|guest, store| guest.call_brief_stats(store))??;
    assert_eq!(signs.newest_time_ms, i64::MIN);
    assert_eq!(tidepool.metrics_by_series(10)?, (0, 0));
    // Unknown names are no error.
    let names = [NO_BLOCK.to_owned(), "no name".to_owned()];
    tidepool.call(|guest, store| guest.call_exclude(store, &names))??;
    tidepool.call(|guest, store| guest.call_pin(store, &names))??;
    assert!(!tidepool.call(|guest, store| guest.call_truncate(store, NOW_MS))??);
    Ok(())
}

#[test]
fn writes_of_nothing_are_fine_and_mistakes_write_nothing() -> Result<()> {
    let mut tidepool = Tidepool::open()?;
    for version in [RemoteWriteVersion::V1, RemoteWriteVersion::V2] {
        let call = |guest: &Guest, store: &mut Store<State>| {
            guest.call_append_remote_write(store, version, &[], NOW_MS)
        };
        assert_eq!(tidepool.call(call)??.samples_written, 0);
        let call = |guest: &Guest, store: &mut Store<State>| {
            guest.call_append_remote_write(store, version, &[0xff], NOW_MS)
        };
        assert!(matches!(tidepool.call(call)?, Err(Error::Malformed(_))));
    }
    let mut append =
        |rows: Columns| tidepool.call(|guest, store| guest.call_append(store, &rows, NOW_MS));
    assert_eq!(append(columns(&[], &[]))??.samples_written, 0);
    assert!(matches!(append(columns(&[0], &[]))?, Err(Error::Invalid(_))));
    assert!(matches!(append(columns(&[12345], &[NOW_MS]))?, Err(Error::Invalid(_))));

    let mut series_ref =
        |labels: &[Label]| tidepool.call(|guest, store| guest.call_series_ref(store, labels));
    let of = |name: &str, value: &str| Label { name: name.into(), value: value.into() };
    let series = series_ref(&[of("b", "2"), label("m"), of("a", "1"), of("c", "")])??;
    assert_eq!(series_ref(&[label("m"), of("a", "1"), of("b", "2")])??, series);
    for wrong in [[of("a", "1"), of("b", "2")], [label("m"), of("", "1")], [label("m"), label("n")]]
    {
        let refused = series_ref(&wrong)?;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{wrong:?}: {refused:?}");
    }

    // An invalid row fails the whole call; a refused row does not.
    let mut append =
        |rows: Columns| tidepool.call(|guest, store| guest.call_append(store, &rows, NOW_MS));
    assert!(append(columns(&[series, 12345], &[NOW_MS, NOW_MS]))?.is_err());
    let outcome = append(columns(&[series, series], &[NOW_MS, NOW_MS + 600_001]))??;
    assert_eq!((outcome.samples_written, outcome.refused), (1, 1));
    assert_eq!(outcome.refusals[0].timestamp_ms, NOW_MS + 600_001);
    Ok(())
}

#[test]
fn the_least_answer_holds_one() -> Result<()> {
    let mut tidepool = Tidepool::filled()?;
    let cursor = tidepool.select(vec![], ALL)??;
    assert_eq!(tidepool.answers(cursor, 0)?, [1, 1, 1]);
    let cursor = tidepool.select(vec![], ALL)??;
    assert_eq!(tidepool.answers(cursor, u32::MAX)?, [3]);
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let (pieces, is_truncated) = tidepool.label_values(&lookup(0), 0)?;
    assert_eq!((pieces, is_truncated), (vec![names(&["a"]), names(&["b"]), names(&["c"])], false));
    assert_eq!(tidepool.label_values(&lookup(2), 1 << 20)?, (vec![names(&["a", "b"])], true));
    // Lines are returned chunk by chunk.
    let pieces = tidepool.dump(&[vec![]], 0)?;
    assert!(pieces.len() >= 3 && pieces.iter().all(|piece| piece.ends_with('\n')), "{pieces:?}");
    assert_eq!(pieces.concat().lines().count(), 30);
    Ok(())
}

#[test]
fn what_is_not_selected_is_no_error() -> Result<()> {
    let mut tidepool = Tidepool::filled()?;
    for (matchers, range) in [
        (vec![], NEVER),
        (vec![], TimeRange { start_ms: 0, end_ms: NOW_MS - 1 }),
        (vec![matcher(MatchOp::Equal, "d")], ALL),
        (vec![matcher(MatchOp::Equal, "a"), matcher(MatchOp::Equal, "b")], ALL),
    ] {
        let cursor = tidepool.select(matchers, range)??;
        assert!(tidepool.answers(cursor, 0)?.is_empty());
    }
    assert_eq!(tidepool.dump(&[], 0)?, [""; 0]);
    let none = tidepool.call(|guest, store| guest.call_exemplars(store, &[], ALL))??;
    let next = |guest: &Guest, store: &mut Store<State>| {
        guest.exemplar_cursor().call_next(store, none, 1000)
    };
    assert!(tidepool.call(next)??.is_empty());
    none.resource_drop(&mut tidepool.store)?;
    let scan = tidepool.call(|guest, store| guest.call_scan_exemplars(store, ALL))??;
    let next = |guest: &Guest, store: &mut Store<State>| {
        guest.exemplar_scan().call_next(store, scan, 1000)
    };
    assert!(tidepool.call(next)??.is_none());
    scan.resource_drop(&mut tidepool.store)?;
    // Without selectors, nothing is deleted.
    let deletion = tidepool.call(|guest, store| guest.call_delete(store, &[], ALL))??;
    assert_eq!((deletion.head_series, deletion.blocks.len()), (0, 0));
    assert_eq!(tidepool.metrics_by_series(0)?, (3, 0));
    assert_eq!(tidepool.metrics_by_series(1)?, (3, 1));
    let deletion = tidepool.call(|guest, store| guest.call_delete(store, &[vec![]], ALL))??;
    assert_eq!(deletion.head_series, 3);
    assert_eq!(tidepool.dump(&[vec![]], 0)?, [""; 0]);
    Ok(())
}

#[test]
fn limits_are_named() -> Result<()> {
    let mut tidepool = Tidepool::open()?;
    let many = |count| vec![matcher(MatchOp::Equal, "a"); count];
    let cursor = tidepool.select(many(200), ALL)??;
    cursor.resource_drop(&mut tidepool.store)?;
    match tidepool.select(many(201), ALL)? {
        Err(Error::LimitExceeded(Limit { max: 200, .. })) => {}
        other => panic!("{other:?}"),
    }
    let long = "x".repeat(64 * 1024);
    let cursor = tidepool.select(vec![matcher(MatchOp::Regex, &long)], ALL)??;
    cursor.resource_drop(&mut tidepool.store)?;
    let longer = tidepool.select(vec![matcher(MatchOp::Regex, &format!("{long}x"))], ALL)?;
    assert!(matches!(longer, Err(Error::Invalid(_))), "{longer:?}");
    let unclosed = tidepool.select(vec![matcher(MatchOp::NotRegex, "(")], ALL)?;
    assert!(matches!(unclosed, Err(Error::Invalid(_))), "{unclosed:?}");

    let mut tidepool = Tidepool::unread(Options { series_max: 1, ..OPTIONS })?;
    tidepool.replay()?;
    tidepool.write("a", 0..1)?;
    match tidepool.call(|guest, store| guest.call_series_ref(store, &[label("b")]))? {
        Err(Error::LimitExceeded(Limit { max: 1, .. })) => {}
        other => panic!("{other:?}"),
    }
    Ok(())
}

/// Closing the store does not end open cursors.
#[test]
fn a_cursor_outlives_its_store() -> Result<()> {
    let mut tidepool = Tidepool::filled()?;
    let cursor = tidepool.select(vec![], ALL)??;
    tidepool.call(|guest, store| guest.call_close(store))??;
    assert_eq!(tidepool.answers(cursor, 0)?, [1, 1, 1]);
    Ok(())
}

/// A cut waits for readers of the head; an early request loses nothing.
#[test]
fn compact_is_busy_while_a_cursor_is_open() -> Result<()> {
    let mut tidepool = Tidepool::open()?;
    tidepool.write("a", 0..40)?;
    let all = tidepool.dump(&[vec![]], 1 << 20)?.concat();
    let cursor = tidepool.select(vec![], ALL)??;
    let compact =
        |guest: &Guest, store: &mut Store<State>| guest.call_compact(store, NOW_MS + 600_000, ROOM);
    let busy = loop {
        match tidepool.call(compact)? {
            Ok(progress) if progress.done => break false,
            Ok(_) => {}
            Err(Error::Busy) => break true,
            Err(error) => panic!("{error:?}"),
        }
    };
    assert!(busy);
    assert!(matches!(tidepool.call(compact)?, Err(Error::Busy)), "still");
    assert_eq!(tidepool.answers(cursor, 0)?, [1]);
    while !tidepool.call(compact)??.done {}
    assert!(tidepool.call(|guest, store| guest.call_stats(store))??.blocks > 0);
    assert_eq!(tidepool.dump(&[vec![]], 1 << 20)?.concat(), all);
    Ok(())
}

#[test]
fn a_block_that_is_missing_is_named() -> Result<()> {
    let Tidepool { mut store, component } = Tidepool::closed()?;
    let inspect = component.tidepool_tsdb_inspect();
    let options = AnalysisOptions { matchers: vec![], items_max: 10, chunks: true };
    match inspect.call_analyze(&mut store, NO_BLOCK, &options)? {
        Err(Error::Storage(StorageError::NotFound(what))) => assert!(what.contains(NO_BLOCK)),
        other => panic!("{other:?}"),
    }
    let check = inspect.verification().call_constructor(&mut store, NO_BLOCK)?;
    let mut findings = vec![];
    loop {
        let step = inspect.verification().call_next(&mut store, check)??;
        findings.extend(step.findings);
        if step.done {
            assert_eq!((step.series, step.bytes_total), (0, 0));
            break;
        }
    }
    let is_missing = |finding: &Finding| {
        finding.severity == Severity::Error && ["meta.json", "index"].contains(&&*finding.file)
    };
    assert!(findings.iter().any(is_missing), "{findings:?}");
    Ok(())
}

#[test]
fn an_import_tells_mistakes_and_takes_nothing_for_fine() -> Result<()> {
    let Tidepool { mut store, component } = Tidepool::closed()?;
    let backfill = component.tidepool_tsdb_backfill();
    let importer = backfill.importer();
    let rows = |series: &[u32], timestamps_ms: &[i64]| Rows {
        series: series.into(),
        timestamps_ms: timestamps_ms.into(),
        values: vec![1.0; timestamps_ms.len()],
    };
    let short = importer.call_constructor(&mut store, 0, 1 << 20, 1)?;
    let begun = importer.call_finish_pass(&mut store, short, NOW_MS)?;
    assert!(matches!(begun, Err(Error::Invalid(_))), "{begun:?}");

    let import = importer.call_constructor(&mut store, 60_000, 1 << 20, 1)?;
    let nothing = importer.call_append(&mut store, import, &rows(&[], &[]), NOW_MS)??;
    assert!(nothing.block.is_none() && !nothing.series_dropped);
    let known = importer.call_series(&mut store, import, &[label("a")])??;
    for wrong in [rows(&[known, 7], &[NOW_MS, NOW_MS]), rows(&[known], &[])] {
        let appended = importer.call_append(&mut store, import, &wrong, NOW_MS)?;
        assert!(matches!(appended, Err(Error::Invalid(_))), "{appended:?}");
    }
    let nameless = [Label { name: String::new(), value: "x".into() }];
    let series = importer.call_series(&mut store, import, &nameless)?;
    assert!(matches!(series, Err(Error::Invalid(_))), "{series:?}");
    let end = importer.call_finish_pass(&mut store, import, NOW_MS)??;
    assert!(end.done && !end.again && end.block.is_none());

    // Of several samples at one time, the last counts.
    let series = importer.call_series(&mut store, import, &[label("a")])??;
    let twice = rows(&[series, series], &[NOW_MS, NOW_MS]);
    importer.call_append(&mut store, import, &twice, NOW_MS)??;
    let mut written = 0;
    loop {
        let step = importer.call_finish_pass(&mut store, import, NOW_MS)??;
        written += step.block.map_or(0, |block| block.samples);
        if step.done {
            break;
        }
    }
    assert_eq!(written, 1);
    assert_eq!(component.tidepool_tsdb_inspect().call_blocks(&mut store)??.len(), 1);
    Ok(())
}

#[test]
fn a_role_has_its_calls_only() -> Result<()> {
    let mut tidepool = Tidepool::unread(Options { role: Role::Query, ..OPTIONS })?;
    let rows = columns(&[], &[]);
    match tidepool.call(|guest, store| guest.call_append(store, &rows, NOW_MS))? {
        Err(Error::WrongRole(call)) => assert_eq!(call, "append"),
        other => panic!("{other:?}"),
    }
    let figures = tidepool.call(|guest, store| guest.call_stats(store))??;
    assert_eq!(figures.head_series, 0);
    assert!(tidepool.call(|guest, store| guest.call_metadata(store, "", 1000))??.is_empty());
    Ok(())
}

#[test]
fn a_saved_head_that_is_damaged_is_refused_and_the_log_is_read() -> Result<()> {
    let mut tidepool = Tidepool::filled()?;
    let saved = tidepool.call(|guest, store| guest.call_save_head(store))??;
    let mut pieces = vec![];
    loop {
        let next = |guest: &Guest, store: &mut Store<State>| {
            guest.saved_head().call_next(store, saved, 100)
        };
        let piece = tidepool.call(next)?;
        if piece.is_empty() {
            break;
        }
        pieces.push(piece);
    }
    saved.resource_drop(&mut tidepool.store)?;
    let is_open = tidepool.call(|guest, store| guest.call_stats(store))?;
    assert!(matches!(is_open, Err(Error::NotOpen)), "it ends the store");

    tidepool.call(|guest, store| guest.call_open(store, OPTIONS))??;
    let garbage = tidepool.call(|guest, store| guest.call_load_head(store, b"no head"))?;
    assert!(garbage.is_err());
    assert_eq!(tidepool.replay()?.samples, 30);
    tidepool.call(|guest, store| guest.call_close(store))??;

    tidepool.call(|guest, store| guest.call_open(store, OPTIONS))??;
    let mut lasts = vec![];
    for piece in &pieces {
        lasts.push(tidepool.call(|guest, store| guest.call_load_head(store, piece))??);
    }
    assert_eq!(lasts.iter().position(|last| *last), Some(pieces.len() - 1));
    assert_eq!(tidepool.dump(&[vec![]], 1 << 20)?.concat().lines().count(), 30);
    Ok(())
}
