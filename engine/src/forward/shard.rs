//! One queue of rows, in the order in which they are sent. A series always uses the same queue.

use super::gap::StorePlace;
use super::row::{Row, RowPosition, SOURCES, Source};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub struct Shard {
    pub queue: VecDeque<Row>,
    /// Number of rows at the front that are in a request which is not done.
    pub in_flight: usize,
    /// Number of rows that have left the queue, which is the ordinal of its first row.
    pub left: u64,
    /// Number of queued rows of each source.
    pub counts: [usize; SOURCES],
    /// Positions in the logs before which an earlier run has delivered all rows.
    pub resume: [RowPosition; 2],
    /// Position in the store before which an earlier run has delivered all rows.
    pub resume_store: StorePlace,
}

impl Shard {
    pub fn push(&mut self, row: Row) {
        self.counts[row.source() as usize] += 1;
        self.queue.push_back(row);
    }

    /// Returns the queued row with this ordinal if the row may still be changed.
    pub fn find(&mut self, ordinal: u64) -> Option<&mut Row> {
        let at = usize::try_from(ordinal.checked_sub(self.left)?).ok()?;
        // A row in flight may be in a request already, and a retry must send it unchanged.
        if at < self.in_flight { None } else { self.queue.get_mut(at) }
    }

    pub fn next_ordinal(&self) -> u64 {
        self.left + self.queue.len() as u64
    }

    pub fn pop(&mut self) -> Option<Row> {
        let row = self.queue.pop_front()?;
        self.left += 1;
        self.counts[row.source() as usize] -= 1;
        Some(row)
    }

    pub fn first_of(&self, source: Source) -> Option<&Row> {
        // Most queues hold no rows of the store; the count saves a search of the whole queue.
        if self.counts[source as usize] == 0 {
            return None;
        }
        self.queue.iter().find(|row| row.source() == source)
    }
}
