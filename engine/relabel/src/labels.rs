//! A label set that rules change.

use std::collections::BTreeMap;

/// Labels in the order of upstream's `labels.Builder`: original labels by name, then changed labels
/// in the order in which they were first set. The order decides which label `labelmap` keeps if two
/// labels get the same name.
pub struct Labels {
    pairs: Vec<(String, String)>,
    /// Index of the first label that was set.
    set_from: usize,
}

impl Labels {
    pub fn of(labels: BTreeMap<String, String>) -> Labels {
        let pairs: Vec<_> = labels.into_iter().collect();
        Labels { set_from: pairs.len(), pairs }
    }

    pub fn into_map(self) -> BTreeMap<String, String> {
        self.pairs.into_iter().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the value of a label; empty if the label is missing.
    pub fn get(&self, name: &str) -> &str {
        self.pairs.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Sets a label. An empty value removes the label; an empty name is ignored.
    pub fn set(&mut self, name: String, value: String) {
        let place = self.pairs.iter().position(|(other, _)| *other == name);
        match place {
            _ if name.is_empty() => {}
            Some(place) if value.is_empty() => self.remove(place),
            Some(place) if place >= self.set_from => self.pairs[place].1 = value,
            // An original label moves to the changed labels, as in upstream's builder.
            Some(place) => {
                self.remove(place);
                self.pairs.push((name, value));
            }
            None if value.is_empty() => {}
            None => self.pairs.push((name, value)),
        }
    }

    /// Keeps the labels whose names pass the test.
    pub fn retain(&mut self, mut keeps: impl FnMut(&str) -> bool) {
        let mut place = 0;
        while let Some((name, _)) = self.pairs.get(place) {
            if keeps(name) {
                place += 1;
            } else {
                self.remove(place);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        self.pairs.remove(place);
        if place < self.set_from {
            self.set_from -= 1;
        }
    }
}
