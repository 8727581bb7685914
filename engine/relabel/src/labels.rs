//! A label set while rules change it.

use std::collections::BTreeMap;

/// Labels in the order in which upstream's `labels.Builder` goes through them, which decides what
/// `labelmap` leaves when two labels get one name: those that were there, by name, then those that
/// were set, as they were set first.
pub struct Labels {
    pairs: Vec<(String, String)>,
    /// From here on they were set.
    set_from: usize,
}

impl Labels {
    /// Takes the labels of a set.
    pub fn of(labels: BTreeMap<String, String>) -> Labels {
        let pairs: Vec<_> = labels.into_iter().collect();
        Labels { set_from: pairs.len(), pairs }
    }

    /// The set.
    pub fn into_map(self) -> BTreeMap<String, String> {
        self.pairs.into_iter().collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The value of a label; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.pairs.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Sets a label; without a value it is taken out, and without a name nothing is done.
    pub fn set(&mut self, name: String, value: String) {
        let place = self.pairs.iter().position(|(other, _)| *other == name);
        match place {
            _ if name.is_empty() => {}
            Some(place) if value.is_empty() => self.remove(place),
            Some(place) if place >= self.set_from => self.pairs[place].1 = value,
            Some(place) => {
                self.remove(place);
                self.pairs.push((name, value));
            }
            None if value.is_empty() => {}
            None => self.pairs.push((name, value)),
        }
    }

    /// Keeps the labels of these names.
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
