//! The order in which a cursor returns its series.

use crate::model::{Labels, OrderGroup};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// Indices of series that lie in the order of their own labels, in the order of the labels that
/// they are given.
#[derive(Default)]
pub struct Sequence {
    given: usize,
    /// Where external labels may change the order.
    groups: Option<Groups>,
}

/// Series that keep their order among each other.
#[derive(Default)]
struct Groups {
    members: BTreeMap<OrderGroup, Vec<u32>>,
    /// The next series of each group, the first of all on top. Of two that become the same, the
    /// one that stores a label has the word before the one that is only given it.
    next: BinaryHeap<Reverse<(Labels, Reverse<OrderGroup>, usize)>>,
}

impl Sequence {
    /// Of series that are given these labels.
    pub fn new(external: &Labels) -> Sequence {
        let groups = (!external.is_empty()).then(Groups::default);
        Sequence { given: 0, groups }
    }

    /// Adds the next series by its own labels.
    pub fn add<'a, L: Iterator<Item = (&'a str, &'a str)>>(
        &mut self,
        at: u32,
        external: &Labels,
        labels: impl FnOnce() -> L,
    ) {
        if let Some(groups) = &mut self.groups {
            let group = OrderGroup::of(labels(), external);
            groups.members.entry(group).or_default().push(at);
        }
    }

    /// Starts over.
    pub fn rewind(&mut self) {
        self.given = 0;
        if let Some(groups) = &mut self.groups {
            groups.next.clear();
        }
    }

    /// How many were given.
    pub fn given(&self) -> usize {
        self.given
    }

    /// Passes over the next ones, at most so many, where the order is that of the indices.
    pub fn skip(&mut self, count: usize, skipped_max: usize) -> Range<usize> {
        let from = self.given.min(count);
        self.given = count.min(from.saturating_add(skipped_max));
        from..self.given
    }

    /// The next of so many series; `labels` returns those that a series has in the end.
    pub fn next(&mut self, count: usize, labels: impl Fn(u32) -> Labels) -> Option<usize> {
        if self.given >= count {
            return None;
        }
        let Some(Groups { members, next }) = &mut self.groups else {
            self.given += 1;
            return Some(self.given - 1);
        };
        if self.given == 0 {
            for (group, members) in members.iter() {
                let first = members.first().map(|at| labels(*at));
                next.extend(first.map(|labels| Reverse((labels, Reverse(*group), 0))));
            }
        }
        let Reverse((_, Reverse(group), member)) = next.pop()?;
        let members = members.get(&group)?;
        if let Some(at) = members.get(member + 1) {
            next.push(Reverse((labels(*at), Reverse(group), member + 1)));
        }
        self.given += 1;
        members.get(member).map(|at| *at as usize)
    }
}
