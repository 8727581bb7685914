//! Labels of what a join gives.

use crate::functions::Dropped;
use crate::model::{KeyLabels, Labels, drop_metadata, has_metadata};
use crate::plan::{Join, Names, dropped};
use crate::syntax::{Cardinality, Matching};

/// How labels of a join are made.
pub struct ResultLabels {
    drops: bool,
    by: KeyLabels,
    is_one_to_one: bool,
    /// Whether names are among the labels that may differ, which joins of one to one take out.
    ignores_name: bool,
    include: Vec<String>,
    /// Whether flowing series with other labels have other keys, once names are out.
    keys_differ: bool,
    names: Names,
}

impl ResultLabels {
    /// Those of a plan.
    pub fn new(plan: &Join, by: KeyLabels, is_delayed: bool) -> ResultLabels {
        let Matching { cardinality, is_on, labels, include, .. } = &plan.matching;
        ResultLabels {
            drops: match dropped(plan.op, plan.returns_bool) {
                Dropped::Nothing => false,
                // Arithmetic makes another metric; that is not delayed.
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

    /// Whether a join to one gives labels that depend on nothing but the key.
    pub fn are_of_key(&self) -> bool {
        let has_no_name = self.drops || self.names != Names::Any || self.by.is_with();
        let is_by_name = self.by.is_with() && self.by.has("__name__");
        self.is_one_to_one && has_no_name && !is_by_name
    }

    /// The labels for a flowing series and the one that it is joined with.
    pub fn of(&self, flowing: &Labels, held: &Labels) -> Labels {
        let mut labels = flowing.clone();
        if self.drops {
            drop_metadata(&mut labels);
        }
        if self.is_one_to_one {
            let is_with = self.by.is_with();
            labels.retain(|name, _| match is_with {
                true => self.by.has(name),
                false if name == "__name__" => !self.ignores_name,
                false => self.by.has(name),
            });
        }
        for name in &self.include {
            labels.set(name, held.get(name));
        }
        labels
    }

    /// Whether no other flowing series can give the same labels, or have the same key in a join to
    /// one.
    pub fn is_distinct(&self, flowing: &Labels) -> bool {
        let are_unique = self.names != Names::Any && !has_metadata(flowing);
        let keeps = match self.is_one_to_one {
            true => self.keys_differ,
            false => self.include.iter().all(|name| flowing.get(name).is_empty()),
        };
        are_unique && keeps
    }
}
