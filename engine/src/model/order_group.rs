//! Effects of external labels on the order of series. An external label is added to each series of
//! an answer that has no label of the same name.
//!
//! A series whose labels are a prefix of another's comes first; with a label added at its end it
//! may come last. Two series keep their order if they have equally many labels, and carry the same
//! external labels: at the first difference both have a label, and labels added before were added
//! to both. So the series form few groups that stay sorted, and only the groups must be merged.

use super::Labels;

/// Series with equal groups keep their order when external labels are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderGroup {
    /// Number of labels. If two series become equal, the series with the larger group has stored a
    /// label that was added to the other series.
    labels: usize,
    /// External labels that the series carries, one bit each.
    carried: u64,
}

impl OrderGroup {
    /// Maximum number of external labels.
    pub const EXTERNAL_MAX: usize = u64::BITS as usize;

    /// Returns the group of a series with these labels.
    pub fn of<'a>(
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        external: &Labels,
    ) -> OrderGroup {
        let mut group = OrderGroup { labels: 0, carried: 0 };
        for (name, _) in labels {
            group.labels += 1;
            if let Some(at) = external.iter().position(|(other, _)| other == name) {
                // The engine refuses more external labels than there are bits.
                group.carried |= 1 << (at % OrderGroup::EXTERNAL_MAX);
            }
        }
        group
    }

    /// Returns the group of a series that carries no external label.
    pub fn of_count(labels: usize) -> OrderGroup {
        OrderGroup { labels, carried: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn labels() -> impl Strategy<Value = Labels> {
        prop::collection::btree_map("[a-e]", "[xy]", 0..5).prop_map(|pairs| {
            Labels::from_sorted(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())))
        })
    }

    proptest! {
        #[test]
        fn a_group_keeps_its_order(
            all in prop::collection::btree_set(labels(), 0..60),
            external in labels(),
        ) {
            let group = |one: &Labels| OrderGroup::of(one.iter(), &external);
            let groups: BTreeSet<OrderGroup> = all.iter().map(group).collect();
            for one in groups {
                let members = all.iter().filter(|labels| group(labels) == one);
                let merged: Vec<Labels> = members.map(|one| one.with_others(&external)).collect();
                prop_assert!(merged.is_sorted_by(|a, b| a < b), "{one:?}: {merged:?}");
            }
        }

        #[test]
        fn labels_are_added_where_they_are_missing(own in labels(), external in labels()) {
            let merged = own.with_others(&external);
            let names: BTreeSet<&str> =
                own.iter().chain(external.iter()).map(|(name, _)| name).collect();
            prop_assert!(merged.iter().map(|(name, _)| name).eq(names));
            for (name, value) in merged.iter() {
                let wanted = if own.get(name).is_empty() { external.get(name) } else { own.get(name) };
                prop_assert_eq!(value, wanted);
            }
        }
    }
}
