//! All selections of a query are of one moment, and read no more chunks than they need.

use super::*;
use crate::compact::BadBlock;
use crate::query::{Answer, StoreSource};
use crate::select::Lookup;
use tidepool_promql::annotations::Severity;
use tidepool_promql::model::Samples;
use tidepool_promql::plan::Options;
use tidepool_promql::source::{Hints, Selection, SeriesSet, Source};
use tidepool_promql::syntax::{MatchOp, Matcher, ParserOptions, parse};

type TestResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

type SeriesTimes = Vec<(String, Vec<i64>)>;

fn shared(node: Node) -> (Rc<RefCell<Node>>, StoreSource) {
    let node = Rc::new(RefCell::new(node));
    let read = Rc::clone(&node);
    (node, StoreSource::new(move |range, first| read.borrow().engine.view(range, first)))
}

fn selection(name: &str, end_ms: i64, hints: Hints) -> Selection {
    let matcher = |name: &str, op, value: &str| Matcher {
        name: name.to_owned(),
        op,
        value: value.to_owned(),
    };
    let matchers = vec![matcher(LABEL_NAME, MatchOp::Regex, name)];
    Selection { matchers, start_ms: 0, end_ms, hints }
}

fn read(series: &mut dyn SeriesSet) -> SeriesTimes {
    let mut found = Vec::new();
    while let Some(labels) = series.next().expect("series") {
        let mut samples = Samples::default();
        while series.read(&mut samples).expect("samples") {}
        let times = samples.floats.iter().map(|point| point.time_ms).collect();
        found.push((labels.get(LABEL_NAME).to_owned(), times));
    }
    found
}

#[test]
fn selections_of_a_query_show_one_moment() {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    for time_ms in (0..3000).step_by(10) {
        node.append("a", time_ms, 1);
        node.append("b", time_ms, 1);
    }
    let (node, source) = shared(node);
    let (first, second) = {
        source.begin(0, 9000);
        let open = |name| source.select(&selection(name, 9000, Hints::default()));
        (open("a|b|c"), open("a|b|c"))
    };
    let first = read(&mut *first.expect("a selection"));
    let lengths: Vec<usize> = first.iter().map(|(_, times)| times.len()).collect();
    assert_eq!(lengths, [300, 300]);
    // Meanwhile samples come, in order and not, and what is old becomes a block.
    {
        let mut node = node.borrow_mut();
        node.append("a", 1005, 1);
        node.append("c", 2990, 1);
        for time_ms in (3000..6000).step_by(10) {
            node.append("b", time_ms, 1);
        }
        // The head truncates nothing while it is read, so this ends early.
        while node.engine.compact(1_000_000, ROOM).is_ok_and(|progress| !progress.done) {}
        assert!(!node.blocks.list().expect("blocks").is_empty());
    }
    assert_eq!(read(&mut *second.expect("a selection")), first);
    // A look at labels belongs to it, too: it may find more, but does not lose anything.
    let labels_only = Hints { labels_only: true, ..Hints::default() };
    let labels = read(&mut *source.select(&selection("a|b", 9000, labels_only)).expect("labels"));
    assert_eq!(labels, [("a".to_owned(), vec![]), ("b".to_owned(), vec![])]);

    source.end();
    let all = source.select(&selection("a|b|c", 9000, Hints::default())).expect("a selection");
    let lengths: Vec<usize> = read(&mut *{ all }).iter().map(|(_, times)| times.len()).collect();
    assert_eq!(lengths, [301, 600, 1]);
    node.borrow_mut().compact();
}

#[test]
fn chunks_that_no_window_touches_are_left_out() {
    let mut node = Node::new();
    for time_ms in 0..40_000 {
        node.append("a", time_ms, 1);
    }
    node.compact();
    let (_, source) = shared(node);
    let times = |hints| read(&mut *source.select(&selection("a", 39_900, hints)).expect("series"));
    let whole = times(Hints::default())[0].1.clone();
    assert_eq!(whole.len(), 39_901);
    let sparse = Hints { step_ms: 10_000, range_ms: 10, ..Hints::default() };
    let some = times(sparse)[0].1.clone();
    let is_in = |time_ms: &i64| (39_900 - time_ms) % 10_000 < 10;
    let needed: Vec<i64> = whole.iter().copied().filter(is_in).collect();
    assert!(needed.iter().all(|time_ms| some.contains(time_ms)));
    // Each of the four windows is in one or two chunks.
    assert!(some.len() < whole.len() / 4, "{}", some.len());
    let wide = Hints { step_ms: 2_000, range_ms: 3_000, ..Hints::default() };
    assert_eq!(times(wide)[0].1, whole);
}

#[test]
fn compiled_matchers_are_counted() {
    let (_, source) = shared(Node::new());
    let bytes = |value: &str| {
        source.select(&selection(value, 9, Hints::default())).expect("a selection").bytes()
    };
    assert!(bytes("a") < 1_000);
    assert!(bytes("(.{0,111}x?){9}") > 100_000);
}

#[test]
fn a_damaged_block_is_named_by_what_leaves_it_out() -> TestResult {
    let mut node = Node::new();
    for time_ms in 0..4_000 {
        node.append("a", time_ms, 1);
    }
    node.compact();
    // Another block of the same range, whose index is empty.
    let sound = node.blocks.list()?;
    let mut writer = node.blocks.create(2_000_000)?;
    let id = writer.id().to_owned();
    for file in ["meta.json", "tombstones", "chunks/000001"] {
        let content = node.blocks.open(&sound[0], file)?;
        writer.write_at(file, 0, &content.read_at(0, u32::try_from(content.size())?)?)?;
    }
    writer.write_at("index", 0, b"")?;
    writer.commit()?;
    let is_named = |damaged: &[BadBlock]| {
        let [bad] = damaged else { return false };
        bad.block == id && bad.file.as_deref() == Some("index")
    };

    let lookup = Lookup { matcher_sets: Vec::new(), range: TimeRange::ALL, limit: 0 };
    node.engine.label_names(&lookup)?;
    node.engine.series(&lookup)?;
    assert!(is_named(&node.engine.take_damaged()));
    assert_eq!(node.engine.take_damaged(), []);

    let answer = |node: Rc<RefCell<Node>>, end_ms| -> TestResult<_> {
        let source = StoreSource::new(move |range, first| node.borrow().engine.view(range, first));
        let text = "count_over_time(a[1s])";
        let parsed = parse(text, &ParserOptions::default())?;
        let options = Options::instant(end_ms);
        let mut answer = Answer::new(text.to_owned(), &parsed, options, 0, Rc::new(source))?;
        while !answer.next(1000)?.is_empty() {}
        Ok((answer.annotations(Severity::Warning, 10), answer.is_stepwise()))
    };
    let node = Rc::new(RefCell::new(node));
    let (warnings, is_stepwise) = answer(Rc::clone(&node), 900)?;
    assert!(warnings.len() == 1 && warnings[0].contains(&id), "{warnings:?}");
    assert!(!is_stepwise, "the answer would be kept");
    // A query that needs nothing of it says nothing.
    let (warnings, _) = answer(Rc::clone(&node), 3_900)?;
    assert_eq!(warnings, [""; 0]);

    // Compaction tells of it before anything is read or merged.
    let progress = node.borrow_mut().engine.compact(1_000_000, ROOM)?;
    assert!(is_named(&progress.bad), "{progress:?}");
    assert_eq!(node.borrow_mut().engine.compact(1_000_000, ROOM)?.bad, []);
    Ok(())
}
