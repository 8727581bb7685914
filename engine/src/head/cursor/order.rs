//! The order in which a cursor returns its series.

use crate::model::{Labels, OrderGroup};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// Orders series by their labels with external labels added. A series is identified by its index in
/// the order without external labels.
#[derive(Default)]
pub struct Sequence {
    given: usize,
    /// Present if external labels may change the order.
    groups: Option<Groups>,
}

/// Groups of series whose order among each other is not changed by external labels.
#[derive(Default)]
struct Groups {
    members: BTreeMap<OrderGroup, Vec<u32>>,
    /// The next series of each group, the smallest on top. Of two series whose labels become equal,
    /// the series that stores a label precedes the series to which the label is added.
    next: BinaryHeap<Reverse<(Labels, Reverse<OrderGroup>, usize)>>,
}

impl Sequence {
    pub fn new(external: &Labels) -> Sequence {
        let groups = (!external.is_empty()).then(Groups::default);
        Sequence { given: 0, groups }
    }

    /// Adds the next series by its stored labels.
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

    pub fn rewind(&mut self) {
        self.given = 0;
        if let Some(groups) = &mut self.groups {
            groups.next.clear();
        }
    }

    pub fn given(&self) -> usize {
        self.given
    }

    /// Skips up to `skipped_max` series and returns their indices, if there are no external labels.
    pub fn skip(&mut self, count: usize, skipped_max: usize) -> Range<usize> {
        let from = self.given.min(count);
        self.given = count.min(from.saturating_add(skipped_max));
        from..self.given
    }

    /// Returns the index of the next of `count` series; `labels` must add the external labels.
    pub fn next(&mut self, count: usize, labels: impl Fn(u32) -> Labels) -> Option<usize> {
        if self.given >= count {
            return None;
        }
        let Some(Groups { members, next }) = &mut self.groups else {
            // Without external labels, the order is that of the indices.
            self.given += 1;
            return Some(self.given - 1);
        };
        // The heap is filled on the first call, when the members of all groups are known.
        if self.given == 0 {
            for (group, members) in members.iter() {
                let first = members.first().map(|at| labels(*at));
                next.extend(first.map(|labels| Reverse((labels, Reverse(*group), 0))));
            }
        }
        let Reverse((_, Reverse(group), member)) = next.pop()?;
        let members = members.get(&group)?;
        // Members of a group keep their order, so one candidate of each group suffices.
        if let Some(at) = members.get(member + 1) {
            next.push(Reverse((labels(*at), Reverse(group), member + 1)));
        }
        self.given += 1;
        members.get(member).map(|at| *at as usize)
    }
}
