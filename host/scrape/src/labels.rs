//! A label set, encoded as one text that clones share.
//!
//! ```text
//! 8:__name__2:up3:job4:node
//! ```
//!
//! Each name and value follows its length in bytes. Names ascend by their bytes without duplicates,
//! and no value is empty, so equal sets are equal texts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tidepool_exposition::series_text;

/// The name of the label whose value is the metric's name.
pub const METRIC_NAME: &str = "__name__";

/// Prefix of label names that do not reach series.
pub const RESERVED_PREFIX: &str = "__";

/// Labels of a series or a target, in the order of their names.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Labels(Arc<str>);

impl Labels {
    /// Encodes the labels of a map; skips labels with an empty value.
    pub fn of(map: &BTreeMap<String, String>) -> Labels {
        Labels::sorted(map.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Encodes one label, or an empty set if the value is empty.
    pub fn one(name: &str, value: &str) -> Labels {
        Labels::sorted([(name, value)].into_iter())
    }

    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Encodes labels, which must ascend by name.
    fn sorted<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Labels {
        use std::fmt::Write as _;
        let mut text = String::new();
        for (name, value) in pairs.filter(|(_, value)| !value.is_empty()) {
            // Writing to a string does not fail.
            let _ = write!(text, "{}:{name}{}:{value}", name.len(), value.len());
        }
        Labels(text.into())
    }

    /// Yields names and values, ascending by name.
    pub fn iter(&self) -> Pairs<'_> {
        Pairs(&self.0)
    }

    /// Returns the value of a label, or an empty text if the label is absent.
    pub fn get(&self, name: &str) -> &str {
        // Label sets are short, so a linear search costs less than an index.
        self.iter().find(|(found, _)| *found == name).map_or("", |(_, value)| value)
    }

    pub fn metric(&self) -> &str {
        self.get(METRIC_NAME)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns the length of the encoded text in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Returns the series as the text formats write it: `up{job="node"}`.
    pub fn series_text(&self) -> String {
        series_text(self.metric(), self.iter().filter(|(name, _)| *name != METRIC_NAME))
    }

    /// Returns the encoded text; different sets have different texts.
    pub fn as_text(&self) -> &str {
        &self.0
    }
}

impl FromIterator<(String, String)> for Labels {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Labels {
        Labels::of(&pairs.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Labels {
    type Item = (&'a str, &'a str);
    type IntoIter = Pairs<'a>;
    fn into_iter(self) -> Pairs<'a> {
        self.iter()
    }
}

/// Prints the label set as Prometheus does: `{__name__="up", job="node"}`.
impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "{";
        for (name, value) in self {
            write!(f, "{comma}{name}={value:?}")?;
            comma = ", ";
        }
        f.write_str(if self.is_empty() { "{}" } else { "}" })
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Iterator over the labels of a set; holds the rest of the encoded text.
#[derive(Clone)]
pub struct Pairs<'a>(&'a str);

impl<'a> Pairs<'a> {
    /// Splits off the next name or value, which follows its length.
    fn piece(&mut self) -> Option<&'a str> {
        // All texts come from `sorted`, so no text ends within a name or value.
        let (length, rest) = self.0.split_once(':')?;
        let (piece, rest) = rest.split_at_checked(length.parse().ok()?)?;
        self.0 = rest;
        Some(piece)
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a str, &'a str);
    fn next(&mut self) -> Option<(&'a str, &'a str)> {
        Some((self.piece()?, self.piece()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn labels_are_sorted_and_have_values() {
        let pairs = [("job", "node"), ("__name__", "up"), ("empty", ""), ("ü", "7:x\"")];
        let labels: Labels =
            pairs.map(|(name, value)| (name.into(), value.into())).into_iter().collect();
        assert_eq!(labels.as_text(), "8:__name__2:up3:job4:node2:ü4:7:x\"");
        assert_eq!(labels.len(), 3);
        assert_eq!((labels.metric(), labels.get("ü"), labels.get("empty")), ("up", "7:x\"", ""));
        assert_eq!(labels.to_string(), r#"{__name__="up", job="node", ü="7:x\""}"#);
        let none = Labels::of(&BTreeMap::new());
        assert_eq!((none.is_empty(), none.len(), none.to_string()), (true, 0, "{}".to_owned()));
    }

    proptest! {
        #[test]
        fn any_map_comes_back(map: BTreeMap<String, String>) {
            let labels = Labels::of(&map);
            let back: BTreeMap<String, String> =
                labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let kept: BTreeMap<String, String> =
                map.into_iter().filter(|(_, value)| !value.is_empty()).collect();
            prop_assert_eq!(back, kept);
        }
    }
}
