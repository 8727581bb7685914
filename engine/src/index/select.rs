//! Selects the series that match all of several matchers, in a block or in the head.
//!
//! A matcher that rejects the empty value has *wanted* series, which must have the label. A matcher
//! that accepts the empty value has *unwanted* series: series without the label match, too, so the
//! unwanted ones are subtracted. The wanted lists are intersected first, the cheapest at the
//! beginning. A matcher that costs more than the remaining candidates is tested on each candidate.

use super::postings::sort_union;
use super::{difference, intersection};
use crate::model::Matcher;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use tidepool_model::sort;

/// Number of values of a label that can be tested at the cost of reading a series' labels.
pub(crate) const VALUES_PER_SERIES: usize = 8;

/// Sorting lists into one costs about this many times as much as reading the lists.
const SORTING_PER_READING: usize = 8;

/// An index from labels to the series that carry them.
pub trait LabelIndex {
    /// A reference to a series; a list has ascending references.
    type Series: Copy + Ord;
    /// A reference to the list of a label's series.
    type List: Copy;
    /// The error of a failed access to the index.
    type Error;

    /// Number of list elements that can be read at the cost of reading a series' labels.
    const REFS_PER_SERIES: usize;

    /// Number of list elements that can be read at the cost of testing one label of a series.
    const REFS_PER_TEST: usize;

    /// Accounts for work on lists of this many series; an error ends the selection.
    fn spend(&self, _series_count: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Returns an upper bound of the number of values of a name with a prefix.
    fn value_count(&self, name: &str, prefix: &str) -> usize;

    /// Returns the lists of the values (ascending, none empty) that the name has.
    fn find_lists(&self, name: &str, values: &[String]) -> Result<Vec<Self::List>, Self::Error>;

    /// Calls `visit` with each value of a name that begins with a prefix, in any order.
    fn walk_values(
        &self,
        name: &str,
        prefix: &str,
        visit: impl FnMut(&str, Self::List) -> Result<ControlFlow<()>, Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Returns the number of series of a list.
    fn list_len(&self, list: Self::List) -> Result<usize, Self::Error>;

    /// Returns the series of a list, ascending.
    fn list(&self, list: Self::List) -> Result<Cow<'_, [Self::Series]>, Self::Error>;

    /// Returns all series of the index, ascending.
    fn all(&self) -> Result<Cow<'_, [Self::Series]>, Self::Error>;

    /// Returns whether series ascend by this label first, with series without the label last.
    fn is_ordered_by(&self, _name: &str) -> bool {
        false
    }

    /// Returns whether a series' value of a label (empty if it has none) passes a test.
    fn has_value(
        &self,
        series: Self::Series,
        name: &str,
        test: impl Fn(&str) -> bool,
    ) -> Result<bool, Self::Error>;
}

/// A matcher whose wanted or unwanted values are known without a scan.
struct Listed<'m, L> {
    matcher: &'m Matcher,
    unwanted: bool,
    /// Lists of those values that exist.
    lists: Vec<L>,
    series_count: usize,
}

/// A matcher for which values must be scanned, and an upper bound of their number.
struct Scanned<'m> {
    matcher: &'m Matcher,
    value_count: usize,
}

/// The candidates so far; `None` means all series.
struct Selecting<'i, I: LabelIndex> {
    index: &'i I,
    candidates: Option<Vec<I::Series>>,
}

/// Returns the series that all matchers select, ascending.
pub fn select<I: LabelIndex>(index: &I, matchers: &[Matcher]) -> Result<Vec<I::Series>, I::Error> {
    let mut listed = Vec::new();
    let mut scanned = Vec::new();
    for matcher in matchers {
        // A matcher such as `=~".*"` needs no look at the index.
        match matcher.constant() {
            Some(true) => continue,
            Some(false) => return Ok(Vec::new()),
            None => {}
        }
        match list(index, matcher)? {
            Some(lists) => listed.push(lists),
            None => scanned.push(scan(index, matcher)),
        }
    }
    sort::sort_by_key(&mut listed, |lists| (lists.unwanted, lists.series_count));
    sort::sort_by_key(&mut scanned, |scan| (scan.matcher.matches_empty(), scan.value_count));
    // Wanted series first, unwanted last, so that only the latter may need all series.
    let (wanted, unwanted) = listed.split_at(listed.partition_point(|lists| !lists.unwanted));
    let (wanted_scans, unwanted_scans) =
        scanned.split_at(scanned.partition_point(|scan| !scan.matcher.matches_empty()));
    // A wanted label that no series has selects nothing.
    if wanted_scans.iter().any(|scan| scan.value_count == 0) {
        return Ok(Vec::new());
    }
    let mut selecting = Selecting { index, candidates: None };
    for lists in wanted {
        selecting.apply_lists(lists)?;
    }
    for scan in wanted_scans {
        selecting.apply_scan(scan)?;
    }
    for lists in unwanted {
        selecting.apply_lists(lists)?;
    }
    for scan in unwanted_scans {
        selecting.apply_scan(scan)?;
    }
    selecting.take_or_all()
}

/// Returns the series that any of several sets of matchers selects, ascending.
pub fn select_any<I: LabelIndex>(
    index: &I,
    sets: &[impl AsRef<[Matcher]>],
) -> Result<Vec<I::Series>, I::Error> {
    if let [set] = sets {
        return select(index, set.as_ref());
    }
    let mut selected = Vec::new();
    for set in sets {
        selected.append(&mut select(index, set.as_ref())?);
    }
    sort_union(&mut selected);
    Ok(selected)
}

/// Returns the number of series at the front whose value of a label passes a test on its order
/// relative to `value`. The series must be ordered by that label.
fn partition<I: LabelIndex>(
    index: &I,
    series: &[I::Series],
    test: impl Fn(Ordering) -> bool,
    name: &str,
    value: &str,
) -> Result<usize, I::Error> {
    let (mut from, mut to) = (0, series.len());
    while from < to {
        let middle = from + (to - from) / 2;
        let Some(one) = series.get(middle) else { break };
        // Series without the label come last in this order.
        let order = |own: &str| match own {
            "" => Ordering::Greater,
            own => own.cmp(value),
        };
        match index.has_value(*one, name, |own| test(order(own)))? {
            true => from = middle + 1,
            false => to = middle,
        }
    }
    Ok(from)
}

/// Returns the lists of a matcher's literals, if the wanted or unwanted series are in these lists.
/// For `=""` the wanted series are in no list, and for `!=""` in any list of the label.
fn list<'m, I: LabelIndex>(
    index: &I,
    matcher: &'m Matcher,
) -> Result<Option<Listed<'m, I::List>>, I::Error> {
    let unwanted = matcher.is_negated();
    let Some(literals) = matcher.literals() else { return Ok(None) };
    if matcher.matches_empty() != unwanted {
        return Ok(None);
    }
    let lists = index.find_lists(matcher.name(), literals)?;
    let mut series_count = 0usize;
    for list in &lists {
        series_count = series_count.saturating_add(index.list_len(*list)?);
    }
    Ok(Some(Listed { matcher, unwanted, lists, series_count }))
}

fn scan<'m, I: LabelIndex>(index: &I, matcher: &'m Matcher) -> Scanned<'m> {
    let counts = scanned_prefixes(matcher).iter();
    let value_count = counts.map(|prefix| index.value_count(matcher.name(), prefix)).sum();
    Scanned { matcher, value_count }
}

/// Returns prefixes of the values that a scan must test. The matcher treats all other values like
/// the empty value.
fn scanned_prefixes(matcher: &Matcher) -> &[String] {
    const ALL: &[String] = &[String::new()];
    if matcher.holds("") { ALL } else { matcher.prefixes() }
}

impl<I: LabelIndex> Selecting<'_, I> {
    fn apply_lists(&mut self, listed: &Listed<'_, I::List>) -> Result<(), I::Error> {
        if self.is_cheaper_by_series(listed.series_count, I::REFS_PER_SERIES) {
            return self.keep_matching(listed.matcher);
        }
        // A single list ascends already, so it is neither copied nor sorted.
        let series = match listed.lists.as_slice() {
            [one] => self.index.list(*one)?,
            several => Cow::Owned(self.read_lists(several)?),
        };
        self.apply(series, listed.unwanted)
    }

    /// Applies a matcher by testing values of its label, or the labels of all candidates.
    fn apply_scan(&mut self, scan: &Scanned<'_>) -> Result<(), I::Error> {
        let matcher = scan.matcher;
        if self.is_cheaper_by_series(scan.value_count, VALUES_PER_SERIES) {
            return self.keep_matching(matcher);
        }
        // Only the lists that change the result are read.
        let accepts_empty = matcher.matches_empty();
        let mut lists = Vec::new();
        for prefix in scanned_prefixes(matcher) {
            self.index.walk_values(matcher.name(), prefix, |value, list| {
                if matcher.matches(value) != accepts_empty {
                    lists.push(list);
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        if let Some(candidates) = &self.candidates {
            // Many values may have far more series than there are candidates.
            let asking = candidates.len().saturating_mul(I::REFS_PER_TEST);
            let mut reading = 0usize;
            for list in &lists {
                reading = reading.saturating_add(self.index.list_len(*list)?);
                if reading.saturating_mul(SORTING_PER_READING) > asking {
                    return self.keep_matching(matcher);
                }
            }
        }
        let series = self.read_lists(&lists)?;
        self.apply(Cow::Owned(series), accepts_empty)
    }

    /// Returns whether testing each candidate costs less than reading `count` items, of which
    /// `per_series` cost as much as one test.
    fn is_cheaper_by_series(&self, count: usize, per_series: usize) -> bool {
        let Some(candidates) = &self.candidates else { return false };
        candidates.is_empty() || candidates.len() <= count / per_series
    }

    fn read_lists(&self, lists: &[I::List]) -> Result<Vec<I::Series>, I::Error> {
        let mut all = Vec::new();
        for list in lists {
            let list = self.index.list(*list)?;
            self.index.spend(SORTING_PER_READING * list.len())?;
            all.extend_from_slice(&list);
        }
        sort_union(&mut all);
        Ok(all)
    }

    fn apply(&mut self, series: Cow<'_, [I::Series]>, unwanted: bool) -> Result<(), I::Error> {
        self.index.spend(series.len())?;
        self.candidates = Some(match (self.candidates.take(), unwanted) {
            (None, false) => series.into_owned(),
            (Some(candidates), is_unwanted) => {
                self.index.spend(candidates.len())?;
                match is_unwanted {
                    false => intersection(&candidates, &series),
                    true => difference(&candidates, &series),
                }
            }
            (None, true) => {
                let all = self.index.all()?;
                self.index.spend(all.len())?;
                difference(&all, &series)
            }
        });
        Ok(())
    }

    fn keep_matching(&mut self, matcher: &Matcher) -> Result<(), I::Error> {
        let Some(candidates) = self.candidates.take() else { return Ok(()) };
        if !matcher.is_negated()
            && let Some([value]) = matcher.literals()
            && !value.is_empty()
            && self.index.is_ordered_by(matcher.name())
        {
            // Candidates with the value are adjacent: two binary searches find them.
            let (name, index) = (matcher.name(), self.index);
            let from = partition(index, &candidates, |order| order == Ordering::Less, name, value)?;
            let rest = candidates.get(from..).unwrap_or_default();
            let count = partition(index, rest, |order| order == Ordering::Equal, name, value)?;
            self.candidates = Some(rest.get(..count).unwrap_or_default().to_vec());
            return Ok(());
        }
        let mut kept = Vec::with_capacity(candidates.len());
        for series in candidates {
            if self.index.has_value(series, matcher.name(), |value| matcher.matches(value))? {
                kept.push(series);
            }
        }
        self.candidates = Some(kept);
        Ok(())
    }

    fn take_or_all(self) -> Result<Vec<I::Series>, I::Error> {
        match self.candidates {
            Some(series) => Ok(series),
            None => {
                let all = self.index.all()?;
                self.index.spend(all.len())?;
                Ok(all.into_owned())
            }
        }
    }
}
