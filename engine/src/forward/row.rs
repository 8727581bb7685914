//! A row that waits to be sent, and where it comes from.

use crate::model::Value;

/// Where rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Source {
    /// The in-order log.
    InOrder = 0,
    /// The out-of-order log.
    OutOfOrder = 1,
    /// Blocks and head.
    Store = 2,
}

/// How many sources there are.
pub const SOURCES: usize = 3;

/// A row's place in a log. They are ordered as the log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The segment's number.
    pub segment: u32,
    /// Whole records of the segment before this one.
    pub record: u32,
    /// Rows of the record before this one.
    pub row: u32,
}

/// A row of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Number among the rows of its source; the two highest bits say which source.
    tagged: u64,
    pub time_ms: i64,
    pub value: f64,
    pub series: u32,
    /// Place of what a number cannot say, plus one; 0 is nothing.
    pub extra: u32,
}

/// Exemplars of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowExemplar {
    pub labels: Vec<(Box<str>, Box<str>)>,
    pub value: f64,
    pub timestamp_ms: i64,
}

/// What few rows have.
#[derive(Debug, Default)]
pub struct Extra {
    /// A histogram, in place of the number.
    pub histogram: Option<Value>,
    pub exemplars: Vec<RowExemplar>,
}

/// The extras of all queued rows.
#[derive(Debug, Default)]
pub struct Extras {
    places: Vec<Option<Box<Extra>>>,
    free: Vec<u32>,
}

const SOURCE_SHIFT: u32 = 62;

impl Row {
    pub fn new(source: Source, number: u64, time_ms: i64, series: u32) -> Row {
        let tagged = (source as u64) << SOURCE_SHIFT | number;
        Row { tagged, time_ms, value: 0.0, series, extra: 0 }
    }

    pub fn source(&self) -> Source {
        match self.tagged >> SOURCE_SHIFT {
            0 => Source::InOrder,
            1 => Source::OutOfOrder,
            _ => Source::Store,
        }
    }

    /// Number among the rows of its source.
    pub fn number(&self) -> u64 {
        self.tagged & ((1 << SOURCE_SHIFT) - 1)
    }
}

impl Extras {
    /// The extra of a row, made if it has none.
    pub fn of(&mut self, row: &mut Row) -> Option<&mut Extra> {
        if row.extra == 0 {
            let at = self.free.pop().unwrap_or_else(|| {
                self.places.push(None);
                self.places.len() as u32 - 1
            });
            *self.places.get_mut(at as usize)? = Some(Box::default());
            row.extra = at + 1;
        }
        self.places.get_mut(row.extra as usize - 1)?.as_deref_mut()
    }

    pub fn get(&self, row: &Row) -> Option<&Extra> {
        self.places.get((row.extra as usize).checked_sub(1)?)?.as_deref()
    }

    pub fn free(&mut self, row: &Row) {
        if let Some(at) = row.extra.checked_sub(1)
            && let Some(place) = self.places.get_mut(at as usize)
            && place.take().is_some()
        {
            self.free.push(at);
        }
    }
}
