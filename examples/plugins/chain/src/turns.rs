//! Runs two transforms one after the other.

use super::batch;
use super::edit;
use tidepool_plugin::transform::{Batch, Edit, Verdict};

/// Combines the first transform's verdict on a batch with the second's verdict on the result.
pub fn then(
    before: &Batch,
    verdict: Verdict,
    mut second: impl FnMut(&Batch) -> Result<Verdict, String>,
) -> Result<Verdict, String> {
    let mut made_of = |batch: Batch| match second(&batch)? {
        Verdict::Unchanged => Ok::<_, String>(batch),
        Verdict::Replaced(other) => Ok(other),
        Verdict::Edited(edit) => Ok(edit::applied(&batch, edit)),
    };
    let mut first = match verdict {
        Verdict::Unchanged => return second(before),
        Verdict::Replaced(batch) => return Ok(Verdict::Replaced(made_of(batch)?)),
        Verdict::Edited(edit) => edit,
    };
    let added = first.added.take().map(&mut made_of).transpose()?;
    let (after, places) = edit::edited(before, &mut first);
    // The second transform is not called for an empty batch.
    let verdict = if places.is_empty() { Verdict::Unchanged } else { second(&after)? };
    Ok(match verdict {
        Verdict::Unchanged => Verdict::Edited(Edit { added, ..first }),
        Verdict::Replaced(batch) => Verdict::Replaced(batch::joined(batch, added)),
        Verdict::Edited(edit) => {
            let mut both = edit::both(first, edit, &places);
            both.added = match (added, both.added.take()) {
                (Some(one), other) => Some(batch::joined(one, other)),
                (None, other) => other,
            };
            Verdict::Edited(both)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_plugin::{BatchBuilder, Edits, Series};

    /// Returns series `a` to `d` with a label and a sample each.
    fn batch() -> Batch {
        let mut made = BatchBuilder::new();
        for (number, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
            let series = made.series([("__name__", name), ("pod", "7")]);
            made.sample(series, 1000, number as f64);
        }
        made.finish()
    }

    /// Drops the series of one name, adds a label to those of another, and adds a series of a
    /// third.
    fn edits(batch: &Batch, drop: &str, tag: &str, add: &str) -> Verdict {
        let series = Series::of(batch);
        let mut edits = Edits::of(batch);
        for place in 0..series.count() {
            let name = series.label(place, "__name__");
            if name == drop {
                edits.drop(place);
            } else if name.starts_with(tag) {
                let pairs = series.labels(place).chain([("by", tag), ("pod", "")]);
                edits.relabel(place, pairs.filter(|pair| *pair != ("pod", "7")));
            }
        }
        if !add.is_empty() {
            let mut added = BatchBuilder::new();
            let series = added.series([("__name__", add)]);
            added.sample(series, 2000, 9.0);
            edits.add(added.finish());
        }
        edits.verdict()
    }

    /// Returns each sample of a batch as text.
    fn rows(batch: &Batch) -> Vec<String> {
        let series = Series::of(batch);
        let samples = batch.samples.series.iter().zip(&batch.samples.values);
        let row = |(place, value): (&u32, &f64)| {
            let labels = series.labels(*place as usize);
            let labels: Vec<String> =
                labels.map(|(name, value)| format!("{name}={value}")).collect();
            format!("{} {value}", labels.join(","))
        };
        samples.map(row).collect()
    }

    /// Applies a verdict to a batch and returns its samples.
    fn made(before: &Batch, verdict: Verdict) -> Vec<String> {
        match verdict {
            Verdict::Unchanged => rows(before),
            Verdict::Replaced(batch) => rows(&batch),
            Verdict::Edited(edit) => rows(&edit::applied(before, edit)),
        }
    }

    #[test]
    fn one_verdict_says_what_two_say_in_turn() {
        let words = ["", "a", "b", "d"];
        let replaces = |batch: &Batch| Verdict::Replaced(edit::applied(batch, no_edit()));
        for first in words.iter().flat_map(|d| words.map(|t| (*d, t))) {
            for second in words.iter().flat_map(|d| words.map(|t| (*d, t))) {
                for (added, more, replaced) in [
                    ("", "", 0),
                    ("b", "", 0),
                    ("", "e", 0),
                    ("d", "e", 0),
                    ("d", "e", 1),
                    ("", "", 2),
                ] {
                    let before = batch();
                    let one = || match replaced {
                        1 => replaces(&before),
                        _ => edits(&before, first.0, non_empty(first.1), added),
                    };
                    let two = |batch: &Batch| match replaced {
                        2 => replaces(batch),
                        _ => edits(batch, second.0, non_empty(second.1), more),
                    };
                    // Transforms run in turn, and series that the first added are a batch of their
                    // own, as in tidepool.
                    let mut expected = Vec::new();
                    let parts = match one() {
                        Verdict::Unchanged => vec![before.clone()],
                        Verdict::Replaced(batch) => vec![batch],
                        Verdict::Edited(mut edit) => {
                            let added = edit.added.take();
                            [Some(edit::applied(&before, edit)), added]
                                .into_iter()
                                .flatten()
                                .collect()
                        }
                    };
                    for part in parts {
                        expected.extend(made(&part, two(&part)));
                    }
                    let verdict = then(&before, one(), |batch| Ok(two(batch)));
                    let mut got = verdict.map(|verdict| made(&before, verdict)).unwrap_or_default();
                    expected.sort();
                    got.sort();
                    assert_eq!(got, expected, "{first:?} {second:?} {added} {more} {replaced}");
                }
            }
        }
    }

    fn non_empty(tag: &str) -> &str {
        if tag.is_empty() { "none" } else { tag }
    }

    fn no_edit() -> Edit {
        Edit {
            symbols: String::new(),
            symbol_ends: Vec::new(),
            dropped: Vec::new(),
            relabeled: Vec::new(),
            label_refs: Vec::new(),
            series_ends: Vec::new(),
            added: None,
        }
    }

    #[test]
    fn an_error_says_whose_it_is() {
        let verdict = edits(&batch(), "a", "b", "");
        let failed = then(&batch(), verdict, |_| Err("the second: no".to_owned()));
        assert!(failed.is_err_and(|why| why == "the second: no"));
    }
}
