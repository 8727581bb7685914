//! Exemplars of a head: fetched page by page, selected by matchers, and sorted.

use crate::error::Result;
use crate::head::{Exemplar, SeriesExemplars};
use crate::model::{Labels, Matcher};
use crate::wire::split_series_exemplars;
use rustc_hash::FxHashMap;
use tidepool_model::sort;

/// Number of bytes of exemplars fetched from a head at a time.
pub const EXEMPLAR_PAGE_BYTES: u32 = 32 * 1024;

/// Approximate memory of an exemplar besides its labels, in bytes.
const EXEMPLAR_BYTES: usize = 64;

/// A source of exemplars, in the order of the head.
pub trait ExemplarSource {
    /// Returns the next exemplars by series in no order, or an empty page; `None` at the end.
    fn next_page(&mut self) -> Result<Option<Vec<SeriesExemplars>>>;
}

/// Exemplars of another instance's head.
pub struct RemoteExemplars<F> {
    fetch: F,
}

impl<F: FnMut(u32) -> Result<Option<Vec<u8>>>> RemoteExemplars<F> {
    /// Makes a source; `fetch` returns about as many bytes of messages as asked, `None` at the end.
    pub fn new(fetch: F) -> RemoteExemplars<F> {
        RemoteExemplars { fetch }
    }
}

impl<F: FnMut(u32) -> Result<Option<Vec<u8>>>> ExemplarSource for RemoteExemplars<F> {
    fn next_page(&mut self) -> Result<Option<Vec<SeriesExemplars>>> {
        let Some(bytes) = (self.fetch)(EXEMPLAR_PAGE_BYTES)? else { return Ok(None) };
        let mut page = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (series, after) = split_series_exemplars(rest)?;
            page.push(series);
            rest = after;
        }
        Ok(Some(page))
    }
}

/// A position in an answer of exemplars.
pub struct ExemplarCursor {
    /// Selected series in label order, each with its exemplars by time.
    selected: std::vec::IntoIter<SeriesExemplars>,
    pending: Option<(Labels, std::vec::IntoIter<Exemplar>)>,
}

impl ExemplarCursor {
    /// Reads a source to its end, and keeps the exemplars of series that any of the sets selects.
    pub fn select(
        mut source: Box<dyn ExemplarSource>,
        sets: &[Vec<Matcher>],
    ) -> Result<ExemplarCursor> {
        let is_selected = |labels: &Labels| {
            let holds = |matcher: &Matcher| matcher.matches(labels.get(matcher.name()));
            sets.iter().any(|matchers| matchers.iter().all(holds))
        };
        // Also has series that are not selected, so that each series is tested only once.
        let mut found: FxHashMap<Labels, Option<Vec<Exemplar>>> = FxHashMap::default();
        while let Some(page) = source.next_page()? {
            for SeriesExemplars { labels, exemplars } in page {
                match found.get_mut(&labels) {
                    Some(Some(known)) => known.extend(exemplars),
                    Some(None) => {}
                    None => {
                        let selected = is_selected(&labels).then_some(exemplars);
                        found.insert(labels, selected);
                    }
                }
            }
        }
        let selected = found.into_iter().filter_map(|(labels, exemplars)| {
            exemplars.map(|exemplars| SeriesExemplars { labels, exemplars })
        });
        let mut selected: Vec<SeriesExemplars> = selected.collect();
        sort::sort_by(&mut selected, |a, b| a.labels.cmp(&b.labels));
        for series in &mut selected {
            // Stable: exemplars of one time stay in the order of the head.
            sort::sort_by_key(&mut series.exemplars, |exemplar| exemplar.timestamp_ms);
        }
        Ok(ExemplarCursor { selected: selected.into_iter(), pending: None })
    }

    /// Returns series until they reach `bytes_max`: at least one, or none at the end. A series that
    /// does not fit is returned again with the rest of its exemplars.
    pub fn next(&mut self, bytes_max: u32) -> Vec<SeriesExemplars> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        while page.is_empty() || bytes < bytes_max as usize {
            let next = || {
                let SeriesExemplars { labels, exemplars } = self.selected.next()?;
                Some((labels, exemplars.into_iter()))
            };
            let Some((labels, mut left)) = self.pending.take().or_else(next) else { break };
            bytes += labels.packed().len();
            let mut exemplars = Vec::new();
            while (exemplars.is_empty() || bytes < bytes_max as usize)
                && let Some(exemplar) = left.next()
            {
                bytes += exemplar.labels.packed().len() + EXEMPLAR_BYTES;
                exemplars.push(exemplar);
            }
            if !left.as_slice().is_empty() {
                self.pending = Some((labels.clone(), left));
            }
            page.push(SeriesExemplars { labels, exemplars });
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{MatchOp, MatcherError, MatcherSpec};

    struct Pages(Vec<Vec<SeriesExemplars>>);

    impl ExemplarSource for Pages {
        fn next_page(&mut self) -> Result<Option<Vec<SeriesExemplars>>> {
            Ok((!self.0.is_empty()).then(|| self.0.remove(0)))
        }
    }

    fn series(name: &str, times_ms: &[i64]) -> SeriesExemplars {
        let exemplar = |timestamp_ms: &i64| Exemplar {
            labels: Labels::from_sorted([("trace_id", "1")]),
            value: 1.0,
            timestamp_ms: *timestamp_ms,
        };
        let labels = Labels::from_sorted([("__name__", name)]);
        SeriesExemplars { labels, exemplars: times_ms.iter().map(exemplar).collect() }
    }

    fn pages() -> Pages {
        Pages(vec![
            vec![series("b", &[30, 10])],
            vec![],
            vec![series("c", &[5]), series("b", &[20]), series("a", &[7])],
        ])
    }

    fn name_is(name: &str) -> std::result::Result<Vec<Matcher>, MatcherError> {
        let op = MatchOp::Equal;
        let spec = MatcherSpec { name: "__name__".into(), op, value: name.into() };
        Ok(vec![Matcher::new(&spec)?])
    }

    #[test]
    fn any_set_selects_and_pages_are_one_answer() -> Result<()> {
        let sets = [name_is("a")?, name_is("b")?];
        let mut cursor = ExemplarCursor::select(Box::new(pages()), &sets)?;
        assert_eq!(cursor.next(u32::MAX), [series("a", &[7]), series("b", &[10, 20, 30])]);
        assert_eq!(cursor.next(u32::MAX), []);

        let mut cursor = ExemplarCursor::select(Box::new(pages()), &[Vec::new()])?;
        for (name, time_ms) in [("a", 7), ("b", 10), ("b", 20), ("b", 30), ("c", 5)] {
            assert_eq!(cursor.next(0), [series(name, &[time_ms])]);
        }
        assert_eq!(cursor.next(0), []);
        assert_eq!(ExemplarCursor::select(Box::new(pages()), &[])?.next(1000), []);
        Ok(())
    }
}
