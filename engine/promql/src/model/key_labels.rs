//! Labels by which series are grouped or matched.

use super::Labels;
use tidepool_model::sort;

/// The labels of a set that make a key, as `by`, `without`, `on` and `ignoring` choose them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLabels {
    names: Vec<String>,
    is_with: bool,
}

impl KeyLabels {
    /// Chooses the labels with these names.
    pub fn with(names: &[String]) -> KeyLabels {
        KeyLabels { names: sorted(names.to_vec()), is_with: true }
    }

    /// Chooses all labels except `names` and the metric's name.
    pub fn without(names: &[String]) -> KeyLabels {
        let mut names = names.to_vec();
        names.push("__name__".to_string());
        KeyLabels { names: sorted(names), is_with: false }
    }

    /// Chooses all labels except the label with this name.
    pub fn all_but(name: &str) -> KeyLabels {
        KeyLabels { names: vec![name.to_string()], is_with: false }
    }

    /// Returns whether a label belongs to the key.
    pub fn has(&self, name: &str) -> bool {
        self.names.binary_search_by(|other| other.as_str().cmp(name)).is_ok() == self.is_with
    }

    /// Returns whether `names` are the labels of the key, not the excluded labels.
    pub fn is_with(&self) -> bool {
        self.is_with
    }

    /// Returns the names in ascending order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Removes the labels that do not belong to the key.
    pub fn keep(&self, labels: &mut Labels) {
        labels.retain(|name, _| self.has(name));
    }

    /// Returns the key of a label set.
    pub fn of(&self, labels: &Labels) -> Labels {
        labels.filtered(|name| self.has(name))
    }

    pub(crate) fn hash(&self, labels: &Labels) -> u64 {
        match self.is_with {
            true => hash_labels(self.named(labels)),
            false => hash_labels(labels.iter().filter(|(name, _)| self.has(name))),
        }
    }

    /// Returns whether `key` is the key of `labels`, without making a copy.
    pub(crate) fn is_key(&self, key: &Labels, labels: &Labels) -> bool {
        match self.is_with {
            true => key.iter().eq(self.named(labels)),
            false => key.iter().eq(labels.iter().filter(|(name, _)| self.has(name))),
        }
    }

    /// Iterates over the labels in `names`, which usually are fewer than the labels of a set.
    fn named<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.names.iter().map(|name| (name.as_str(), labels.get(name)));
        // An absent label equals an empty label, as everywhere in PromQL.
        pairs.filter(|(_, value)| !value.is_empty())
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    sort::sort(&mut names);
    names.dedup();
    names
}

/// Hashes labels. The hash is stable: `limit_ratio` chooses series by it.
pub(crate) fn hash_labels<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for (name, value) in labels {
        for text in [name, value] {
            let (chunks, rest) = text.as_bytes().as_chunks::<8>();
            for chunk in chunks {
                state = mix(state, u64::from_le_bytes(*chunk));
            }
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            // The length in the top byte separates names from values, and texts from their padding.
            state = mix(state, u64::from_le_bytes(last) ^ ((text.len() as u64) << 56));
        }
    }
    mix(state, 0)
}

fn mix(state: u64, word: u64) -> u64 {
    // Multipliers of MurmurHash3's finalizer: every bit of the word reaches the high half.
    let mut x = (state ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 32;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_differ() {
        let mut seen = std::collections::HashSet::new();
        for len in 0..40 {
            let text = "a".repeat(len);
            assert!(seen.insert(hash_labels([(text.as_str(), "")].into_iter())));
            assert!(len == 0 || seen.insert(hash_labels([("", text.as_str())].into_iter())));
        }
    }
}
