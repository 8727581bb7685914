//! Lookups of labels over a head and overlapping blocks, compared with plain sets.

use super::*;
use crate::block::tests::select::{any_matcher, any_series};
use crate::block::tests::{SeriesSamples, version_1, write};
use crate::model::MatchOp;
use crate::select::Lookup;
use proptest::prelude::*;
use std::collections::BTreeSet;

type TestResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Long, so that no block is due and each series has one chunk in the head.
const ONE_CHUNK: HeadOptions = HeadOptions { block_duration_ms: 1_000_000, ..OPTIONS };

/// End of the blocks of these tests, where the head begins.
const BLOCKS_END_MS: i64 = 1000;

/// A block or the head: its range, and its series with one chunk each.
struct Part {
    range: TimeRange,
    series: Vec<(Labels, TimeRange)>,
}

struct Model {
    parts: Vec<Part>,
}

impl Model {
    fn selected(&self, lookup: &Lookup) -> Vec<&(Labels, TimeRange)> {
        let sets: Vec<Vec<Matcher>> =
            lookup.matcher_sets.iter().map(|set| compile(set).expect("sound matchers")).collect();
        let holds = |labels: &Labels| {
            let all = |set: &Vec<Matcher>| set.iter().all(|m| m.matches(labels.get(m.name())));
            sets.is_empty() || sets.iter().any(all)
        };
        let is_asked = |part: &&Part| {
            lookup.range.start_ms <= lookup.range.end_ms && part.range.overlaps(&lookup.range)
        };
        let asked = self.parts.iter().filter(is_asked);
        asked.flat_map(|part| &part.series).filter(|(labels, _)| holds(labels)).collect()
    }

    fn label_names(&self, lookup: &Lookup) -> Vec<String> {
        let all = self.selected(lookup);
        let names = all.iter().flat_map(|(labels, _)| labels.iter());
        names.map(|(name, _)| name.to_owned()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn label_values(&self, name: &str, lookup: &Lookup) -> Vec<String> {
        let all = self.selected(lookup);
        let values = all.iter().map(|(labels, _)| labels.get(name)).filter(|v| !v.is_empty());
        values.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn series(&self, lookup: &Lookup) -> Vec<Labels> {
        let all = self.selected(lookup);
        let inside = all.iter().filter(|(_, chunk)| chunk.overlaps(&lookup.range));
        inside.map(|(labels, _)| labels.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn strings(
    mut cursor: crate::select::StringCursor,
    bytes_max: u32,
) -> TestResult<(Vec<String>, bool)> {
    let mut all = Vec::new();
    loop {
        let page = cursor.next(bytes_max)?;
        if page.is_empty() {
            return Ok((all, cursor.is_truncated()));
        }
        all.extend(page);
    }
}

fn series(mut cursor: Cursor, bytes_max: u32) -> TestResult<(Vec<Labels>, bool)> {
    let mut all = Vec::new();
    loop {
        let page = cursor.next(bytes_max)?;
        if page.is_empty() {
            return Ok((all, cursor.is_truncated()));
        }
        assert!(page.iter().all(|series| series.chunks.is_empty()));
        all.extend(page.into_iter().map(|series| series.labels));
    }
}

fn cut<T>(mut all: Vec<T>, limit: u64) -> (Vec<T>, bool) {
    let is_truncated = limit > 0 && all.len() as u64 > limit;
    if is_truncated {
        all.truncate(limit as usize);
    }
    (all, is_truncated)
}

fn span(samples: &[Sample]) -> TimeRange {
    let times = || samples.iter().map(|sample| sample.timestamp_ms);
    TimeRange { start_ms: times().min().unwrap_or(0), end_ms: times().max().unwrap_or(0) }
}

/// Gives series one or two samples each, somewhere in a range.
fn placed(series: &[SeriesSamples], range: TimeRange, seed: i64) -> Vec<SeriesSamples> {
    let length_ms = range.end_ms - range.start_ms;
    let place = |(number, (labels, _)): (usize, &SeriesSamples)| {
        let first = (number as i64 * 37 + seed * 11) % length_ms;
        let last = first + (number as i64 * 5 + seed) % (length_ms - first).max(1);
        let sample = |offset| Sample { timestamp_ms: range.start_ms + offset, value: 1.0 };
        let mut samples = vec![sample(first)];
        if last > first {
            samples.push(sample(last));
        }
        (labels.clone(), samples)
    };
    series.iter().enumerate().map(place).collect()
}

fn node(blocks: &[(i64, Vec<SeriesSamples>)], head: &[SeriesSamples]) -> TestResult<(Node, Model)> {
    let (wal, storage) = (MemoryWal::default(), MemoryBlocks::default());
    let mut parts = Vec::new();
    for (number, (start_ms, series)) in blocks.iter().enumerate() {
        let range = TimeRange { start_ms: *start_ms, end_ms: BLOCKS_END_MS };
        let series = placed(series, range, number as i64);
        let meta = write(&storage, &series)?;
        let series = series.iter().map(|(labels, samples)| (labels.clone(), span(samples)));
        parts.push(Part { range: meta.time_range(), series: series.collect() });
    }
    let mut engine = Node::open(&wal, &storage, ONE_CHUNK);
    let head_range = TimeRange { start_ms: BLOCKS_END_MS, end_ms: 2 * BLOCKS_END_MS };
    let head = placed(head, head_range, 3);
    for (labels, samples) in &head {
        let series = engine.series_ref(labels)?;
        let outcome = engine.append(samples.iter().map(|s| (series, *s)), 1_000_000)?;
        assert_eq!(outcome.refused, 0);
    }
    if !head.is_empty() {
        let all: Vec<Sample> = head.iter().flat_map(|(_, samples)| samples).copied().collect();
        let series = head.iter().map(|(labels, samples)| (labels.clone(), span(samples)));
        parts.push(Part { range: span(&all), series: series.collect() });
    }
    Ok((Node { wal, blocks: storage, options: ONE_CHUNK, engine }, Model { parts }))
}

fn any_lookup() -> impl Strategy<Value = Lookup> {
    let sets = prop::collection::vec(prop::collection::vec(any_matcher(), 0..4), 0..3);
    let range = prop_oneof![
        3 => Just(TimeRange::ALL),
        4 => (0i64..2100, -50i64..1500)
            .prop_map(|(start_ms, span)| TimeRange { start_ms, end_ms: start_ms + span }),
    ];
    let limit = prop_oneof![3 => Just(0), 1 => 1u64..12];
    (sets, range, limit).prop_map(|(matcher_sets, range, limit)| Lookup {
        matcher_sets,
        range,
        limit,
    })
}

fn check(
    engine: &Engine,
    model: &Model,
    lookup: &Lookup,
    name: &str,
    bytes_max: u32,
) -> TestResult {
    let names = strings(engine.label_names(lookup)?, bytes_max)?;
    assert_eq!(names, cut(model.label_names(lookup), lookup.limit), "{lookup:?}");
    let values = strings(engine.label_values(name, lookup)?, bytes_max)?;
    assert_eq!(values, cut(model.label_values(name, lookup), lookup.limit), "{name} {lookup:?}");
    let found = series(engine.series(lookup)?, bytes_max)?;
    assert_eq!(found, cut(model.series(lookup), lookup.limit), "{lookup:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn lookups_agree_with_plain_sets(
        blocks in prop::collection::vec((0i64..900, any_series()), 0..4),
        head in prop_oneof![Just(Vec::new()), any_series()],
        lookups in prop::collection::vec((any_lookup(), prop::sample::select(
            vec!["a", "many", "__name__", "absent", ""],
        )), 1..6),
        bytes_max in prop_oneof![Just(1u32), Just(100), Just(u32::MAX)],
    ) {
        let (node, model) = node(&blocks, &head).map_err(|e| TestCaseError::fail(e.to_string()))?;
        for (lookup, name) in &lookups {
            if let Err(error) = check(&node.engine, &model, lookup, name, bytes_max) {
                return Err(TestCaseError::fail(error.to_string()));
            }
        }
        prop_assert_eq!(node.engine.figures().map(|figures| figures.open_cursors).ok(), Some(0));
    }
}

/// Many values, which come in pages, found in each of the possible ways.
#[test]
fn values_come_in_pages() -> TestResult {
    let mut all = Vec::new();
    for i in 0..4000 {
        let (pod, job) = (format!("pod-{i:05}-{}", "x".repeat(20)), format!("job-{}", i % 2));
        let group = if i % 500 == 7 { "few" } else { "most" };
        let pairs = [(LABEL_NAME, "m"), ("pod", &pod), ("job", &job), ("group", group)];
        all.push((Labels::from_pairs(pairs)?, Vec::new()));
    }
    let sorted = |part: &[SeriesSamples]| {
        let mut part = part.to_vec();
        part.sort_by(|a, b| a.0.cmp(&b.0));
        part
    };
    let blocks = [(0, sorted(&all[..3000])), (500, sorted(&all[1000..]))];
    let (node, model) = node(&blocks, &all[2000..])?;
    let matcher = |name: &str, op, value: &str| MatcherSpec {
        name: name.to_owned(),
        op,
        value: value.to_owned(),
    };
    for matcher_sets in [
        Vec::new(),
        vec![vec![matcher("job", MatchOp::Equal, "job-1")]],
        vec![vec![matcher("group", MatchOp::Equal, "few")]],
        vec![vec![matcher("pod", MatchOp::Regex, "pod-0[12].*")]],
        vec![vec![
            matcher("pod", MatchOp::Regex, "pod-(00|03).+"),
            matcher("job", MatchOp::NotEqual, "job-0"),
        ]],
        vec![
            vec![matcher("group", MatchOp::Equal, "few")],
            vec![matcher("pod", MatchOp::Regex, "pod-0111.*|pod-03999.*")],
        ],
        vec![vec![matcher("pod", MatchOp::NotRegex, ".+")]],
    ] {
        let lookup = Lookup { matcher_sets, range: TimeRange::ALL, limit: 0 };
        check(&node.engine, &model, &lookup, "pod", 1000)?;
        let lookup = Lookup { limit: 1500, ..lookup };
        check(&node.engine, &model, &lookup, "pod", 100_000)?;
    }
    Ok(())
}

#[test]
fn out_of_order_samples_count_for_series() -> TestResult {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    node.append("s", 5000, 1);
    node.append("s", 4000, 1);
    let lookup = |start_ms, end_ms| {
        let range = TimeRange { start_ms, end_ms };
        Lookup { matcher_sets: Vec::new(), range, limit: 0 }
    };
    let count = |node: &Node, lookup| {
        Ok::<_, Box<dyn std::error::Error>>(series(node.engine.series(&lookup)?, 1)?.0.len())
    };
    assert_eq!(count(&node, lookup(3000, 3999))?, 0);
    assert_eq!(count(&node, lookup(3000, 4000))?, 1);
    assert_eq!(count(&node, lookup(4001, 4999))?, 0);
    assert_eq!(count(&node, lookup(5000, 9000))?, 1);
    assert_eq!(count(&node, lookup(5001, 9000))?, 0);
    Ok(())
}

#[test]
fn an_open_list_of_values_keeps_the_head() -> TestResult {
    let mut node = Node::new();
    for time_ms in (0..1600).step_by(10) {
        node.append(if time_ms < 500 { "old" } else { "new" }, time_ms, 1);
    }
    let lookup = Lookup { matcher_sets: Vec::new(), range: TimeRange::ALL, limit: 0 };
    let cursor = node.engine.label_values(LABEL_NAME, &lookup)?;
    let busy = loop {
        match node.engine.compact(1_000_000, ROOM) {
            Ok(progress) if progress.done => break false,
            Ok(_) => {}
            Err(error) => break matches!(error, Error::Busy),
        }
    };
    assert!(busy, "the head must not drop names that the cursor will show");
    assert_eq!(strings(cursor, 1)?.0, ["new", "old"]);
    node.compact();
    let values = strings(node.engine.label_values(LABEL_NAME, &lookup)?, 1)?;
    assert_eq!(values.0, ["new", "old"], "now a block has the old one");
    Ok(())
}

/// Blocks of upstream's first format are merged into one of the current format without loss.
#[test]
fn blocks_of_index_version_1_are_merged() -> TestResult {
    let (wal, storage) = (MemoryWal::default(), MemoryBlocks::default());
    for _ in 0..2 {
        version_1::add(&storage, version_1::index())?;
    }
    let mut node = Node {
        engine: Node::open(&wal, &storage, ONE_CHUNK),
        wal,
        blocks: storage,
        options: ONE_CHUNK,
    };
    let lookup = Lookup { matcher_sets: Vec::new(), range: TimeRange::ALL, limit: 0 };
    let lines = |node: &Node| -> TestResult<Vec<String>> {
        let all = series(node.engine.series(&lookup)?, 1000)?.0;
        Ok(all.iter().map(Labels::to_string).collect())
    };
    let dumped = version_1::dump_lines();
    let expected: Vec<&str> =
        dumped.iter().filter_map(|line| line.split_once(' ')).map(|(labels, _)| labels).collect();
    assert_eq!(lines(&node)?, expected);
    node.compact();
    let blocks = node.blocks.list()?;
    assert_eq!(blocks.len(), 1);
    let index = node.blocks.open(&blocks[0], "index")?.read_at(0, 5)?;
    assert_eq!(index[4], 2);
    assert_eq!(lines(&node)?, expected);
    Ok(())
}
