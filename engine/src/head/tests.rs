use super::*;
use crate::memory::MemoryBudget;
use crate::model::{LABEL_NAME, LabelLimits, MatchOp, Matcher, MatcherSets, MatcherSpec, Sample};
use std::cell::Cell;

const OPTIONS: HeadOptions = HeadOptions {
    block_duration_ms: 1000,
    future_limit_ms: 600_000,
    out_of_order_window_ms: 0,
    series_max: 0,
    exemplars_max: 100,
    memory: MemoryBudget::UNBOUNDED,
    label_limits: LabelLimits::NONE,
    hash_seed: 9,
};

/// Appends one row per call and returns its outcome.
struct Writer {
    head: Head,
    batch: Batch,
    now_ms: i64,
}

impl Writer {
    fn new(options: HeadOptions) -> Writer {
        let (head, batch) = (Head::new(options, i64::MIN), Batch::default());
        Writer { head, batch, now_ms: 1_000_000 }
    }

    fn write(&mut self, name: &str, rows: &[(i64, f64)]) -> WriteOutcome {
        let Writer { head, batch, now_ms } = self;
        head.begin(batch, *now_ms);
        let labels = Labels::from_sorted([(crate::model::LABEL_NAME, name)]);
        let slot = head.series_by_labels(batch, &labels).expect("a valid label set");
        for (timestamp_ms, value) in rows {
            head.check(batch, slot, *timestamp_ms, (*value).into()).expect("sound chunks");
        }
        head.apply(batch)
    }

    fn select(&mut self, matchers: Vec<Matcher>, range: TimeRange) -> HeadCursor {
        let (sets, work) = (MatcherSets::of(matchers), WorkLeft::unbounded());
        self.head.select(&sets, range, &none(), &work).expect("no bound")
    }

    fn next(&self, cursor: &mut HeadCursor) -> Option<HeadSeries> {
        loop {
            match self.head.next(cursor).expect("sound chunks") {
                Slice::Next(series) => return Some(series),
                Slice::Again => {}
                Slice::End => return None,
            }
        }
    }

    fn reason(&mut self, name: &str, row: (i64, f64)) -> Option<RefusalReason> {
        self.write(name, &[row]).refusals.first().map(|refusal| refusal.reason)
    }
}

#[test]
fn rows_are_judged_one_by_one() {
    let mut writer = Writer::new(OPTIONS);
    let outcome = writer.write("a", &[(100, 1.0), (200, 2.0), (200, 2.0), (150, 9.0), (300, 3.0)]);
    assert_eq!((outcome.samples_written, outcome.samples_duplicate, outcome.refused), (4, 1, 1));
    assert_eq!(outcome.refusals[0].reason, RefusalReason::OutOfOrder);
    assert!(outcome.refusals[0].detail.contains("__name__=\"a\""), "{outcome:?}");

    assert_eq!(writer.reason("a", (100, 1.0)), None, "an exact duplicate, older than the newest");
    assert_eq!(writer.reason("a", (100, 1.5)), Some(RefusalReason::DuplicateSample));
    assert_eq!(writer.reason("a", (300, 3.5)), Some(RefusalReason::DuplicateSample));
    assert_eq!(writer.reason("a", (250, 3.5)), Some(RefusalReason::OutOfOrder));
    assert_eq!(writer.reason("a", (1_600_001, 1.0)), Some(RefusalReason::TooFarInFuture));
    assert_eq!(writer.reason("b", (5000, 1.0)), None);
    assert_eq!(writer.reason("c", (4499, 1.0)), Some(RefusalReason::TooOld));
    assert_eq!(writer.reason("c", (4500, 1.0)), None, "half a block behind the newest");
    let counters = writer.head.counters;
    assert_eq!((counters.samples_appended, counters.samples_duplicate), (5, 2));
}

#[test]
fn values_are_told_apart_by_their_bits() {
    let mut writer = Writer::new(OPTIONS);
    let stale = tidepool_model::STALE_NAN;
    writer.write("a", &[(100, stale), (101, 0.0)]);
    assert_eq!(writer.reason("a", (100, stale)), None);
    assert_eq!(writer.reason("a", (100, f64::NAN)), Some(RefusalReason::DuplicateSample));
    assert_eq!(writer.reason("a", (101, -0.0)), Some(RefusalReason::DuplicateSample));
}

#[test]
fn what_is_held_as_out_of_order_is_not_taken_in_order_too() {
    let mut writer = Writer::new(HeadOptions { out_of_order_window_ms: 500, ..OPTIONS });
    writer.write("a", &[(900, 1.0), (800, 1.0), (850, 1.0)]);
    let Writer { head, .. } = &mut writer;
    let slot = head.slots().next().expect("a series");
    let range = TimeRange { start_ms: 900, end_ms: 900 };
    head.delete(&[DeletedSpan { slot, range }]).expect("sound chunks");
    // Nothing that came in order is left.
    assert_eq!(writer.reason("a", (800, 2.0)), Some(RefusalReason::DuplicateSample));
    let outcome = writer.write("a", &[(800, 1.0), (825, 1.0), (850, 2.0), (875, 1.0)]);
    assert_eq!((outcome.samples_written, outcome.samples_duplicate, outcome.refused), (3, 1, 1));
    assert_eq!(writer.head.counters.samples_out_of_order, 2, "825 and 875 came in order");
}

#[test]
fn an_aborted_batch_leaves_no_trace() {
    let mut writer = Writer::new(OPTIONS);
    writer.write("a", &[(100, 1.0)]);
    let Writer { head, batch, .. } = &mut writer;
    let before = (head.series_count(), head.symbol_count(), head.chunk_count(), head.range());
    head.begin(batch, 1_000_000);
    for name in ["a", "b"] {
        let labels = Labels::from_sorted([(crate::model::LABEL_NAME, name)]);
        let slot = head.series_by_labels(batch, &labels).expect("a valid label set");
        head.check(batch, slot, 200, 1.0.into()).expect("sound chunks");
    }
    assert_eq!(head.rows(batch, false).count(), 2);
    head.abort(batch);
    let after = (head.series_count(), head.symbol_count(), head.chunk_count(), head.range());
    assert_eq!(before, after);
    assert_eq!(writer.reason("a", (150, 1.0)), None, "200 was never stored");
}

#[test]
fn a_full_head_refuses_new_series_and_keeps_the_known() {
    let mut writer = Writer::new(HeadOptions { series_max: 1, ..OPTIONS });
    writer.write("a", &[(100, 1.0)]);
    let Writer { head, batch, .. } = &mut writer;
    head.begin(batch, 0);
    let labels = Labels::from_sorted([(crate::model::LABEL_NAME, "b")]);
    let refused = head.series_by_labels(batch, &labels);
    assert!(matches!(refused, Err(LookupError::SeriesLimit { max: 1 })));
    // But what the log has was acknowledged, under whatever limits.
    let pairs: [(&[u8], &[u8]); 1] = [(b"__name__", b"c")];
    head.replay_series(batch, 7, &pairs).expect("no limit");
    assert_eq!(head.series_count(), 2);
    assert_eq!(writer.reason("a", (101, 1.0)), None);
}

#[test]
fn labels_come_in_any_order_and_by_either_way() {
    let mut head = Head::new(OPTIONS, i64::MIN);
    let mut batch = Batch::default();
    head.begin(&mut batch, 0);
    let pairs: [(&[u8], &[u8]); 3] = [(b"job", b"x"), (b"__name__", b"up"), (b"gone", b"")];
    let slot = head.series_by_pairs(&mut batch, &pairs).expect("a valid label set");
    let sorted: [(&[u8], &[u8]); 2] = [(b"__name__", b"up"), (b"job", b"x")];
    assert_eq!(head.series_by_pairs(&mut batch, &sorted).ok(), Some(slot));
    let strings: [&[u8]; 5] = [b"", b"__name__", b"up", b"job", b"x"];
    let mut symbols = RequestSymbols::new(&strings);
    for refs in [[1, 2, 3, 4], [3, 4, 1, 2]] {
        assert_eq!(head.series_by_refs(&mut batch, &mut symbols, &refs).ok(), Some(slot));
    }
    let outside = head.series_by_refs(&mut batch, &mut symbols, &[1, 5]);
    assert!(matches!(outside, Err(LookupError::SymbolRef { symbol_ref: 5, symbols: 5 })));
    let odd = head.series_by_refs(&mut batch, &mut symbols, &[1, 2, 3]);
    assert!(matches!(odd, Err(LookupError::OddRefs { count: 3 })));
    for (wrong, why) in [
        (vec![(&b"job"[..], &b"x"[..])], "no metric name"),
        (vec![(b"__name__", b"up"), (b"a", b"1"), (b"a", b"2")], "occurs twice"),
        (vec![(b"__name__", b"up"), (b"", b"1")], "empty name"),
        (vec![(b"__name__", b"up"), (b"a", b"\xff")], "UTF-8"),
    ] {
        let error = head.series_by_pairs(&mut batch, &wrong).err().map(|e| e.to_string());
        assert!(error.as_ref().is_some_and(|error| error.contains(why)), "{why}: {error:?}");
    }
    assert_eq!(head.series_count(), 1);
}

#[test]
fn a_block_is_due_after_one_and_a_half_and_then_truncated() {
    let mut writer = Writer::new(OPTIONS);
    for time in (0..=1500).step_by(100) {
        writer.write("a", &[(time, 1.0)]);
    }
    writer.write("b", &[(1000, 1.0)]);
    assert_eq!(writer.head.plan_cut(), None);
    writer.write("a", &[(1501, 1.0)]);
    let range = writer.head.plan_cut();
    assert_eq!(range, Some(TimeRange { start_ms: 0, end_ms: 999 }));
    assert_eq!(writer.reason("c", (999, 1.0)), Some(RefusalReason::TooOld));
    writer.head.truncate(1000).expect("sound chunks");
    assert_eq!((writer.head.series_count(), writer.head.range().start_ms), (2, 1000));
    writer.head.truncate(1200).expect("sound chunks");
    assert_eq!(writer.head.series_count(), 1, "b has no samples left");
    assert_eq!(writer.head.symbol_count(), 2);
    // Of a chunk that reaches across the time, the rest is kept.
    assert_eq!((writer.head.chunk_count(), writer.head.range().start_ms), (1, 1200));
    writer.write("a", &[(1600, 1.0)]);
    assert_eq!((writer.head.chunk_count(), writer.head.range().start_ms), (2, 1200));
}

fn none() -> Labels {
    Labels::default()
}

#[test]
fn a_cursor_walks_in_label_order_and_sees_its_moment() {
    let mut writer = Writer::new(OPTIONS);
    for name in ["c", "a", "b"] {
        writer.write(name, &[(100, 1.0)]);
    }
    let spec = MatcherSpec { name: "__name__".into(), op: MatchOp::NotEqual, value: "b".into() };
    let matcher = Matcher::new(&spec).expect("a valid matcher");
    let mut cursor = writer.select(vec![matcher], TimeRange::ALL);
    assert_eq!(writer.head.open_cursors(), 1);
    writer.write("c", &[(200, 2.0)]);
    let mut names = Vec::new();
    while let Some(HeadSeries { labels, chunks, .. }) = writer.next(&mut cursor) {
        names.push((labels.get("__name__").to_owned(), chunks.len()));
    }
    assert_eq!(names, [("a".to_owned(), 1), ("c".to_owned(), 1)]);
    drop(cursor);
    assert_eq!(writer.head.open_cursors(), 0);
}

#[test]
fn out_of_order_samples_are_kept_apart_and_judged_alike() {
    let mut writer = Writer::new(HeadOptions { out_of_order_window_ms: 2000, ..OPTIONS });
    writer.write("a", &[(5000, 1.0)]);
    let outcome = writer.write("a", &[(4000, 2.0), (6000, 3.0), (4000, 2.0), (5500, 4.0)]);
    assert_eq!((outcome.samples_written, outcome.samples_duplicate, outcome.refused), (4, 1, 0));
    assert_eq!(writer.reason("a", (4000, 9.0)), Some(RefusalReason::DuplicateSample));
    assert_eq!(writer.reason("a", (4000, 2.0)), None);
    assert_eq!(writer.reason("a", (3999, 2.0)), Some(RefusalReason::TooOld));
    assert_eq!(writer.reason("lagging", (4001, 1.0)), None);
    assert_eq!(
        (writer.head.counters.samples_out_of_order, writer.head.range().start_ms),
        (2, 4001)
    );
}

#[test]
fn what_comes_out_of_order_during_a_cut_outlives_it() {
    let mut writer = Writer::new(HeadOptions { out_of_order_window_ms: 5000, ..OPTIONS });
    writer.write("a", &[(100, 1.0), (1700, 1.0)]);
    writer.write("a", &[(200, 1.0)]);
    assert_eq!(writer.head.plan_cut(), Some(TimeRange { start_ms: 0, end_ms: 999 }));
    writer.write("a", &[(300, 1.0)]);
    assert_eq!(writer.head.plan_cut(), Some(TimeRange { start_ms: 0, end_ms: 999 }), "it stands");
    writer.head.truncate(1000).expect("sound chunks");
    assert!(writer.head.plan_cut().is_some(), "the log may still hold it");
    writer.head.end_plan(1000);
    let mut cursor = writer.select(Vec::new(), TimeRange { start_ms: 0, end_ms: 999 });
    let chunks = writer.next(&mut cursor).expect("the out-of-order series").chunks;
    // The part that held 200 was added to after the plan, so all of it waits for the next cut.
    assert_eq!((chunks[0].min_time_ms, chunks[0].max_time_ms), (200, 300));
    drop(cursor);
    assert_eq!(writer.head.plan_cut(), None, "more may come out of order");
    writer.write("a", &[(6000, 1.0)]);
    assert_eq!(writer.head.plan_cut(), Some(TimeRange { start_ms: 0, end_ms: 999 }));
    writer.head.truncate(1000).expect("sound chunks");
    writer.head.end_plan(1000);
    assert_eq!(writer.head.plan_cut().map(|range| range.start_ms), Some(1000));
}

/// The order of a name's values is kept between questions, while values come and are dropped.
#[test]
fn prefixes_find_values_that_came_and_not_those_that_went() {
    let mut writer = Writer::new(OPTIONS);
    let spec =
        MatcherSpec { name: LABEL_NAME.into(), op: MatchOp::Regex, value: "ab.*|b.+".into() };
    let found = |writer: &mut Writer| {
        let matcher = Matcher::new(&spec).expect("a valid matcher");
        let mut cursor = writer.select(vec![matcher], TimeRange::ALL);
        let mut names = Vec::new();
        while let Some(HeadSeries { labels, .. }) = writer.next(&mut cursor) {
            names.push(labels.get(LABEL_NAME).to_owned());
        }
        names.join(" ")
    };
    let write = |writer: &mut Writer, name: &str, time_ms| {
        assert_eq!(writer.reason(name, (time_ms, 1.0)), None);
    };
    for (name, time_ms) in [("b", 100), ("abc", 100), ("a", 100), ("bb", 100), ("c", 1700)] {
        write(&mut writer, name, time_ms);
    }
    assert_eq!(found(&mut writer), "abc bb");
    for name in ["ab", "ba", "aa"] {
        write(&mut writer, name, 1710);
    }
    assert_eq!(found(&mut writer), "ab abc ba bb");
    writer.head.truncate(1000).expect("sound chunks");
    assert_eq!(found(&mut writer), "ab ba");
    // Numbers of symbols that went are used again.
    for name in ["bz", "abz", "a0", "a1"] {
        write(&mut writer, name, 1720);
    }
    assert_eq!(found(&mut writer), "ab abz ba bz");
}

thread_local! {
    static USED_BYTES: Cell<u64> = const { Cell::new(0) };
}

fn with_memory(bytes_max: u64) -> Writer {
    USED_BYTES.set(0);
    let memory = MemoryBudget { bytes_max, used_bytes: || USED_BYTES.get() };
    Writer::new(HeadOptions { memory, ..OPTIONS })
}

#[test]
fn short_memory_asks_for_a_cut_then_refuses_new_series_then_all() {
    let mut writer = with_memory(1000);
    writer.write("a", &[(1100, 1.0), (1120, 1.0)]);
    writer.write("ahead", &[(1130, 1.0)]);
    assert_eq!(writer.head.plan_cut(), None);
    USED_BYTES.set(560);
    // Up to the clock (1 125), although the head holds something newer.
    writer.now_ms = 1125;
    assert_eq!(writer.reason("b", (1125, 1.0)), None);
    let range = writer.head.plan_cut();
    assert_eq!(range, Some(TimeRange { start_ms: 1000, end_ms: 1125 }));
    assert_eq!(writer.reason("a", (1140, 1.0)), None, "known series go on");
    USED_BYTES.set(520);
    writer.head.truncate(1126).expect("sound chunks");
    writer.head.end_plan(1126);
    assert_eq!((writer.head.series_count(), writer.head.range().start_ms), (2, 1130));
    USED_BYTES.set(610);
    assert_eq!(writer.head.plan_cut(), None, "too little came since the last cut");
    USED_BYTES.set(660);
    assert!(writer.head.plan_cut().is_some());
    let new = Labels::from_sorted([(LABEL_NAME, "c")]);
    let refused = writer.head.series_by_labels(&mut writer.batch, &new);
    assert!(matches!(refused, Err(LookupError::MemoryLimit { max: 1000 })));
    assert_eq!(writer.reason("a", (1141, 1.0)), None, "known series go on");
    assert!(!writer.head.is_out_of_memory());
    USED_BYTES.set(801);
    assert!(writer.head.is_out_of_memory());
}

/// A head that was accepted under a limit was not replayed under it: each series took 384 bytes
/// more while the log was read, and as much again while that grew.
#[test]
fn floats_wait_only_while_there_is_memory_for_caches() {
    let Writer { mut head, mut batch, .. } = with_memory(1000);
    let take = |head: &mut Head, series_ref, timestamp_ms| {
        let mut floats = head.replay_floats();
        floats.take(series_ref, Sample { timestamp_ms, value: 1.0 });
        floats.end();
    };
    for series_ref in 1..=2 {
        let name = series_ref.to_string();
        let labels = [(LABEL_NAME.as_bytes(), name.as_bytes())];
        head.replay_series(&mut batch, series_ref, &labels).expect("room for a series");
    }
    take(&mut head, 1, 1100);
    head.spare_replay();
    assert_eq!(head.replayed_samples(), 0, "it waits");
    USED_BYTES.set(460);
    head.spare_replay();
    assert_eq!(head.replayed_samples(), 1);
    take(&mut head, 1, 1110);
    take(&mut head, 2, 1120);
    assert_eq!(head.replayed_samples(), 3, "none waits");
    head.end_replay().expect("sound chunks");
    assert_eq!(head.range(), TimeRange { start_ms: 1100, end_ms: 1120 });
}

/// Memory ran short soon after the start of a block: a cut of the samples before it frees next to
/// nothing.
#[test]
fn short_memory_is_cut_over_the_end_of_a_block() {
    let mut writer = with_memory(1000);
    writer.write("a", &[(1990, 1.0)]);
    writer.write("b", &[(2010, 1.0)]);
    writer.now_ms = 2100;
    writer.write("c", &[(2020, 1.0)]);
    USED_BYTES.set(700);
    assert_eq!(writer.head.plan_cut(), Some(TimeRange { start_ms: 1000, end_ms: 1999 }));
    USED_BYTES.set(690);
    writer.head.truncate(2000).expect("sound chunks");
    writer.head.end_plan(2000);
    assert_eq!(writer.head.plan_cut(), Some(TimeRange { start_ms: 2000, end_ms: 2020 }));
    USED_BYTES.set(680);
    writer.head.truncate(2021).expect("sound chunks");
    writer.head.end_plan(2021);
    // What came since is too little to cut it.
    USED_BYTES.set(640);
    writer.write("c", &[(2030, 1.0)]);
    assert_eq!(writer.head.plan_cut(), None);
}

/// A clock ran ahead, and samples with it; then it was put right.
#[test]
fn what_a_clock_ran_ahead_with_shuts_no_door() {
    for (window_ms, oldest_ms) in [(0, 4500), (2000, 3000)] {
        let mut writer = Writer::new(HeadOptions { out_of_order_window_ms: window_ms, ..OPTIONS });
        writer.now_ms = 5000;
        writer.write("a", &[(4800, 1.0)]);
        writer.now_ms = 1_000_000;
        writer.write("a", &[(1_000_000, 1.0)]);
        writer.now_ms = 5000;
        let at = |writer: &mut Writer, time_ms| writer.reason("a", (time_ms, 2.0));
        assert_eq!(at(&mut writer, 4900), None, "window {window_ms}");
        assert_eq!(at(&mut writer, 1_000_000), Some(RefusalReason::DuplicateSample));
        assert_eq!(at(&mut writer, 900_000), Some(RefusalReason::TooFarInFuture));
        assert_eq!(at(&mut writer, oldest_ms - 1), Some(RefusalReason::TooOld));
        assert_eq!(at(&mut writer, oldest_ms), None);
        assert_eq!(writer.reason("new", (4950, 2.0)), None);
        // Blocks are cut as time goes on, and the head does not keep what is in them.
        let mut ends = Vec::new();
        for now_ms in (5000..12_000).step_by(100) {
            writer.now_ms = now_ms;
            assert_eq!(at(&mut writer, now_ms), None, "at {now_ms}, window {window_ms}");
            while let Some(range) = writer.head.plan_cut() {
                ends.push(range.end_ms);
                writer.head.truncate(range.end_ms + 1).expect("sound chunks");
                writer.head.end_plan(range.end_ms + 1);
            }
        }
        assert!(ends.is_sorted() && ends.last() > Some(&8000), "{ends:?}");
        assert!(ends.iter().all(|end_ms| *end_ms < 12_000), "{ends:?}");
        let oldest_ms = writer
            .head
            .window
            .held()
            .oldest_ms
            .min(writer.head.window.held().oldest_out_of_order_ms);
        assert!(oldest_ms > 8000, "{oldest_ms}");
        assert_eq!(at(&mut writer, 1_000_000), Some(RefusalReason::DuplicateSample), "it stays");
    }
}

#[test]
fn cardinality_names_what_is_most() {
    let mut writer = Writer::new(OPTIONS);
    for (metric, instances) in [("up", 3), ("requests", 5), ("rare", 1)] {
        for instance in 0..instances {
            let labels = [(LABEL_NAME, metric), ("instance", &format!("node-{instance}"))];
            let labels = Labels::from_pairs(labels).expect("a label set");
            writer.head.series_by_labels(&mut writer.batch, &labels).expect("a new series");
        }
    }
    let list = |items: &[(&str, u64)]| -> Vec<(String, u64)> {
        items.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
    };
    let mut walk = writer.head.cardinality(2);
    assert_eq!(writer.head.open_cursors(), 0, "it keeps no cut waiting");
    assert_eq!(writer.head.walk_cardinality(&mut walk), Some(8));
    for (kind, items) in [
        (CardinalityList::MetricsBySeries, [("requests", 5), ("up", 3)]),
        (CardinalityList::NamesBySeries, [("__name__", 9), ("instance", 9)]),
        (CardinalityList::NamesByValues, [("instance", 5), ("__name__", 3)]),
        (CardinalityList::NamesByValueBytes, [("instance", 30), ("__name__", 14)]),
        (CardinalityList::PairsBySeries, [("__name__=requests", 5), ("__name__=up", 3)]),
    ] {
        // One at a time, then the end.
        for item in items {
            let next = writer.head.next_of_cardinality(&mut walk, kind, 0);
            assert_eq!(next, Some(list(&[item])), "{kind:?}");
        }
        assert_eq!(writer.head.next_of_cardinality(&mut walk, kind, 0), Some(vec![]), "{kind:?}");
    }
    let mut none = writer.head.cardinality(0);
    assert_eq!(writer.head.walk_cardinality(&mut none), Some(8));
    let metrics = CardinalityList::MetricsBySeries;
    assert_eq!(writer.head.next_of_cardinality(&mut none, metrics, 1000), Some(vec![]));

    // None of them has a sample.
    writer.head.apply(&mut writer.batch);
    writer.head.truncate(1).expect("no chunks");
    assert_eq!(writer.head.series_count(), 0);
    assert_eq!(writer.head.next_of_cardinality(&mut walk, metrics, 1000), None, "they are gone");
    assert_eq!(writer.head.walk_cardinality(&mut walk), Some(0), "it starts over");
    assert_eq!(writer.head.next_of_cardinality(&mut walk, metrics, 1000), Some(vec![]));
}

/// A name with more values than one slice looks at, and series that come between the slices: what
/// was there before is counted once, against a plain count.
#[test]
fn a_walk_goes_on_while_series_come() {
    let mut writer = Writer::new(OPTIONS);
    let add = |writer: &mut Writer, id: usize| {
        let (id, shard) = (format!("{id:05}"), format!("s{}", id % 7));
        let labels = [(LABEL_NAME, "flood"), ("id", &id), ("shard", &shard)];
        let labels = Labels::from_pairs(labels).expect("a label set");
        writer.head.series_by_labels(&mut writer.batch, &labels).expect("a new series");
    };
    (0..20_000).for_each(|id| add(&mut writer, id));
    let mut walk = writer.head.cardinality(10);
    let mut slices = 1;
    while writer.head.walk_cardinality(&mut walk).is_none() {
        // They have values of their own, behind those that were there.
        (0..10).for_each(|id| add(&mut writer, 50_000 + 10 * slices + id));
        slices += 1;
    }
    assert!((3..100).contains(&slices), "{slices}");
    let mut next = |list| {
        let all = writer.head.next_of_cardinality(&mut walk, list, usize::MAX);
        all.expect("no series was dropped")
    };
    let values = next(CardinalityList::NamesByValues);
    let counted: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(counted, ["id", "shard", "__name__"]);
    assert!((20_000..20_000 + 10 * slices as u64).contains(&values[0].1), "{values:?}");
    assert_eq!(next(CardinalityList::NamesByValueBytes)[0], ("id".to_owned(), 5 * values[0].1));
    let pairs = next(CardinalityList::PairsBySeries);
    assert_eq!((pairs.len(), pairs[0].0.as_str()), (10, "__name__=flood"));
    assert!(pairs[1..8].iter().all(|(pair, _)| pair.starts_with("shard=s")), "{pairs:?}");
}

#[test]
fn matchers_that_would_keep_the_head_busy_are_refused() {
    let mut writer = Writer::new(OPTIONS);
    for number in 0..1000 {
        writer.write(&format!("metric_{number}"), &[(1000, 1.0)]);
    }
    let regex = |value: String| {
        let spec = MatcherSpec { name: LABEL_NAME.into(), op: MatchOp::Regex, value };
        Matcher::new(&spec).expect("a valid matcher")
    };
    let mut costs_too_much = |count: usize| {
        let each = (0..count).map(|number| regex(format!(".*[c-d]_[0-9]+|x{number}"))).collect();
        let (sets, work) = (MatcherSets::of(each), WorkLeft::slice());
        let answer = loop {
            let answer = writer.head.select(&sets, TimeRange::ALL, &none(), &work);
            if answer.as_ref().err() != Some(&NotNow::Again) {
                break answer;
            }
        };
        answer.err() == Some(NotNow::TooMuch)
    };
    // A value costs four units of 200.
    assert!(!costs_too_much(0), "without a matcher all series are given, however many");
    assert!(costs_too_much(1), "one expression is held against a thousand values");
    assert_eq!(writer.head.open_cursors(), 0);
}

/// Expectations are the newest samples when the cursor was opened, which takes several slices to
/// look up.
#[test]
fn a_cursor_that_takes_slices_to_prepare_sees_the_moment_of_its_opening() {
    let mut writer = Writer::new(OPTIONS);
    for number in 0..40 {
        writer.write(&format!("metric_{number:02}"), &[(1000, 1.0)]);
    }
    let mut cursor = writer.select(Vec::new(), TimeRange::ALL);
    let (mut found, mut slices) = (Vec::new(), 0);
    loop {
        // Old series grow and a new one comes between any two slices.
        writer.write(&format!("metric_{:02}", slices % 40), &[(2000 + slices, 2.0)]);
        writer.write(&format!("new_{slices}"), &[(2000 + slices, 3.0)]);
        slices += 1;
        match writer.head.next(&mut cursor).expect("sound chunks") {
            Slice::Next(HeadSeries { labels, chunks, .. }) => {
                let times = chunks.iter().map(|chunk| (chunk.min_time_ms, chunk.max_time_ms));
                found.push((labels.get(LABEL_NAME).to_owned(), times.collect::<Vec<_>>()));
            }
            Slice::Again => {}
            Slice::End => break,
        }
    }
    let expected = (0..40).map(|number| (format!("metric_{number:02}"), vec![(1000, 1000)]));
    assert_eq!(found, expected.collect::<Vec<_>>());
    assert!(slices >= 50, "nine slices to prepare, forty series, the end: {slices}");
    drop(cursor);
    writer.write("metric_00", &[(9000, 1.0)]);
    assert!(!writer.head.observers.is_observed(), "no observer of samples is left");
}

/// The times of the head are those of its samples again, although some came between the slices.
#[test]
fn times_are_found_again_after_a_deletion_while_samples_come() {
    let mut writer = Writer::new(HeadOptions { out_of_order_window_ms: 9000, ..OPTIONS });
    for (name, time_ms) in [("a", 100), ("b", 5000), ("c", 9000)] {
        writer.write(name, &[(time_ms, 1.0)]);
    }
    for range in [(0, 200), (8000, 10_000)] {
        let range = TimeRange { start_ms: range.0, end_ms: range.1 };
        let mut cursor = writer.select(Vec::new(), TimeRange::ALL);
        while !cursor.is_at_end() {
            let spans = writer.head.spans_to_delete(&mut cursor, range);
            writer.head.delete(&spans).expect("sound chunks");
            writer.write("b", &[(4000, 1.0)]);
        }
        writer.write("d", &[(7000, 1.0)]);
        while writer.head.find_times_again() {}
    }
    let TimeRange { start_ms, end_ms } = writer.head.range();
    assert_eq!((start_ms, end_ms), (5000, 7000));
    assert_eq!(writer.head.window.held().oldest_out_of_order_ms, 4000);
}

#[test]
fn age_is_told_by_what_is_stored() {
    const NOW_MS: i64 = 1_800_000_000_000;
    const TEN_YEARS_MS: i64 = 315_360_000_000;
    for (window_ms, behind_ms) in [(0, 500), (200, 500), (5000, 5000)] {
        let mut writer = Writer::new(HeadOptions { out_of_order_window_ms: window_ms, ..OPTIONS });
        writer.now_ms = NOW_MS;
        let first_ms = NOW_MS - TEN_YEARS_MS;
        // Nothing is stored, whatever was refused.
        for time_ms in [i64::MIN, i64::MIN + 1, -1, 0, 1000, first_ms - 1] {
            assert_eq!(
                writer.reason("a", (time_ms, 1.0)),
                Some(RefusalReason::TooOld),
                "{time_ms}"
            );
        }
        assert_eq!(writer.reason("a", (first_ms, 1.0)), None);
        assert_eq!(writer.reason("b", (NOW_MS - 7, 1.0)), None);
        let oldest_ms = NOW_MS - 7 - behind_ms;
        assert_eq!(writer.reason("c", (oldest_ms - 1, 1.0)), Some(RefusalReason::TooOld));
        assert_eq!(writer.reason("c", (oldest_ms, 1.0)), None);
        let out_of_order = writer.reason("b", (NOW_MS - 8 - window_ms, 1.0));
        assert!(
            out_of_order.is_some_and(|reason| reason != RefusalReason::DuplicateSample),
            "{out_of_order:?}"
        );
    }
    // Without a clock, any age is as good.
    let mut writer = Writer::new(OPTIONS);
    writer.now_ms = i64::MAX;
    assert_eq!(writer.reason("a", (i64::MIN + 1, 1.0)), None);
}
