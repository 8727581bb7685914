//! Series and samples in the tests' own representation, and the order in which a scraper sends
//! them.
//!
//! [`Dataset::generate`] makes data from a [`Shape`]: the same shape gives the same bits. [`fleet`]
//! determines labels and values.

pub mod fleet;
mod random;

pub use random::Random;

use std::fmt;

/// The value that marks a series as stale.
pub const STALE_MARKER_BITS: u64 = 0x7ff0_0000_0000_0002;
/// The NaN that a metric itself may have.
pub const ORDINARY_NAN_BITS: u64 = 0x7ff8_0000_0000_0001;

/// A label set: names ascend bytewise and are unique.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Labels(Vec<(String, String)>);

/// A sample; values are compared by their bits.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// Value with any bit pattern.
    pub value: f64,
}

/// One series with its samples, ascending in time.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Series {
    pub labels: Labels,
    pub samples: Vec<Sample>,
}

/// Part of a series, as a request carries it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub labels: &'a Labels,
    /// Some samples of the series.
    pub samples: &'a [Sample],
}

/// Size, seed and texture of data.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Seed of all random choices.
    pub seed: u64,
    pub series: usize,
    /// Number of scrapes; without gaps, samples per series.
    pub scrapes: usize,
    /// Time of the first scrape.
    pub start_ms: i64,
    pub interval_ms: i64,
    pub texture: Texture,
}

/// Kind of the data: regular or rough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texture {
    /// Every series at every scrape, at one timestamp, as a healthy scraper sends them.
    Regular,
    /// With delayed and missed scrapes, counter resets, stale markers, NaN, infinities, negative
    /// zero and other values that are edge cases for encoders.
    Rough,
}

/// Generated series and the shape of their scrapes.
#[derive(Clone, Debug)]
pub struct Dataset {
    pub shape: Shape,
    /// Series in the order of generation.
    pub series: Vec<Series>,
}

impl Labels {
    /// Sorts pairs into a label set; drops pairs with an empty value, which mean no label.
    ///
    /// Duplicate names are kept, because some requests contain them on purpose.
    pub fn from_pairs<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Labels {
        let mut pairs: Vec<(String, String)> =
            pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        pairs.retain(|(_, value)| !value.is_empty());
        pairs.sort();
        Labels(pairs)
    }

    /// Keeps pairs exactly as they came, for requests that are invalid on purpose.
    pub fn verbatim<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Labels {
        Labels(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Returns the pairs in their order.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// Returns the value of a label; empty if there is none.
    pub fn value(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    /// Returns whether names ascend strictly.
    pub fn is_sorted(&self) -> bool {
        self.0.is_sorted_by(|a, b| a.0 < b.0)
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (name, value)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{name}={value:?}")?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for Sample {
    fn eq(&self, other: &Self) -> bool {
        self.timestamp_ms == other.timestamp_ms && self.value.to_bits() == other.value.to_bits()
    }
}

impl Series {
    /// Makes a series from pairs in any order and (milliseconds, value) samples.
    pub fn new(pairs: &[(&str, &str)], samples: &[(i64, f64)]) -> Series {
        let sample = |&(timestamp_ms, value)| Sample { timestamp_ms, value };
        Series {
            labels: Labels::from_pairs(pairs.iter().copied()),
            samples: samples.iter().map(sample).collect(),
        }
    }

    /// Returns the whole series as one row of a request.
    pub fn row(&self) -> Row<'_> {
        Row { labels: &self.labels, samples: &self.samples }
    }

    /// Returns the samples whose time is in the range, both ends included.
    pub fn between(&self, start_ms: i64, end_ms: i64) -> Series {
        let inside = |s: &&Sample| (start_ms..=end_ms).contains(&s.timestamp_ms);
        let samples = self.samples.iter().filter(inside).copied().collect();
        Series { labels: self.labels.clone(), samples }
    }
}

impl Dataset {
    /// Makes the data that the shape describes.
    pub fn generate(shape: Shape) -> Dataset {
        let series = (0..shape.series).map(|i| fleet::series(&shape, i)).collect();
        Dataset { shape, series }
    }

    /// Returns the scrapes in time order, each as one row for each series with samples in it.
    pub fn scrapes(&self) -> impl Iterator<Item = Vec<Row<'_>>> {
        let mut sent = vec![0usize; self.series.len()];
        (1..=self.shape.scrapes as i64).map(move |scrape| {
            let end_ms = self.shape.start_ms + scrape * self.shape.interval_ms;
            let mut rows = Vec::with_capacity(self.series.len());
            for (series, sent) in self.series.iter().zip(&mut sent) {
                let rest = &series.samples[*sent..];
                let samples = &rest[..rest.partition_point(|s| s.timestamp_ms < end_ms)];
                if !samples.is_empty() {
                    *sent += samples.len();
                    rows.push(Row { labels: &series.labels, samples });
                }
            }
            rows
        })
    }

    /// Returns the scrapes split into requests of at most this number of rows.
    pub fn requests(&self, rows_max: usize) -> Vec<Vec<Row<'_>>> {
        self.scrapes()
            .flat_map(|rows| rows.chunks(rows_max).map(<[Row]>::to_vec).collect::<Vec<_>>())
            .collect()
    }

    /// Replaces negative zero by zero: upstream's encoders take it for the default value and leave
    /// it out.
    pub fn clear_negative_zeros(&mut self) {
        for sample in self.series.iter_mut().flat_map(|series| &mut series.samples) {
            sample.value = if sample.value == 0.0 { 0.0 } else { sample.value };
        }
    }

    /// Returns the number of samples in all series.
    pub fn sample_count(&self) -> u64 {
        self.series.iter().map(|s| s.samples.len() as u64).sum()
    }

    /// Returns the times of the first and of the last sample.
    pub fn time_range_ms(&self) -> Option<(i64, i64)> {
        let first = self.series.iter().filter_map(|s| s.samples.first()).map(|s| s.timestamp_ms);
        let last = self.series.iter().filter_map(|s| s.samples.last()).map(|s| s.timestamp_ms);
        Some((first.min()?, last.max()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(texture: Texture) -> Shape {
        Shape {
            seed: 7,
            series: 50,
            scrapes: 40,
            start_ms: 1_000_000,
            interval_ms: 15_000,
            texture,
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bits() {
        let shape = shape(Texture::Rough);
        assert_eq!(Dataset::generate(shape).series, Dataset::generate(shape).series);
    }

    #[test]
    fn scrapes_carry_every_sample_once_and_in_order() {
        for texture in [Texture::Regular, Texture::Rough] {
            let data = Dataset::generate(shape(texture));
            let mut rebuilt: Vec<Series> = Vec::new();
            for row in data.scrapes().flatten() {
                match rebuilt.iter_mut().find(|s| s.labels == *row.labels) {
                    Some(series) => series.samples.extend_from_slice(row.samples),
                    None => rebuilt
                        .push(Series { labels: row.labels.clone(), samples: row.samples.to_vec() }),
                }
            }
            rebuilt.sort_by(|a, b| a.labels.cmp(&b.labels));
            let mut expected = data.series.clone();
            expected.sort_by(|a, b| a.labels.cmp(&b.labels));
            assert_eq!(rebuilt, expected);
        }
    }

    #[test]
    fn label_sets_are_sorted_and_distinct() {
        let data =
            Dataset::generate(Shape { series: 5_000, scrapes: 1, ..shape(Texture::Regular) });
        assert!(data.series.iter().all(|s| s.labels.is_sorted()));
        let mut labels: Vec<&Labels> = data.series.iter().map(|s| &s.labels).collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), 5_000);
    }
}
