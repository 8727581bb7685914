//! Which series all of some matchers select.
//!
//! A matcher either names the series it wants (it refuses the empty value, so a series must carry
//! the label), or those it does not want (it accepts the empty value, so that series without the
//! label are selected too, and only a subtraction can say which). First the cheapest wanted lists
//! are intersected, then the rest is looked at, and each matcher that would need a walk over more
//! label values than there are candidates left is asked about these candidates instead.

use super::postings::sort_union;
use super::{IndexError, IndexReader, SeriesRef, difference, intersection};
use crate::model::Matcher;

/// Reading a series' labels costs about as much as looking at this many values of a label.
const VALUES_PER_SERIES: usize = 8;

/// The candidates so far: all series, until a matcher has named some.
#[derive(Default)]
struct Candidates(Option<Vec<SeriesRef>>);

/// A matcher whose wanted (or unwanted) values are known without looking at all of them.
struct Listed {
    unwanted: bool,
    /// Where the lists of those values that exist begin.
    lists: Vec<u64>,
    /// How many series they have together.
    series_count: usize,
}

impl IndexReader {
    /// The series that all matchers select, in label order.
    pub fn select(&self, matchers: &[Matcher]) -> Result<Vec<SeriesRef>, IndexError> {
        let mut listed = Vec::new();
        let mut scanned = Vec::new();
        for matcher in matchers {
            match self.listed(matcher)? {
                Some(lists) => listed.push(lists),
                None => scanned.push(matcher),
            }
        }
        listed.sort_by_key(|lists| (lists.unwanted, lists.series_count));
        scanned.sort_by_key(|matcher| {
            (matcher.matches_empty(), self.label_value_count(matcher.name()))
        });
        let mut candidates = Candidates::default();
        // Wanted lists first, unwanted ones last, so that only the latter may need all series.
        let (wanted, unwanted) = listed.split_at(listed.partition_point(|lists| !lists.unwanted));
        for lists in wanted {
            if candidates.is_empty() {
                return Ok(Vec::new());
            }
            candidates.narrow(self.read_lists(lists)?);
        }
        for matcher in scanned.iter().filter(|matcher| !matcher.matches_empty()) {
            self.scan(matcher, &mut candidates)?;
        }
        for lists in unwanted {
            if candidates.is_empty() {
                return Ok(Vec::new());
            }
            candidates.subtract(self, &self.read_lists(lists)?)?;
        }
        for matcher in scanned.iter().filter(|matcher| matcher.matches_empty()) {
            self.scan(matcher, &mut candidates)?;
        }
        candidates.or_all(self)
    }

    /// The lists of a matcher's literals, if these say what is wanted or what is not. They do not
    /// for `=""`, which wants what has no list, nor for `!=""`, which wants all that have one.
    fn listed(&self, matcher: &Matcher) -> Result<Option<Listed>, IndexError> {
        let unwanted = matcher.is_negated();
        let Some(literals) = matcher.literals() else { return Ok(None) };
        if matcher.matches_empty() != unwanted {
            return Ok(None);
        }
        let lists = match matcher.name() {
            // The list under the empty name is that of all series, not a label's.
            "" => Vec::new(),
            name => self.find_lists(name, literals)?,
        };
        let mut series_count = 0usize;
        for list in &lists {
            series_count = series_count.saturating_add(self.list_len(*list)?);
        }
        Ok(Some(Listed { unwanted, lists, series_count }))
    }

    fn read_lists(&self, listed: &Listed) -> Result<Vec<SeriesRef>, IndexError> {
        let mut all = Vec::new();
        for list in &listed.lists {
            self.append_list(*list, &mut all)?;
        }
        sort_union(&mut all);
        Ok(all)
    }

    /// Applies a matcher by looking at all values of its label, or at the labels of all candidates.
    fn scan(&self, matcher: &Matcher, candidates: &mut Candidates) -> Result<(), IndexError> {
        let name = matcher.name();
        let accepts_empty = matcher.matches_empty();
        if let Some(series) = &mut candidates.0
            && series.len() <= self.label_value_count(name) / VALUES_PER_SERIES
        {
            return self.keep_matching(matcher, series);
        }
        // Only the lists that change something are read.
        let mut listed = Vec::new();
        if !name.is_empty() {
            listed = self.postings_where(name, |value| matcher.matches(value) != accepts_empty)?;
        }
        if accepts_empty {
            candidates.subtract(self, &listed)
        } else {
            candidates.narrow(listed);
            Ok(())
        }
    }

    fn keep_matching(
        &self,
        matcher: &Matcher,
        series: &mut Vec<SeriesRef>,
    ) -> Result<(), IndexError> {
        let mut kept = Vec::with_capacity(series.len());
        for candidate in series.iter() {
            if matcher.matches(self.series_labels(*candidate)?.get(matcher.name())) {
                kept.push(*candidate);
            }
        }
        *series = kept;
        Ok(())
    }
}

impl Candidates {
    fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }

    fn narrow(&mut self, wanted: Vec<SeriesRef>) {
        self.0 = Some(match self.0.take() {
            None => wanted,
            Some(series) => intersection(&series, &wanted),
        });
    }

    fn subtract(&mut self, index: &IndexReader, unwanted: &[SeriesRef]) -> Result<(), IndexError> {
        let series = self.take_or_all(index)?;
        self.0 = Some(difference(&series, unwanted));
        Ok(())
    }

    fn or_all(mut self, index: &IndexReader) -> Result<Vec<SeriesRef>, IndexError> {
        self.take_or_all(index)
    }

    fn take_or_all(&mut self, index: &IndexReader) -> Result<Vec<SeriesRef>, IndexError> {
        match self.0.take() {
            Some(series) => Ok(series),
            None => index.all_postings(),
        }
    }
}
