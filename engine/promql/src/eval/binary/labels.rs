//! Labels of the result of a join.

use crate::functions::Dropped;
use crate::model::{KeyLabels, Labels, drop_metadata, has_metadata};
use crate::plan::{Join, Names, dropped};
use crate::syntax::{Cardinality, Matching};

pub struct ResultLabels {
    drops: bool,
    by: KeyLabels,
    is_one_to_one: bool,
    /// Whether `ignoring` lists `__name__`; one-to-one joins then drop the name.
    ignores_name: bool,
    include: Vec<String>,
    /// Whether flowing series have different keys if they differ in more than their names.
    keys_differ: bool,
    names: Names,
}

impl ResultLabels {
    pub fn new(plan: &Join, by: KeyLabels, is_delayed: bool) -> ResultLabels {
        let Matching { cardinality, is_on, labels, include, .. } = &plan.matching;
        ResultLabels {
            drops: match dropped(plan.op, plan.returns_bool) {
                Dropped::Nothing => false,
                // Arithmetic makes a new metric, so its name is dropped even with delayed removal.
                _ => !is_delayed || !plan.op.is_comparison(),
            },
            by,
            is_one_to_one: *cardinality == Cardinality::OneToOne,
            ignores_name: !is_on && labels.iter().any(|label| label == "__name__"),
            include: include.clone(),
            keys_differ: !is_on && labels.is_empty(),
            names: plan.names,
        }
    }

    /// Returns whether a one-to-one join has result labels that depend only on the key.
    pub fn are_of_key(&self) -> bool {
        let has_no_name = self.drops || self.names != Names::Any || self.by.is_with();
        let is_by_name = self.by.is_with() && self.by.has("__name__");
        self.is_one_to_one && has_no_name && !is_by_name
    }

    pub fn of(&self, flowing: &Labels, held: &Labels) -> Labels {
        let mut labels = flowing.clone();
        if self.drops {
            drop_metadata(&mut labels);
        }
        if self.is_one_to_one {
            let is_with = self.by.is_with();
            labels.retain(|name, _| match is_with {
                true => self.by.has(name),
                // After a filter, upstream keeps the name unless `ignoring` lists `__name__`.
                false if name == "__name__" => !self.ignores_name,
                false => self.by.has(name),
            });
        }
        for name in &self.include {
            // An empty value removes the label: `group_left(x)` also copies the absence of `x`.
            labels.set(name, held.get(name));
        }
        labels
    }

    /// Returns whether no other flowing series can have the same result labels or one-to-one key.
    pub fn is_distinct(&self, flowing: &Labels) -> bool {
        let are_unique = self.names != Names::Any && !has_metadata(flowing);
        let keeps = match self.is_one_to_one {
            true => self.keys_differ,
            // Copied labels may overwrite a label that distinguished two series.
            false => self.include.iter().all(|name| flowing.get(name).is_empty()),
        };
        are_unique && keeps
    }
}
