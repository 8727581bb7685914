//! One queue: the rows of the series that its number selects, in the order in which they are sent.

use super::gap::StorePlace;
use super::row::{Place, Row, SOURCES, Source};
use std::collections::VecDeque;

/// A queue.
#[derive(Debug, Default)]
pub struct Shard {
    pub queue: VecDeque<Row>,
    /// Rows at the front that are on their way.
    pub in_flight: usize,
    /// Rows that left the queue since the beginning.
    pub left: u64,
    /// Queued rows by source.
    pub counts: [usize; SOURCES],
    /// Rows of the logs before these are delivered, by the positions of an earlier run.
    pub resume: [Place; 2],
    /// The same of the store.
    pub resume_store: StorePlace,
}

impl Shard {
    pub fn push(&mut self, row: Row) {
        self.counts[row.source() as usize] += 1;
        self.queue.push_back(row);
    }

    /// Where in the queue a row with this ordinal is, if it may still be changed.
    pub fn find(&mut self, ordinal: u64) -> Option<&mut Row> {
        let at = usize::try_from(ordinal.checked_sub(self.left)?).ok()?;
        if at < self.in_flight { None } else { self.queue.get_mut(at) }
    }

    /// The ordinal of the row that is pushed next.
    pub fn next_ordinal(&self) -> u64 {
        self.left + self.queue.len() as u64
    }

    pub fn pop(&mut self) -> Option<Row> {
        let row = self.queue.pop_front()?;
        self.left += 1;
        self.counts[row.source() as usize] -= 1;
        Some(row)
    }

    /// The oldest queued row of a source.
    pub fn first_of(&self, source: Source) -> Option<&Row> {
        if self.counts[source as usize] == 0 {
            return None;
        }
        self.queue.iter().find(|row| row.source() == source)
    }
}
