//! A head read in slices by another instance, compared with one that answers at once.

use super::*;
use crate::block::tests::select::{any_matcher, any_series};
use crate::chunk::Chunk;
use crate::engine::head_reader::{HeadReader, HeadStringReader};
use crate::model::MatchOp;
use crate::select::{
    ExemplarSource, HeadSource, Lookup, RemoteCursor, RemoteHead, RemoteStrings, SeriesSource,
};
use crate::select::{HeadDeletion, HeadPage, Opened};
use proptest::prelude::*;
use std::cell::Cell;

type TestResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Reads a head as another instance does, with writes between calls.
struct Reader<'e> {
    engine: &'e RefCell<Engine>,
    calls: Rc<Cell<u32>>,
    /// Numbers of calls that the head put off, and that it refused.
    put_off: Cell<u32>,
    refused: Cell<u32>,
}

struct Remote<T> {
    reader: T,
    calls: Rc<Cell<u32>>,
}

impl<'e> Reader<'e> {
    fn new(engine: &'e RefCell<Engine>) -> Reader<'e> {
        Reader { engine, calls: Rc::default(), put_off: Cell::new(0), refused: Cell::new(0) }
    }

    fn counted<T>(&self, opened: Opened<T>) -> Opened<Remote<T>> {
        self.calls.set(self.calls.get() + 1);
        match opened {
            Opened::Ready(reader) => {
                Opened::Ready(Remote { reader, calls: Rc::clone(&self.calls) })
            }
            Opened::Again => {
                self.put_off.set(self.put_off.get() + 1);
                Opened::Again
            }
            Opened::TooCostly => {
                self.refused.set(self.refused.get() + 1);
                Opened::TooCostly
            }
        }
    }
}

impl RemoteHead for Reader<'_> {
    type Cursor = Remote<HeadReader>;
    type Strings = Remote<HeadStringReader>;

    fn open(
        &self,
        sets: &[Vec<MatcherSpec>],
        range: TimeRange,
        external: &Labels,
    ) -> Result<Opened<Remote<HeadReader>>> {
        Ok(self.counted(self.engine.borrow().read_head(sets, range, external)?))
    }

    fn label_names(&self, lookup: &Lookup) -> Result<Opened<Remote<HeadStringReader>>> {
        Ok(self.counted(self.engine.borrow().read_head_names(lookup)?))
    }

    fn label_values(
        &self,
        name: &str,
        lookup: &Lookup,
    ) -> Result<Opened<Remote<HeadStringReader>>> {
        Ok(self.counted(self.engine.borrow().read_head_values(name, lookup)?))
    }

    fn exemplars(&self, _: TimeRange) -> Result<Box<dyn ExemplarSource>> {
        Err(Error::Invalid("nothing is asked for exemplars here".into()))
    }

    fn plan_cut(&self) -> Result<Option<TimeRange>> {
        Ok(None)
    }

    fn truncate(&self, _: i64) -> Result<bool> {
        Ok(false)
    }

    fn deletion_mark(&self) -> Result<u64> {
        self.engine.borrow().deletion_mark()
    }
}

impl<T> Remote<T> {
    fn called(&mut self) -> &mut T {
        self.calls.set(self.calls.get() + 1);
        &mut self.reader
    }
}

impl RemoteCursor for Remote<HeadReader> {
    fn next(&mut self, _: u32) -> Result<HeadPage> {
        self.called().next(60)
    }

    fn labels(&mut self, _: u32, only_in_range: bool) -> Result<HeadPage> {
        self.called().labels(60, only_in_range)
    }

    fn keep(&mut self, positions: &[u32]) -> Result<()> {
        self.called().keep(positions)
    }

    fn rewind(&mut self) -> Result<()> {
        self.called().rewind();
        Ok(())
    }

    fn delete(&mut self) -> Result<HeadDeletion> {
        self.called().delete()
    }
}

impl RemoteStrings for Remote<HeadStringReader> {
    fn next(&mut self, _: u32) -> Result<Vec<String>> {
        self.called().next(20)
    }
}

/// Returns all series, read once more after a rewind.
fn all_series(mut source: Box<dyn SeriesSource>) -> Result<Vec<(Labels, Vec<Chunk>)>> {
    let mut given = [Vec::new(), Vec::new()];
    for all in &mut given {
        while let Some(series) = source.next_series()? {
            all.push((series.labels, series.chunks));
        }
        source.rewind()?;
    }
    let [all, again] = given;
    assert_eq!(all, again);
    Ok(all)
}

fn all_strings(mut source: Box<dyn crate::select::StringSource>) -> Result<Vec<String>> {
    let mut all = Vec::new();
    while let Some(text) = source.next_string()? {
        all.push(text);
    }
    Ok(all)
}

fn append(engine: &mut Engine, labels: &Labels, times_ms: &[i64]) -> Result<()> {
    let series = engine.series_ref(labels)?;
    let rows = times_ms.iter().map(|time_ms| Sample { timestamp_ms: *time_ms, value: 1.5 });
    engine.append(rows.map(|sample| (series, sample)), 1_000_000).map(drop)
}

fn node(series: &[Labels]) -> Result<Node> {
    let mut node = Node::new();
    for (number, labels) in series.iter().enumerate() {
        let first = 1000 + 7 * number as i64 % 200;
        append(&mut node.engine, labels, &[first, first + 40])?;
    }
    Ok(node)
}

fn costly_matcher() -> impl Strategy<Value = MatcherSpec> {
    // Flags are compiled by the reader alone.
    any_matcher().prop_map(|spec| match spec.op {
        MatchOp::Regex | MatchOp::NotRegex => {
            MatcherSpec { value: format!("(?s:{})", spec.value), ..spec }
        }
        _ => spec,
    })
}

fn matcher_sets() -> impl Strategy<Value = Vec<Vec<MatcherSpec>>> {
    let matcher = prop_oneof![3 => any_matcher(), 1 => costly_matcher()];
    prop::collection::vec(prop::collection::vec(matcher, 0..4), 0..3)
}

proptest! {
    /// Series, names and values, whichever way they are found.
    #[test]
    fn slices_give_what_one_answer_gives(
        series in any_series(),
        sets in matcher_sets(),
        start_ms in 900i64..1300,
        length_ms in 0i64..300,
        external in any_series().prop_map(|series| {
            series.into_iter().next().map(|(labels, _)| labels).unwrap_or_default()
        }),
    ) {
        let fail = |error: Error| TestCaseError::fail(error.to_string());
        let series: Vec<Labels> = series.into_iter().map(|(labels, _)| labels).collect();
        let range = TimeRange { start_ms, end_ms: start_ms + length_ms };
        let node = node(&series).map_err(fail)?;
        let local = Rc::clone(&node.engine.head);
        let engine = RefCell::new(node.engine);
        let reader = Reader::new(&engine);
        let matchers = sets.first().cloned().unwrap_or_default();
        let expected = local.select(&matchers, range, &external).map_err(fail)?;
        let expected = all_series(expected).map_err(fail)?;
        let got = HeadSource::select(&reader, &matchers, range, &external).map_err(fail)?;
        prop_assert_eq!(all_series(got).map_err(fail)?, expected);
        let lookup = Lookup { matcher_sets: sets, range, limit: 0 };
        let expected = all_series(local.series(&lookup).map_err(fail)?).map_err(fail)?;
        let got = HeadSource::series(&reader, &lookup).map_err(fail)?;
        prop_assert_eq!(all_series(got).map_err(fail)?, expected);
        let expected = all_strings(local.label_names(&lookup).map_err(fail)?).map_err(fail)?;
        let got = HeadSource::label_names(&reader, &lookup).map_err(fail)?;
        prop_assert_eq!(all_strings(got).map_err(fail)?, expected);
        for name in ["__name__", "a", "b", "job"] {
            let expected = all_strings(local.label_values(name, &lookup).map_err(fail)?).map_err(fail)?;
            let got = HeadSource::label_values(&reader, name, &lookup).map_err(fail)?;
            prop_assert_eq!(all_strings(got).map_err(fail)?, expected);
        }
        prop_assert_eq!(engine.borrow().figures().map_err(fail)?.open_cursors, 0);
    }

    /// Deleting in slices leaves the same as deleting at once, now and after a replay.
    #[test]
    fn slices_delete_what_one_deletion_deletes(
        series in any_series(),
        sets in matcher_sets().prop_filter("a selector", |sets| !sets.is_empty()),
        start_ms in 900i64..1300,
        length_ms in 0i64..300,
    ) {
        let fail = |error: Error| TestCaseError::fail(error.to_string());
        let series: Vec<Labels> = series.into_iter().map(|(labels, _)| labels).collect();
        let range = TimeRange { start_ms, end_ms: start_ms + length_ms };
        let (mut once, sliced) = (node(&series).map_err(fail)?, node(&series).map_err(fail)?);
        let deleted = once.engine.delete(&sets, range).map_err(fail)?.head_series;
        let Node { wal, blocks, options, engine } = sliced;
        let engine = RefCell::new(engine);
        let reader = Reader::new(&engine);
        prop_assert_eq!(HeadSource::delete(&reader, &sets, range).map_err(fail)?, deleted);
        let mut sliced = Node { wal, blocks, options, engine: engine.into_inner() };
        for _ in 0..2 {
            let expected = once.select(Vec::new(), TimeRange::ALL);
            prop_assert_eq!(sliced.select(Vec::new(), TimeRange::ALL), expected);
            prop_assert_eq!(
                sliced.engine.figures().map_err(fail)?.head_range,
                once.engine.figures().map_err(fail)?.head_range
            );
            sliced.restart();
            once.restart();
        }
    }
}

/// Each series has a unique value, and a read excludes hundreds: the head is asked in slices, and
/// the reader finds the series itself.
#[test]
fn a_read_that_costs_too_much_is_done_by_the_reader() -> TestResult {
    let label = |number: usize| {
        let value = number.to_string();
        Labels::from_pairs([(LABEL_NAME, "flood"), ("i", value.as_str())])
    };
    let mut series = Vec::new();
    for number in 0..300 {
        series.push(label(number).map_err(|error| error.to_string())?);
    }
    let node = node(&series)?;
    let engine = RefCell::new(node.engine);
    let reader = Reader::new(&engine);
    let unwanted = |number: usize| MatcherSpec {
        name: "i".into(),
        op: MatchOp::NotEqual,
        value: number.to_string(),
    };
    let matchers: Vec<MatcherSpec> = (0..150).map(unwanted).collect();
    let found = HeadSource::select(&reader, &matchers, TimeRange::ALL, &Labels::default())?;
    let found: Vec<Labels> = all_series(found)?.into_iter().map(|(labels, _)| labels).collect();
    let expected: std::collections::BTreeSet<Labels> = series[150..].iter().cloned().collect();
    assert!(found.iter().eq(&expected), "{} series", found.len());
    assert_eq!(reader.refused.get(), 1);
    assert!(reader.put_off.get() > 10, "{}", reader.put_off.get());
    assert!(reader.calls.get() > 100, "{}", reader.calls.get());
    Ok(())
}

#[test]
fn positions_of_another_page_are_refused() -> TestResult {
    let series =
        [Labels::from_sorted([(LABEL_NAME, "a")]), Labels::from_sorted([(LABEL_NAME, "b")])];
    let node = node(&series)?;
    let Opened::Ready(mut reader) =
        node.engine.read_head(&[], TimeRange::ALL, &Labels::default())?
    else {
        return Err("two series are no work".into());
    };
    assert!(matches!(reader.keep(&[0]), Err(Error::Invalid(_))), "there is no page yet");
    while !reader.labels(1000, true)?.is_last {}
    for positions in [&[2][..], &[1, 1], &[0, 7]] {
        assert!(matches!(reader.keep(positions), Err(Error::Invalid(_))), "{positions:?}");
    }
    Ok(())
}
