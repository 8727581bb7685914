//! Compares returned samples with sent ones, in any order.
//!
//! Each sample is hashed to 128 bits over (labels, timestamp, value bits); the checksum is the
//! count, the wrapping sum and the exclusive or of these hashes. A lost, doubled or changed sample
//! changes at least one of the three. It takes 40 bytes, so answers larger than memory can be
//! checked as well; [`assert_same`] adds a useful message where both sides fit in memory.

use crate::series::{Labels, Row, Sample, Series};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// Maximum number of differences that [`assert_same`] lists.
const DIFFERENCES_MAX: usize = 8;

/// Checksum over some samples, whatever their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Checksum {
    pub count: u64,
    sum: u128,
    xor: u128,
}

/// The hash of a label set, taken once for all samples of a series.
#[derive(Clone, Copy, Debug)]
pub struct LabelsHash(u128);

impl LabelsHash {
    /// Hashes names and values with their lengths, so that no two label sets write the same bytes.
    pub fn of(labels: &Labels) -> LabelsHash {
        let mut bytes = Vec::with_capacity(512);
        for part in labels.pairs().iter().flat_map(|(name, value)| [name, value]) {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        LabelsHash(xxh3_128(&bytes))
    }
}

impl Checksum {
    /// Sums everything in some series.
    pub fn of<'a>(series: impl IntoIterator<Item = &'a Series>) -> Checksum {
        let mut checksum = Checksum::default();
        for series in series {
            checksum.add_row(series.row());
        }
        checksum
    }

    /// Adds the samples of one row.
    pub fn add_row(&mut self, row: Row<'_>) {
        let labels = LabelsHash::of(row.labels);
        for sample in row.samples {
            self.add(labels, *sample);
        }
    }

    pub fn add(&mut self, labels: LabelsHash, sample: Sample) {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&labels.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&sample.timestamp_ms.to_le_bytes());
        bytes[24..].copy_from_slice(&sample.value.to_bits().to_le_bytes());
        let hash = xxh3_128_with_seed(&bytes, 1);
        self.count += 1;
        self.sum = self.sum.wrapping_add(hash);
        self.xor ^= hash;
    }
}

/// Panics with the first differences when the two hold different samples.
///
/// Empty series count as absent, and a series may come in several parts.
#[track_caller]
pub fn assert_same<'a, 'b>(
    what: &str,
    sent: impl IntoIterator<Item = &'a Series> + Clone,
    got: impl IntoIterator<Item = &'b Series> + Clone,
) {
    if Checksum::of(sent.clone()) != Checksum::of(got.clone()) {
        panic!("{what}: {}", differences(sent, got));
    }
}

/// Returns the number of samples that are missing; panics if one was returned that was not sent.
#[track_caller]
pub fn missing<'a, 'b>(
    what: &str,
    sent: impl IntoIterator<Item = &'a Series> + Clone,
    got: impl IntoIterator<Item = &'b Series> + Clone,
) -> usize {
    let (all, found) = (count_samples(sent.clone()), count_samples(got.clone()));
    let is_sent = found.iter().all(|(key, times)| all.get(key).is_some_and(|sent| times <= sent));
    assert!(is_sent, "{what}: {}", differences(sent, got));
    all.values().sum::<usize>() - found.values().sum::<usize>()
}

/// Says how two sets of samples differ.
pub fn differences<'a, 'b>(
    sent: impl IntoIterator<Item = &'a Series>,
    got: impl IntoIterator<Item = &'b Series>,
) -> String {
    let (sent, got) = (count_samples(sent), count_samples(got));
    let mut lines = Vec::new();
    for (key, sent_times) in &sent {
        let got_times = got.get(key).copied().unwrap_or(0);
        if got_times != *sent_times {
            lines.push((key, *sent_times, got_times));
        }
    }
    for (key, got_times) in &got {
        if !sent.contains_key(key) {
            lines.push((key, 0, *got_times));
        }
    }
    let total = |samples: &BTreeMap<_, usize>| samples.values().sum::<usize>();
    let mut text =
        format!("{} samples sent, {} came back, {} differ", total(&sent), total(&got), lines.len());
    for ((labels, timestamp_ms, bits), sent_times, got_times) in lines.iter().take(DIFFERENCES_MAX)
    {
        let value = f64::from_bits(*bits);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n  {labels} at {timestamp_ms}: {value} ({bits:#x}), sent {sent_times}, got {got_times}"
        );
    }
    text
}

type Key<'a> = (&'a Labels, i64, u64);

fn count_samples<'a>(series: impl IntoIterator<Item = &'a Series>) -> BTreeMap<Key<'a>, usize> {
    let mut counts = BTreeMap::new();
    for series in series {
        for sample in &series.samples {
            let key = (&series.labels, sample.timestamp_ms, sample.value.to_bits());
            *counts.entry(key).or_insert(0) += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, samples: &[(i64, f64)]) -> Series {
        Series::new(&[("__name__", name)], samples)
    }

    #[test]
    fn order_and_parts_do_not_matter() {
        let whole = [series("a", &[(1, 1.0), (2, 2.0)]), series("b", &[(1, 1.0)])];
        let parts = [series("b", &[(1, 1.0)]), series("a", &[(2, 2.0)]), series("a", &[(1, 1.0)])];
        assert_same("parts", &whole, &parts);
    }

    #[test]
    fn every_kind_of_damage_shows() {
        let sent = [series("a", &[(1, 0.0), (2, 2.0)])];
        for got in [
            series("a", &[(1, 0.0)]),
            series("a", &[(1, 0.0), (2, 2.0), (2, 2.0)]),
            series("a", &[(1, -0.0), (2, 2.0)]),
            series("a", &[(1, 2.0), (2, 0.0)]),
            series("b", &[(1, 0.0), (2, 2.0)]),
        ] {
            assert_ne!(Checksum::of(&sent), Checksum::of([&got]), "{got:?}");
            assert!(differences(&sent, [&got]).contains("\n  "), "{got:?}");
        }
    }
}
