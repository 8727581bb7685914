//! Positions of delivery: the first row of each queue and source that is not delivered.

use super::gap::StorePlace;
use super::row::{Row, RowPosition, Source};
use super::shard::Shard;
use super::{Forwarder, ShardPosition};
use std::collections::VecDeque;

/// Position of the first row of a record, or of a series of the store, and that row's number.
#[derive(Clone, Debug)]
pub(super) struct Mark<P> {
    pub first_number: u64,
    pub place: P,
}

impl Forwarder {
    /// Returns the position of delivery of each queue.
    pub fn positions(&mut self) -> Vec<ShardPosition> {
        self.prune_marks();
        let log_place = |shard: &Shard, which: usize, source: Source| match shard.first_of(source) {
            None => self.tails[which].max(shard.resume[which]),
            Some(row) => {
                let marks = &self.log_marks[which];
                // Marks ascend by number: the last mark up to the row belongs to the row's record.
                let after = marks.partition_point(|mark| mark.first_number <= row.number());
                match marks.get(after.wrapping_sub(1)) {
                    Some(mark) => {
                        let row = row.number() - mark.first_number;
                        RowPosition { row: u32::try_from(row).unwrap_or(u32::MAX), ..mark.place }
                    }
                    None => shard.resume[which],
                }
            }
        };
        let store_place = |shard: &Shard| match shard.first_of(Source::Store) {
            None => self.store_tail.clone().max(shard.resume_store.clone()),
            Some(row) => {
                let marks = &self.store_marks;
                let after = marks.partition_point(|mark| mark.first_number <= row.number());
                match marks.get(after.wrapping_sub(1)) {
                    // Rows of the store are found by time, as their numbers differ between reads.
                    Some(mark) => StorePlace { time_ms: row.time_ms, ..mark.place.clone() },
                    None => shard.resume_store.clone(),
                }
            }
        };
        let position = |shard: &Shard| ShardPosition {
            in_order: log_place(shard, 0, Source::InOrder),
            out_of_order: log_place(shard, 1, Source::OutOfOrder),
            store: store_place(shard),
        };
        self.shards.iter().map(position).collect()
    }

    pub(super) fn prune_marks(&mut self) {
        for (which, source) in [(0, Source::InOrder), (1, Source::OutOfOrder)] {
            let first = first_number(&self.shards, source);
            let marks = &mut self.log_marks[which];
            prune(marks, first);
        }
        let first = first_number(&self.shards, Source::Store);
        prune(&mut self.store_marks, first);
    }
}

fn first_number(shards: &[Shard], source: Source) -> Option<u64> {
    shards.iter().filter_map(|shard| shard.first_of(source)).map(Row::number).min()
}

/// Drops the marks before the mark of the row `first`; all marks if there is no row.
fn prune<P>(marks: &mut VecDeque<Mark<P>>, first: Option<u64>) {
    let Some(first) = first else { return marks.clear() };
    let after = marks.partition_point(|mark| mark.first_number <= first);
    marks.drain(..after.saturating_sub(1));
}
