//! A label set.

use crate::syntax::{push_name, push_quoted};
use std::fmt;

/// What an allocation takes beside its bytes, roughly: short texts take more than their length.
const ALLOCATION_BYTES: usize = 12;

/// A sorted label set: names ascend, none comes twice, no value is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Vec<(Box<str>, Box<str>)>);

impl Labels {
    /// The set of these labels, in any order. Of several with one name the last counts; empty
    /// values are left out.
    pub fn new<N: Into<Box<str>>, V: Into<Box<str>>>(
        labels: impl IntoIterator<Item = (N, V)>,
    ) -> Labels {
        let mut set = Labels::default();
        for (name, value) in labels {
            set.set(&name.into(), value.into());
        }
        set
    }

    /// The value of a label; empty without one.
    pub fn get(&self, name: &str) -> &str {
        match self.place(name) {
            Ok(place) => &self.0[place].1,
            Err(_) => "",
        }
    }

    /// Sets a label; an empty value removes it.
    pub fn set(&mut self, name: &str, value: impl Into<Box<str>>) {
        let value = value.into();
        match (self.place(name), value.is_empty()) {
            (Ok(place), true) => drop(self.0.remove(place)),
            (Ok(place), false) => self.0[place].1 = value,
            (Err(_), true) => {}
            (Err(place), false) => self.0.insert(place, (name.into(), value)),
        }
    }

    /// Removes a label.
    pub fn remove(&mut self, name: &str) {
        self.set(name, "");
    }

    /// Keeps the labels for which the test holds.
    pub fn retain(&mut self, mut test: impl FnMut(&str, &str) -> bool) {
        self.0.retain(|(name, value)| test(name, value));
    }

    /// A copy of the labels for whose names the test holds.
    pub fn filtered(&self, test: impl Fn(&str) -> bool) -> Labels {
        Labels(self.0.iter().filter(|(name, _)| test(name)).cloned().collect())
    }

    /// Labels by ascending name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of memory that the set takes, roughly.
    pub fn bytes(&self) -> usize {
        let texts: usize = self.0.iter().map(|(name, value)| name.len() + value.len()).sum();
        texts + self.0.len() * (size_of::<(Box<str>, Box<str>)>() + 2 * ALLOCATION_BYTES)
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| (**other).cmp(name))
    }
}

impl fmt::Display for Labels {
    /// As upstream prints label sets: `{a="b", c="d"}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::from("{");
        for (i, (name, value)) in self.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            push_name(name, &mut out);
            out.push('=');
            push_quoted(value, &mut out);
        }
        out.push('}');
        f.write_str(&out)
    }
}
