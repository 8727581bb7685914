//! Label names and values of blocks, and their merge.

use super::Lookup;
use crate::block::{BlockReader, SeriesRef};
use crate::error::Result;
use crate::index::{IndexError, LabelIndex, VALUES_PER_SERIES, intersects, select_any};
use crate::model::{MatcherSets, Verdict};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Bytes of values taken from a block's table at a time.
const PAGE_BYTES: usize = 16 * 1024;

/// Approximate memory of a name or value besides its text, in bytes.
const STRING_OVERHEAD_BYTES: usize = 16;

/// Collects strings until they fill `bytes_max`: at least one, none at the end.
pub fn page_of_strings(
    bytes_max: u32,
    mut next: impl FnMut() -> Result<Option<String>>,
) -> Result<Vec<String>> {
    let (mut page, mut bytes) = (Vec::new(), 0);
    while bytes < bytes_max.max(1) as usize
        && let Some(text) = next()?
    {
        bytes += text.len() + STRING_OVERHEAD_BYTES;
        page.push(text);
    }
    Ok(page)
}

/// A source of label names or values, ascending and without duplicates.
pub trait StringSource {
    /// Returns the next string; `None` at the end.
    fn next_string(&mut self) -> Result<Option<String>>;
}

/// A position in an answer of label names or values.
pub struct StringCursor {
    sources: Vec<Box<dyn StringSource>>,
    pending: BinaryHeap<Reverse<(String, usize)>>,
    limit: u64,
    given: u64,
    is_truncated: bool,
}

impl StringCursor {
    /// Merges sources up to a limit; 0 means no limit.
    pub fn new(sources: Vec<Box<dyn StringSource>>, limit: u64) -> Result<StringCursor> {
        let (pending, count) = (BinaryHeap::new(), sources.len());
        let mut cursor = StringCursor { sources, pending, limit, given: 0, is_truncated: false };
        for number in 0..count {
            cursor.advance(number)?;
        }
        Ok(cursor)
    }

    /// Returns strings until they fill `bytes_max`: at least one, none at the end.
    pub fn next(&mut self, bytes_max: u32) -> Result<Vec<String>> {
        page_of_strings(bytes_max, || self.next_string())
    }

    /// Returns whether the limit left out strings; known at the end.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    fn next_string(&mut self) -> Result<Option<String>> {
        if self.limit > 0 && self.given >= self.limit {
            // The flag stays set, although later calls find no pending string.
            self.is_truncated |= !self.pending.is_empty();
            self.pending.clear();
        }
        let Some(Reverse((text, number))) = self.pending.pop() else { return Ok(None) };
        self.advance(number)?;
        // Other sources may have the same string.
        while let Some(Reverse((other, _))) = self.pending.peek()
            && *other == text
            && let Some(Reverse((_, number))) = self.pending.pop()
        {
            self.advance(number)?;
        }
        self.given += 1;
        Ok(Some(text))
    }

    fn advance(&mut self, number: usize) -> Result<()> {
        if let Some(source) = self.sources.get_mut(number)
            && let Some(text) = source.next_string()?
        {
            self.pending.push(Reverse((text, number)));
        }
        Ok(())
    }
}

/// The label names of a block's series.
pub struct BlockNames(std::vec::IntoIter<String>);

impl BlockNames {
    /// Selects the names of the series that any of the sets selects.
    pub fn select(block: &BlockReader, sets: &MatcherSets) -> Result<BlockNames> {
        let index = block.index();
        let names: Vec<String> = match sets.select_all() {
            true => index.label_names().map(str::to_owned).collect(),
            false => select_any(index, sets.sets()).and_then(|all| index.names_of(&all))?,
        };
        Ok(BlockNames(names.into_iter()))
    }
}

impl StringSource for BlockNames {
    fn next_string(&mut self) -> Result<Option<String>> {
        Ok(self.0.next())
    }
}

/// Reading this many series never costs much, while lists of a few values may be long.
const FEW_SERIES: usize = if cfg!(test) { 2 } else { 64 };

/// The values that a block's series have for a label name.
pub struct BlockValues {
    block: Rc<BlockReader>,
    name: String,
    sets: Rc<MatcherSets>,
    rest: Rest,
    page: std::vec::IntoIter<String>,
}

enum Rest {
    /// Values of few series, as symbol numbers.
    Numbers(std::vec::IntoIter<u32>),
    /// Values in the table of all values from `after` on, to be tested against `series`.
    Table {
        series: Vec<SeriesRef>,
        after: Option<String>,
    },
    End,
}

impl BlockValues {
    /// Selects the values of the series that any of the sets selects.
    pub fn select(
        block: Rc<BlockReader>,
        name: &str,
        sets: Rc<MatcherSets>,
    ) -> Result<BlockValues> {
        let index = block.index();
        let value_count = index.label_value_count(name);
        let rest = if name.is_empty() || value_count == 0 {
            Rest::End
        } else {
            // If every series is wanted, none has to be read.
            let beyond = if sets.select_all() { Vec::new() } else { sets.beyond(name) };
            let series = select_any(index, &beyond)?;
            // A set that has only matchers of this label selects values whatever series have them.
            let all_look_beyond = beyond.len() == sets.sets().len();
            let by_series_max = (value_count / VALUES_PER_SERIES).max(FEW_SERIES);
            if all_look_beyond && series.len() <= by_series_max {
                Rest::Numbers(index.values_of(&series, name)?.into_iter())
            } else {
                Rest::Table { series, after: None }
            }
        };
        let page = Vec::new().into_iter();
        Ok(BlockValues { block, name: name.to_owned(), sets, rest, page })
    }

    fn next_page(&mut self) -> Result<()> {
        let Rest::Table { series, after } = &mut self.rest else { return Ok(()) };
        let index = self.block.index();
        let (first, last) = self.sets.value_bounds(&self.name);
        let start = after.as_deref().unwrap_or(first).to_owned();
        let mut page = Vec::new();
        let mut bytes = 0;
        let mut stopped_at = None;
        let walk = |value: &str, list| -> std::result::Result<ControlFlow<()>, IndexError> {
            // The walk begins with the last value of the previous page.
            if after.as_deref() == Some(value) {
                return Ok(ControlFlow::Continue(()));
            }
            if last.is_some_and(|last| value > last && !value.starts_with(last)) {
                return Ok(ControlFlow::Break(()));
            }
            let is_selected = match self.sets.verdict(&self.name, value) {
                Verdict::Selected => true,
                Verdict::Open => intersects(&index.list(list)?, series),
                Verdict::Refused => false,
            };
            if is_selected {
                bytes += value.len() + STRING_OVERHEAD_BYTES;
                page.push(value.to_owned());
            }
            if bytes < PAGE_BYTES {
                return Ok(ControlFlow::Continue(()));
            }
            stopped_at = Some(value.to_owned());
            Ok(ControlFlow::Break(()))
        };
        index.walk_values_from(&self.name, &start, walk)?;
        match stopped_at {
            Some(value) => *after = Some(value),
            None => self.rest = Rest::End,
        }
        self.page = page.into_iter();
        Ok(())
    }
}

impl StringSource for BlockValues {
    fn next_string(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(text) = self.page.next() {
                return Ok(Some(text));
            }
            match &mut self.rest {
                Rest::End => return Ok(None),
                Rest::Numbers(numbers) => {
                    let Some(number) = numbers.next() else { return Ok(None) };
                    return Ok(Some(self.block.index().symbol_text(number)?));
                }
                Rest::Table { .. } => self.next_page()?,
            }
        }
    }
}

impl Lookup {
    /// Compiles the sets of matchers.
    pub fn sets(&self) -> Result<MatcherSets> {
        Ok(MatcherSets::new(&self.matcher_sets)?)
    }
}
