//! The labels of a row from another protocol.

/// Labels by ascending name, without repeated names and empty values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSet {
    pairs: Vec<(String, String)>,
}

impl LabelSet {
    /// Creates a set from pairs, as if [`LabelSet::set`] was called for each pair in order.
    pub fn of(mut pairs: Vec<(String, String)>) -> LabelSet {
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            // `dedup_by` keeps the first of equal names, but the later value must win.
            if is_same {
                std::mem::swap(later, kept);
            }
            is_same
        });
        // Empty values are removed last, because they may replace other values.
        pairs.retain(|(_, value)| !value.is_empty());
        LabelSet { pairs }
    }

    /// Sets a label; if it exists, appends a semicolon and the value to its value.
    pub fn join(&mut self, name: &str, value: String) {
        match self.place(name) {
            Ok(at) => {
                self.pairs[at].1.push(';');
                self.pairs[at].1.push_str(&value);
            }
            Err(_) => self.set(name, value),
        }
    }

    /// Returns the value of a label; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        match self.place(name) {
            Ok(at) => self.pairs.get(at).map_or("", |(_, value)| value),
            Err(_) => "",
        }
    }

    /// Sets a label. An empty value removes the label.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        match (self.place(name), value.is_empty()) {
            (Ok(at), true) => drop(self.pairs.remove(at)),
            (Ok(at), false) => self.pairs[at].1 = value,
            (Err(_), true) => {}
            (Err(at), false) => self.pairs.insert(at, (name.to_owned(), value)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.pairs.binary_search_by(|(other, _)| other.as_str().cmp(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_in_order_and_are_never_empty() {
        let mut labels = LabelSet::default();
        for (name, value) in [("b", "1"), ("a", "2"), ("c", ""), ("b", "3"), ("d", "4"), ("d", "")]
        {
            labels.set(name, value);
        }
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!((labels.get("b"), labels.get("c")), ("3", ""));
        labels.join("b", "4".into());
        labels.join("c", "5".into());
        labels.join("d", String::new());
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3;4"), ("c", "5")]);
        let pairs = [("b", "1"), ("a", "2"), ("c", "3"), ("b", "4"), ("c", ""), ("b", "5")];
        let set = LabelSet::of(pairs.map(|(name, value)| (name.into(), value.into())).to_vec());
        assert_eq!(set.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "5")]);
    }
}
