//! The known key that is most like an unknown one.

/// Keys of more bytes have no likeness: what is compared stays small.
const KEY_BYTES_MAX: usize = 32;

/// Returns the known key that takes the fewest changes, if they are few for its length.
pub(super) fn nearest(key: &str, known: &'static [&'static str]) -> Option<&'static str> {
    if key.len() > KEY_BYTES_MAX {
        return None;
    }
    let key = key.to_lowercase();
    let with_distance = known.iter().map(|known| (distance(&key, known), *known));
    let (distance, nearest) = with_distance.min_by_key(|(distance, _)| *distance)?;
    // Half of a short word would make any word of it.
    (distance <= nearest.chars().count().div_ceil(3)).then_some(nearest)
}

/// Number of insertions, deletions, replacements and swaps of neighbours that make one text of the
/// other (optimal string alignment).
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, &a) in one.iter().enumerate() {
        let mut row = Vec::with_capacity(other.len() + 1);
        row.push(i + 1);
        for (j, &b) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == other[j - 1] && b == one[i - 1] {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_found() {
        const KEYS: &[&str] =
            &["record", "alert", "expr", "for", "keep_firing_for", "labels", "annotations"];
        for (key, expected) in [
            ("fro", Some("for")),
            ("fo", Some("for")),
            ("Expr", Some("expr")),
            ("exp", Some("expr")),
            ("annotation", Some("annotations")),
            ("lables", Some("labels")),
            ("label", Some("labels")),
            ("keep_fireing_for", Some("keep_firing_for")),
            ("name", None),
            ("x", None),
            ("", None),
            ("owner", None),
        ] {
            assert_eq!(nearest(key, KEYS), expected, "{key}");
        }
        assert_eq!(nearest(&"f".repeat(1 << 20), KEYS), None);
    }

    #[test]
    fn changes_are_counted() {
        for (one, other, expected) in [
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
