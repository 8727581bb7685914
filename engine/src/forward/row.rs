//! A row that waits to be sent, and its origin.

use crate::model::Value;

/// Origin of a forwarded row: one of the logs, or the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Source {
    /// The in-order log, in the directory `wal`.
    InOrder = 0,
    /// The out-of-order log, in the directory `wbl`.
    OutOfOrder = 1,
    /// Blocks and head, from which gaps are filled.
    Store = 2,
}

pub const SOURCES: usize = 3;

/// Position of a row in a log. Positions compare in the order of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowPosition {
    /// Number of the segment in its log.
    pub segment: u32,
    /// Number of whole records before this one in the segment.
    pub record: u32,
    /// Number of rows before this one in the record.
    pub row: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Number among the rows of its source; the two highest bits hold the source.
    tagged: u64,
    pub time_ms: i64,
    pub value: f64,
    pub series: u32,
    /// Index of the row's [`Extra`] plus one; 0 if it has none.
    pub extra: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RowExemplar {
    pub labels: Vec<(Box<str>, Box<str>)>,
    pub value: f64,
    pub timestamp_ms: i64,
}

/// Parts that few rows have, stored apart to keep [`Row`] small.
#[derive(Debug, Default)]
pub struct Extra {
    /// A histogram, which replaces the row's float.
    pub histogram: Option<Value>,
    pub exemplars: Vec<RowExemplar>,
}

#[derive(Debug, Default)]
pub struct Extras {
    places: Vec<Option<Box<Extra>>>,
    free: Vec<u32>,
}

const SOURCE_SHIFT: u32 = 62;

impl Row {
    pub fn new(source: Source, number: u64, time_ms: i64, series: u32) -> Row {
        // At a billion rows per second, 2^62 numbers last for more than a century.
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

    pub fn number(&self) -> u64 {
        self.tagged & ((1 << SOURCE_SHIFT) - 1)
    }
}

impl Extras {
    /// Returns the extra of a row, and makes one if the row has none.
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
            // `take` returns nothing if a row is freed twice, so no place is reused twice.
            && place.take().is_some()
        {
            self.free.push(at);
        }
    }
}
