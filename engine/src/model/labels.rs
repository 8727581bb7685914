//! The label set of a series, packed into one buffer.
//!
//! The packing is the protobuf encoding of `repeated prometheus.Label labels = 1`, the very bytes
//! that remote write 1.0 carries and that both remote-read answers need:
//!
//! ```text
//! ┌──────┬─────────────┬──────┬──────────┬──────┬──────┬───────────┬───────┐
//! │ 0x0a │ len uvarint │ 0x0a │ name len │ name │ 0x12 │ value len │ value │  × labels
//! └──────┴─────────────┴──────┴──────────┴──────┴──────┴───────────┴───────┘
//! ```
//!
//! Invariants: names ascend strictly (bytewise), no name and no value is empty, all is UTF-8.
//! An empty value means the same as no label, so it is never stored.

use crate::codec::{bytes_equal, put_uvarint, split_uvarint, uvarint_bytes};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The label that holds a series' metric name.
pub const LABEL_NAME: &str = "__name__";

/// Field 1, length-delimited: a label of the set, and the name of a label.
const TAG_FIRST: u8 = 0x0a;

/// Field 2, length-delimited: the value of a label.
const TAG_SECOND: u8 = 0x12;

/// A sorted, duplicate-free label set in its packed form.
#[derive(Clone, Eq, Default)]
pub struct Labels {
    packed: Box<[u8]>,
}

/// Reasons why a list of labels is no label set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// Two labels carry the same name.
    #[error("label name {name:?} occurs twice")]
    DuplicateName {
        /// Beginning of the repeated label name.
        name: String,
    },
    /// A label without a name.
    #[error("a label has an empty name (its value is {value:?})")]
    EmptyName {
        /// Beginning of the value of the nameless label.
        value: String,
    },
    /// No `__name__` label, or an empty one.
    #[error("the label set has no metric name (__name__)")]
    NoMetricName,
    /// A name or value is not UTF-8.
    #[error("a label name or value is not valid UTF-8")]
    NotUtf8,
    /// More labels than [`LabelLimits`] allow.
    #[error("the label set has {count} labels; at most {max} are allowed")]
    TooManyLabels {
        /// Number of labels in the set.
        count: usize,
        /// Largest number of labels that is allowed.
        max: u32,
    },
    /// A longer name than [`LabelLimits`] allow.
    #[error("the label name {start:?}… has {bytes} bytes; at most {max} are allowed")]
    NameTooLong {
        /// Beginning of the label's long name.
        start: String,
        /// Length of the name in bytes.
        bytes: usize,
        /// Largest length that is allowed, in bytes.
        max: u32,
    },
    /// A longer value than [`LabelLimits`] allow.
    #[error("the value of label {name:?} has {bytes} bytes; at most {max} are allowed")]
    ValueTooLong {
        /// Name of the label with the value.
        name: String,
        /// Length of the value in bytes.
        bytes: usize,
        /// Largest length that is allowed, in bytes.
        max: u32,
    },
}

/// Limits of the label sets of new series; 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelLimits {
    /// Largest number of labels of a series, its metric name included.
    pub labels_max: u32,
    /// Longest label name, in bytes.
    pub name_bytes_max: u32,
    /// Longest label value, in bytes; applies to the metric name too.
    pub value_bytes_max: u32,
}

impl LabelLimits {
    /// Limits that accept every label set.
    pub const NONE: LabelLimits =
        LabelLimits { labels_max: 0, name_bytes_max: 0, value_bytes_max: 0 };

    /// Returns whether a name or a value is longer than the limits allow.
    pub fn exceeded_by(&self, name: &[u8], value: &[u8]) -> bool {
        exceeds(name.len(), self.name_bytes_max) || exceeds(value.len(), self.value_bytes_max)
    }

    /// Checks a label set; returns the first limit that it exceeds.
    pub fn check(&self, pairs: &[(&str, &str)]) -> Result<(), LabelError> {
        if exceeds(pairs.len(), self.labels_max) {
            return Err(LabelError::TooManyLabels { count: pairs.len(), max: self.labels_max });
        }
        for (name, value) in pairs {
            let max = self.name_bytes_max;
            if exceeds(name.len(), max) {
                let start = start_of(name).to_owned();
                return Err(LabelError::NameTooLong { start, bytes: name.len(), max });
            }
            let max = self.value_bytes_max;
            if exceeds(value.len(), max) {
                let name = start_of(name).to_owned();
                return Err(LabelError::ValueTooLong { name, bytes: value.len(), max });
            }
        }
        Ok(())
    }
}

fn exceeds(size: usize, max: u32) -> bool {
    max > 0 && size > max as usize
}

pub(crate) fn start_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(QUOTED_BYTES_MAX)]
}

const QUOTED_BYTES_MAX: usize = 128;

impl Labels {
    /// Packs pairs given in any order; drops pairs with an empty value.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Labels, LabelError> {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        sort_and_check(&mut pairs)?;
        Ok(Labels::from_sorted(pairs))
    }

    /// Packs pairs that already keep the invariants, such as those of an index or a head.
    pub fn from_sorted<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Labels {
        // Room for most label sets, so that packing seldom grows the buffer.
        let mut packed = Vec::with_capacity(256);
        for (name, value) in pairs {
            pack_label(&mut packed, name, value);
        }
        Labels { packed: packed.into_boxed_slice() }
    }

    /// Copies packed bytes of another instance; `None` unless they keep the invariants.
    pub fn from_packed(packed: &[u8]) -> Option<Labels> {
        let mut rest = packed;
        let mut name_before = "";
        while !rest.is_empty() {
            let ((name, value), after) = split_packed(rest)?;
            // Names ascend from the empty string, so no name is empty.
            let has_place = name_before < name && !value.is_empty();
            // Only the shortest encoding is accepted: equal sets must have equal bytes.
            let bytes = label_bytes(name, value);
            let is_plain = rest.len() - after.len() == 1 + uvarint_bytes(bytes as u64) + bytes;
            if !has_place || !is_plain {
                return None;
            }
            (name_before, rest) = (name, after);
        }
        Some(Labels { packed: packed.into() })
    }

    /// The packed bytes, described at the head of this file.
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// Iterates over the pairs, by ascending name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest: &[u8] = &self.packed;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (label, after) = split_packed(rest)?;
            rest = after;
            Some(label)
        })
    }

    /// Returns the value of the label `name`; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        // Sets are short, so a walk over the packed bytes is fast enough.
        self.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value)
    }

    /// Returns the union with another set; if both have a name, the value of this set is kept.
    pub fn with_others(&self, others: &Labels) -> Labels {
        Labels::from_sorted(with_others(self.iter(), others))
    }

    /// Returns whether [`Labels::from_sorted`] would return this set for these pairs.
    pub fn is_of<'a>(&self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
        let mut rest = &*self.packed;
        for (name, value) in pairs {
            // Compared in place: most calls end at the first pairs, and packing would allocate.
            let Some((label, after)) = split_field(rest, TAG_FIRST) else { return false };
            let is_next = split_label(label).is_some_and(|(own_name, own_value)| {
                bytes_equal(own_name, name.as_bytes()) && bytes_equal(own_value, value.as_bytes())
            });
            if !is_next {
                return false;
            }
            rest = after;
        }
        rest.is_empty()
    }

    /// Returns whether the set has no label.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }
}

/// Iterates over sorted pairs, and over labels of another set whose names the pairs lack.
pub fn with_others<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
    others: &'a Labels,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let (mut pairs, mut others) = (pairs.peekable(), others.iter().peekable());
    std::iter::from_fn(move || match (pairs.peek(), others.peek()) {
        (Some((name, _)), Some((other, _))) => match name.cmp(other) {
            Ordering::Less => pairs.next(),
            Ordering::Greater => others.next(),
            Ordering::Equal => {
                // The label of `pairs` is kept, as Prometheus keeps it over an external label.
                others.next();
                pairs.next()
            }
        },
        (Some(_), None) => pairs.next(),
        (None, _) => others.next(),
    })
}

/// Sorts pairs by name, refuses empty and duplicate names, and drops empty values.
pub(crate) fn sort_and_check(pairs: &mut Vec<(&str, &str)>) -> Result<(), LabelError> {
    // Remote write demands sorted labels, so the check mostly saves the sort.
    if !pairs.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        pairs.sort_by(|a, b| a.0.cmp(b.0));
        if let Some(pair) = pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(LabelError::DuplicateName { name: start_of(pair[0].0).to_owned() });
        }
    }
    if let Some((name, value)) = pairs.first()
        && name.is_empty()
    {
        return Err(LabelError::EmptyName { value: start_of(value).to_owned() });
    }
    // Dropped last: a duplicate or nameless label is an error even if its value is empty.
    pairs.retain(|(_, value)| !value.is_empty());
    Ok(())
}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.packed.hash(state);
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Labels) -> bool {
        bytes_equal(&self.packed, &other.packed)
    }
}

impl Ord for Labels {
    /// Compares as Prometheus does: pair by pair, name before value, as bytes; a prefix comes
    /// first. Equal labels are skipped as a whole, since neighbouring series share most labels.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = (&*self.packed, &*other.packed);
        loop {
            match (split_field(a, TAG_FIRST), split_field(b, TAG_FIRST)) {
                (None, None) => return Ordering::Equal,
                (None, Some(_)) => return Ordering::Less,
                (Some(_), None) => return Ordering::Greater,
                (Some((label_a, after_a)), Some((label_b, after_b))) => {
                    // Packed bytes begin with lengths, so labels that differ are compared by part.
                    if !bytes_equal(label_a, label_b) {
                        return split_label(label_a).cmp(&split_label(label_b));
                    }
                    (a, b) = (after_a, after_b);
                }
            }
        }
    }
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Labels {
    /// Writes the set as Prometheus writes a series: `{__name__="up", job="node"}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (name, value)) in self.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{name}={value:?}")?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn label_bytes(name: &str, value: &str) -> usize {
    let string_bytes = |text: &str| 1 + uvarint_bytes(text.len() as u64) + text.len();
    string_bytes(name) + string_bytes(value)
}

fn pack_label(out: &mut Vec<u8>, name: &str, value: &str) {
    // Almost all labels are so short that each length is one byte.
    let bytes = label_bytes(name, value);
    if bytes < 0x80 {
        out.reserve(2 + bytes);
        out.extend([TAG_FIRST, bytes as u8, TAG_FIRST, name.len() as u8]);
        out.extend_from_slice(name.as_bytes());
        out.extend([TAG_SECOND, value.len() as u8]);
        out.extend_from_slice(value.as_bytes());
        return;
    }
    out.push(TAG_FIRST);
    put_uvarint(out, bytes as u64);
    out.push(TAG_FIRST);
    put_uvarint(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
    out.push(TAG_SECOND);
    put_uvarint(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

fn split_packed(packed: &[u8]) -> Option<((&str, &str), &[u8])> {
    let (label, rest) = split_field(packed, TAG_FIRST)?;
    let (name, value) = split_label(label)?;
    Some(((std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?), rest))
}

#[inline]
fn split_field(packed: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = packed.split_first()?;
    let (len, rest) = split_uvarint(rest).filter(|_| *first == tag)?;
    rest.split_at_checked(usize::try_from(len).ok()?)
}

#[inline]
fn split_label(label: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = split_field(label, TAG_FIRST)?;
    let (value, _) = split_field(rest, TAG_SECOND)?;
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_back_sorted_without_the_empty_ones() {
        let labels = Labels::from_pairs([("job", "node"), ("__name__", "up"), ("gone", "")]);
        let labels = labels.expect("valid labels");
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("__name__", "up"), ("job", "node")]);
        assert_eq!(labels.get("job"), "node");
        assert_eq!(labels.get("gone"), "");
        assert_eq!(labels.to_string(), r#"{__name__="up", job="node"}"#);
    }

    #[test]
    fn a_set_knows_the_pairs_that_it_is_of() {
        let long = "x".repeat(300);
        let sets: [&[(&str, &str)]; 7] = [
            &[],
            &[("a", "b")],
            &[("a", "bc")],
            &[("ab", "c")],
            &[("a", "b"), ("c", "d")],
            &[("a", "b"), ("c", &long)],
            &[("a", "b"), ("d", &long)],
        ];
        for (at, set) in sets.iter().enumerate() {
            let labels = Labels::from_sorted(set.iter().copied());
            for (of, pairs) in sets.iter().enumerate() {
                assert_eq!(labels.is_of(pairs.iter().copied()), at == of, "{set:?} {pairs:?}");
            }
        }
    }

    #[test]
    fn packed_bytes_are_the_protobuf_of_label_messages() {
        let labels = Labels::from_sorted([("a", "bc")]);
        assert_eq!(labels.packed(), b"\x0a\x07\x0a\x01a\x12\x02bc");
    }

    #[test]
    fn only_what_keeps_the_invariants_is_taken_as_packed() {
        let long = "x".repeat(300);
        let labels = Labels::from_sorted([("a", "bc"), ("b", long.as_str()), ("ß", "ü")]);
        assert_eq!(Labels::from_packed(labels.packed()), Some(labels.clone()));
        assert_eq!(Labels::from_packed(&[]), Some(Labels::default()));
        for end in 1..labels.packed().len() {
            let cut = Labels::from_packed(&labels.packed()[..end]);
            assert!(cut.is_none_or(|cut| labels.iter().take(cut.iter().count()).eq(cut.iter())));
        }
        for broken in [
            &b"\x0a\x06\x0a\x00\x12\x02bc"[..],
            b"\x0a\x05\x0a\x01a\x12\x00",
            b"\x0a\x06\x0a\x01b\x12\x01c\x0a\x06\x0a\x01a\x12\x01c",
            b"\x0a\x06\x0a\x01a\x12\x01c\x0a\x06\x0a\x01a\x12\x01c",
            b"\x0a\x06\x0a\x01a\x12\x01\xff",
            b"\x0a\x08\x0a\x01a\x12\x01c\x18\x01",
            b"\x0a\x07\x0a\x81\x00a\x12\x01c",
            b"\x0a\x86\x00\x0a\x01a\x12\x01c",
            b"\x12\x06\x0a\x01a\x12\x01c",
        ] {
            assert_eq!(Labels::from_packed(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn duplicate_and_empty_names_are_refused() {
        let duplicate = Labels::from_pairs([("a", "1"), ("b", "2"), ("a", "3")]);
        assert_eq!(duplicate, Err(LabelError::DuplicateName { name: "a".into() }));
        let empty = Labels::from_pairs([("", "1")]);
        assert_eq!(empty, Err(LabelError::EmptyName { value: "1".into() }));
    }

    #[test]
    fn limits_are_those_that_are_set() {
        let limits = LabelLimits { labels_max: 2, name_bytes_max: 3, value_bytes_max: 4 };
        assert_eq!(limits.check(&[("abc", "defg"), ("h", "i")]), Ok(()));
        let many = limits.check(&[("a", "1"), ("b", "2"), ("c", "3")]);
        assert_eq!(many, Err(LabelError::TooManyLabels { count: 3, max: 2 }));
        let long_name = limits.check(&[("abcd", "1")]);
        let start = "abcd".to_owned();
        assert_eq!(long_name, Err(LabelError::NameTooLong { start, bytes: 4, max: 3 }));
        let long_value = limits.check(&[("a", "12345")]);
        let name = "a".to_owned();
        assert_eq!(long_value, Err(LabelError::ValueTooLong { name, bytes: 5, max: 4 }));

        let huge = "ß".repeat(100_000);
        assert_eq!(LabelLimits::NONE.check(&[(huge.as_str(), huge.as_str()); 1000]), Ok(()));
        let Err(error) = limits.check(&[(huge.as_str(), "")]) else {
            panic!("a name of 200000 bytes")
        };
        assert!(error.to_string().len() < 256 && error.to_string().contains("200000"), "{error}");
    }

    #[test]
    fn order_is_by_pairs_not_by_packed_bytes() {
        let short_name_first = Labels::from_sorted([("a", "zzzzzzzz")]);
        let longer_name = Labels::from_sorted([("ab", "a")]);
        assert!(short_name_first < longer_name);
        let prefix = Labels::from_sorted([("a", "b")]);
        let longer = Labels::from_sorted([("a", "b"), ("c", "d")]);
        assert!(prefix < longer);
    }
}
