//! How external labels, which are added to series of an answer that have no label of the same name,
//! change the order of series.
//!
//! A series whose labels end where those of another one go on comes first; with a label added at
//! that place it may come last. Two series with as many labels, the same external ones among them,
//! keep their order: where they differ first, both still have a label, and whatever was added
//! before that place was added to both. So series fall into few groups that stay sorted as they
//! are, and have only to be merged.

use super::Labels;

/// What decides whether two series keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderGroup {
    /// How many labels a series has. Of two series that become the same one, that with the larger
    /// group stores what the other one gets.
    labels: usize,
    /// Which of the external labels are among them, a bit each.
    carried: u64,
}

impl OrderGroup {
    /// Maximum number of external labels.
    pub const EXTERNAL_MAX: usize = u64::BITS as usize;

    /// The group of a series.
    pub fn of<'a>(
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        external: &Labels,
    ) -> OrderGroup {
        let mut group = OrderGroup { labels: 0, carried: 0 };
        for (name, _) in labels {
            group.labels += 1;
            if let Some(at) = external.iter().position(|(other, _)| other == name) {
                group.carried |= 1 << (at % OrderGroup::EXTERNAL_MAX);
            }
        }
        group
    }

    /// The group of a series of which it is known that it carries no external label.
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
