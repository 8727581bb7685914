//! Requests of a sender with queues, a backlog or rules: no request begins and ends where one of an
//! earlier scrape did, and no two have their symbols in the same order.

use super::load::Load;
use tidepool_tests::remote_write::{Symbols, Version, compress, message_bytes_with};
use tidepool_tests::series::{Dataset, Random, Row};

/// Series that arrive together, as those of one target; the order of targets changes.
const TARGET_SERIES: usize = 100;
/// Number of the random stream.
const STREAM: u64 = 0x6375_7473;

/// Encodes a data set for some connections, each with a part of the series. A request has between
/// one row and `rows_max`.
pub fn encode(data: &Dataset, version: Version, rows_max: usize, connections: usize) -> Load {
    let mut random = Random::new(data.shape.seed, STREAM);
    let mut waiting: Vec<Vec<Row<'_>>> = vec![Vec::new(); connections];
    let mut next_len = vec![0; connections];
    let mut bodies = vec![Vec::new(); connections];
    let targets = data.series.len().div_ceil(TARGET_SERIES);
    let home: Vec<usize> =
        (0..targets).map(|_| random.below(connections as u64) as usize).collect();
    for rows in data.scrapes() {
        let mut targets: Vec<(usize, &[Row<'_>])> =
            rows.chunks(TARGET_SERIES).enumerate().collect();
        shuffle(&mut targets, &mut random);
        let mut requests = vec![Vec::new(); connections];
        for (target, rows) in targets {
            // After series have ended there are fewer targets than entries in `home`.
            let at = home[target];
            for row in rows {
                if waiting[at].is_empty() {
                    next_len[at] = 1 + random.below(rows_max as u64) as usize;
                }
                waiting[at].push(*row);
                if waiting[at].len() == next_len[at] {
                    requests[at].push(body(
                        version,
                        &std::mem::take(&mut waiting[at]),
                        &mut random,
                    ));
                }
            }
        }
        bodies
            .iter_mut()
            .zip(requests)
            .for_each(|(list, bodies): (&mut Vec<_>, _)| list.push(bodies));
    }
    for (rows, bodies) in waiting.iter().zip(&mut bodies) {
        if let Some(last) = bodies.last_mut().filter(|_| !rows.is_empty()) {
            last.push(body(version, rows, &mut random));
        }
    }
    let time_range_ms = data.time_range_ms().unwrap_or_default();
    Load::of_connections(version, data.sample_count(), time_range_ms, bodies)
}

fn body(version: Version, rows: &[Row<'_>], random: &mut Random) -> Vec<u8> {
    let pairs = rows.iter().flat_map(|row| row.labels.pairs());
    let mut texts: Vec<&str> =
        pairs.flat_map(|(name, value)| [name.as_str(), value.as_str()]).collect();
    texts.sort_unstable();
    texts.dedup();
    shuffle(&mut texts, random);
    let mut symbols = Symbols::default();
    for text in texts {
        symbols.position(text);
    }
    compress(&message_bytes_with(version, rows, symbols))
}

fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.below(at as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use std::collections::BTreeMap;
    use tidepool_tests::proto::write_v2::Request;
    use tidepool_tests::series::{Shape, Texture};

    /// Times and the bits of values.
    type Rows = Vec<(i64, u64)>;

    /// The requests contain exactly the data, each series in order and on one connection, and
    /// differ in length.
    #[test]
    fn every_row_is_sent_once_and_in_order() {
        let shape = Shape {
            seed: 3,
            series: 350,
            scrapes: 12,
            start_ms: 1_000_000,
            interval_ms: 15_000,
            texture: Texture::Regular,
        };
        let data = Dataset::generate(shape);
        let load = encode(&data, Version::V2, 90, 3);
        let mut sent: BTreeMap<Vec<(String, String)>, Rows> = BTreeMap::new();
        let mut lengths = Vec::new();
        for body in load.bodies().flatten().flatten() {
            let message = snap::raw::Decoder::new().decompress_vec(body).expect("snappy");
            let Request { symbols, timeseries } = Request::decode(&*message).expect("a message");
            lengths.push(timeseries.len());
            for series in timeseries {
                let text = |at: &u32| symbols[*at as usize].clone();
                let pairs = series.labels_refs.chunks(2).map(|two| (text(&two[0]), text(&two[1])));
                let rows = sent.entry(pairs.collect()).or_default();
                rows.extend(series.samples.iter().map(|s| (s.timestamp, s.value.to_bits())));
            }
        }
        let expected = data.series.iter().map(|series| {
            let samples = series.samples.iter().map(|s| (s.timestamp_ms, s.value.to_bits()));
            (series.labels.pairs().to_vec(), samples.collect())
        });
        assert_eq!(sent, expected.collect());
        lengths.sort_unstable();
        lengths.dedup();
        assert!(lengths.len() > 30 && lengths.last() <= Some(&90), "{lengths:?}");
    }
}
