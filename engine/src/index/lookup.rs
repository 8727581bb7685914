//! A block's index as the source of selections and label lookups.

use super::{IndexError, IndexReader, LabelIndex, SeriesRef, select};
use crate::model::Matcher;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

impl LabelIndex for IndexReader {
    type Series = SeriesRef;
    /// Offset of the list in the file.
    type List = u64;
    type Error = IndexError;

    /// A list is read at once, but a series only together with the bytes around it.
    const REFS_PER_SERIES: usize = 256;
    const REFS_PER_TEST: usize = 512;

    fn value_count(&self, name: &str, prefix: &str) -> usize {
        self.postings_table.value_count_about(name, prefix)
    }

    fn find_lists(&self, name: &str, values: &[String]) -> Result<Vec<u64>, IndexError> {
        let mut offsets = Vec::new();
        self.postings_table.find(name, values, |offset| offsets.push(offset))?;
        Ok(offsets)
    }

    fn walk_values(
        &self,
        name: &str,
        prefix: &str,
        mut visit: impl FnMut(&str, u64) -> Result<ControlFlow<()>, IndexError>,
    ) -> Result<(), IndexError> {
        // Values ascend, so the first value without the prefix ends the walk.
        self.postings_table.walk(name, prefix, |value, list| match value.starts_with(prefix) {
            true => visit(value, list),
            false => Ok(ControlFlow::Break(())),
        })
    }

    fn list_len(&self, list: u64) -> Result<usize, IndexError> {
        IndexReader::list_len(self, list)
    }

    fn list(&self, list: u64) -> Result<Cow<'_, [SeriesRef]>, IndexError> {
        let mut all = Vec::new();
        self.append_list(list, &mut all)?;
        Ok(Cow::Owned(all))
    }

    fn all(&self) -> Result<Cow<'_, [SeriesRef]>, IndexError> {
        Ok(Cow::Owned(self.all_postings()?))
    }

    fn is_ordered_by(&self, name: &str) -> bool {
        // Series ascend by their labels, and labels by name, so the smallest name decides first.
        let first = self.label_names().find(|name| !name.is_empty());
        first == Some(name) && self.series_ascend()
    }

    fn has_value(
        &self,
        series: SeriesRef,
        name: &str,
        test: impl Fn(&str) -> bool,
    ) -> Result<bool, IndexError> {
        self.entry(series, |numbers, _, symbols| {
            for (name_number, value_number) in numbers {
                // The value is decoded only if the name is the wanted one.
                symbols.load(*name_number)?;
                if symbols.text(*name_number) == name {
                    symbols.load(*value_number)?;
                    return Ok(test(symbols.text(*value_number)));
                }
            }
            Ok(test(""))
        })
    }
}

impl IndexReader {
    /// Returns the series that all matchers select, in label order.
    pub fn select(&self, matchers: &[Matcher]) -> Result<Vec<SeriesRef>, IndexError> {
        select(self, matchers)
    }

    /// Calls `visit` with each value of a label name from `start` on, ascending, and the offset of
    /// its list, until `visit` breaks.
    pub(crate) fn walk_values_from(
        &self,
        name: &str,
        start: &str,
        visit: impl FnMut(&str, u64) -> Result<ControlFlow<()>, IndexError>,
    ) -> Result<(), IndexError> {
        self.postings_table.walk(name, start, visit)
    }

    /// Returns the label names that these series have, ascending.
    pub fn names_of(&self, series: &[SeriesRef]) -> Result<Vec<String>, IndexError> {
        let count_max = self.label_names().count();
        let mut found = BTreeSet::new();
        for one in series {
            self.entry(*one, |numbers, _, _| {
                found.extend(numbers.iter().map(|(name, _)| *name));
                Ok(())
            })?;
            // Once every name was found, the other series add none.
            if found.len() >= count_max {
                break;
            }
        }
        found.iter().map(|number| self.symbol_text(*number)).collect()
    }

    /// Returns the values of a label name in these series, as symbol numbers, ascending.
    pub fn values_of(&self, series: &[SeriesRef], name: &str) -> Result<Vec<u32>, IndexError> {
        let mut name_number = None;
        let mut found = Vec::new();
        for one in series {
            self.entry(*one, |numbers, _, symbols| {
                for (number, value) in numbers {
                    // Once the name's number is known, numbers are compared instead of texts.
                    if name_number.is_none() {
                        symbols.load(*number)?;
                        name_number = (symbols.text(*number) == name).then_some(*number);
                    }
                    if name_number == Some(*number) {
                        found.push(*value);
                        break;
                    }
                }
                Ok(())
            })?;
        }
        super::postings::sort_union(&mut found);
        Ok(found)
    }
}
