//! Which metrics and labels the head's series are made of: where its memory goes.

use super::Head;
use crate::model::LABEL_NAME;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What the head consists of. Lists begin with the largest number, equal ones with the first name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cardinality {
    /// Distinct pairs of a label's name and value.
    pub label_pairs: u64,
    /// Metric names and how many series they have.
    pub metrics_by_series: Vec<(String, u64)>,
    /// Label names and how many series have them.
    pub names_by_series: Vec<(String, u64)>,
    /// Label names and how many values they have.
    pub names_by_values: Vec<(String, u64)>,
    /// Label names and how many bytes their values take, each counted once.
    pub names_by_value_bytes: Vec<(String, u64)>,
    /// Labels, as `name=value`, and how many series have them.
    pub pairs_by_series: Vec<(String, u64)>,
}

/// Numbers of what is named by one or two symbols, of which the largest are kept.
struct Top<N> {
    heap: BinaryHeap<Reverse<(u64, Reverse<N>)>>,
    items_max: usize,
}

impl<N: Ord> Top<N> {
    fn new(items_max: usize) -> Top<N> {
        Top { heap: BinaryHeap::new(), items_max }
    }

    fn add(&mut self, number: u64, name: N) {
        self.heap.push(Reverse((number, Reverse(name))));
        if self.heap.len() > self.items_max {
            self.heap.pop();
        }
    }

    fn named(self, name: impl Fn(N) -> String) -> Vec<(String, u64)> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|Reverse((number, Reverse(of)))| (name(of), number)).collect()
    }
}

impl Head {
    /// What the head consists of, in lists of at most so many items. Walks over the index once.
    pub fn cardinality(&self, items_max: usize) -> Cardinality {
        let text = |id| self.symbols.text(id);
        let (mut metrics, mut pairs) = (Top::new(items_max), Top::new(items_max));
        let (mut by_series, mut by_values) = (Top::new(items_max), Top::new(items_max));
        let mut by_bytes = Top::new(items_max);
        let mut label_pairs = 0;
        for (name, values) in self.postings.labels() {
            let (mut series, mut count, mut bytes) = (0, 0, 0);
            for (value, slots) in values {
                let slots = slots as u64;
                (series, count, bytes) =
                    (series + slots, count + 1, bytes + text(value).len() as u64);
                pairs.add(slots, (text(name), text(value)));
                if text(name) == LABEL_NAME {
                    metrics.add(slots, text(value));
                }
            }
            label_pairs += count;
            by_series.add(series, text(name));
            by_values.add(count, text(name));
            by_bytes.add(bytes, text(name));
        }
        Cardinality {
            label_pairs,
            metrics_by_series: metrics.named(str::to_owned),
            names_by_series: by_series.named(str::to_owned),
            names_by_values: by_values.named(str::to_owned),
            names_by_value_bytes: by_bytes.named(str::to_owned),
            pairs_by_series: pairs.named(|(name, value)| format!("{name}={value}")),
        }
    }
}
