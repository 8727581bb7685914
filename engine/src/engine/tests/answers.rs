//! Answers that are read twice, and answers with external labels.

use super::*;
use crate::model::Histogram;
use crate::model::histogram::testing::any_histograms;
use crate::select::Cursor;
use crate::wire::{SeriesData, WriteSink, decode_write_v1};
use proptest::prelude::*;

/// A series: labels, times and bits of its floats, and the number of its histograms.
type AnswerSeries = (String, Vec<(i64, u64)>, usize);

/// Series of a SAMPLES answer, in their order.
#[derive(Debug, Default, PartialEq)]
struct Answer(Vec<AnswerSeries>);

impl<'r> WriteSink<'r> for Answer {
    type Histogram = Value;

    // A query result's series looks like a write request's: the same field numbers.
    fn series_by_pairs(&mut self, labels: &[(&'r [u8], &'r [u8])], data: SeriesData<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pair = |(name, value): &(&[u8], &[u8])| format!("{}={}", text(name), text(value));
        let labels: Vec<String> = labels.iter().map(pair).collect();
        let floats = data.samples.iter().map(|s| (s.timestamp_ms, s.value.to_bits())).collect();
        self.0.push((labels.join(","), floats, data.histograms.len()));
    }

    fn series_by_refs(&mut self, _: &[u32], _: SeriesData<'_>) {}
}

fn selection(range: TimeRange, external: Labels) -> Selection {
    Selection {
        matchers: Vec::new(),
        range,
        format: FrameFormat::Samples,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external,
    }
}

fn all_bytes(cursor: &mut Cursor, bytes_max: u32) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let piece = cursor.next_frames(bytes_max)?;
        if piece.is_empty() {
            return Ok(all);
        }
        all.extend(piece);
    }
}

fn decoded(bytes: &[u8]) -> Result<Answer> {
    let mut answer = Answer::default();
    decode_write_v1(bytes, &mut answer)?;
    Ok(answer)
}

fn measured(cursor: &mut Cursor) -> Result<(u64, u64)> {
    loop {
        let measured = cursor.measure(50)?;
        if measured.done {
            return Ok((measured.bytes, measured.samples));
        }
    }
}

/// A value at a time of a series, and whether all due samples are cut to blocks before.
type Write = (u8, i64, bool, bool);

fn write(node: &mut Node, (series, time_ms, is_zero, cut): Write, histogram: &Histogram) {
    if cut {
        node.compact();
    }
    // What is too old is refused.
    if series == 3 {
        node.append_value("histograms", time_ms, &histogram.clone().into());
    } else {
        let bits = if is_zero { 0 } else { time_ms as u64 | 1 << 40 };
        node.append(&format!("s{series}"), time_ms, bits);
    }
}

proptest! {
    /// Whatever is written between the two passes, the second returns as many bytes as the first
    /// counted, and the samples that existed when the cursor was opened.
    #[test]
    fn an_answer_is_as_long_as_was_measured(
        before in prop::collection::vec((0u8..4, 0i64..4000, any::<bool>(), prop::bool::weighted(0.02)), 1..150),
        between in prop::collection::vec((0u8..6, 0i64..5000, any::<bool>(), Just(false)), 0..80),
        ends in (-100i64..4500, -100i64..4500),
        piece_bytes in 1u32..400,
        histograms in any_histograms::<u64>(),
    ) {
        let Some((_, histogram)) = histograms.first() else { return Ok(()) };
        let fail = |error: Error| TestCaseError::fail(error.to_string());
        let mut node = Node::with(WITH_OUT_OF_ORDER);
        for one in before {
            write(&mut node, one, histogram);
        }
        let range = TimeRange { start_ms: ends.0.min(ends.1), end_ms: ends.0.max(ends.1) };
        let selection = selection(range, Labels::default());
        let open = |node: &Node| node.engine.select(&selection).map_err(fail);
        let expected = all_bytes(&mut open(&node)?, 1 << 20).map_err(fail)?;
        let mut cursor = open(&node)?;
        let mut also_open = open(&node)?;
        let (first, later) = between.split_at(between.len() / 2);
        for one in first {
            write(&mut node, *one, histogram);
        }
        let (bytes, samples) = measured(&mut cursor).map_err(fail)?;
        prop_assert_eq!(bytes, expected.len() as u64);
        for one in later {
            write(&mut node, *one, histogram);
        }
        cursor.rewind().map_err(fail)?;
        let found = all_bytes(&mut cursor, piece_bytes).map_err(fail)?;
        let (found, expected) = (decoded(&found).map_err(fail)?, decoded(&expected).map_err(fail)?);
        prop_assert_eq!(&found, &expected);
        let count = found.0.iter().map(|(_, floats, histograms)| floats.len() + histograms);
        prop_assert_eq!(samples, count.sum::<usize>() as u64);
        // Once more, from the middle, by another cursor of the same moment.
        also_open.next_frames(piece_bytes).map_err(fail)?;
        also_open.rewind().map_err(fail)?;
        let found = all_bytes(&mut also_open, piece_bytes).map_err(fail)?;
        prop_assert_eq!(&decoded(&found).map_err(fail)?, &expected);
        // The limit is found by the first pass, too.
        if let Some(samples_max) = samples.checked_sub(1).filter(|max| *max > 0) {
            let limited = Selection { samples_max, ..selection.clone() };
            let mut cursor = node.engine.select(&limited).map_err(fail)?;
            let is_refused = matches!(measured(&mut cursor), Err(Error::LimitExceeded { .. }));
            prop_assert!(is_refused);
        }
    }

    /// With external labels, series are in the order of their new labels, and equal ones are one.
    #[test]
    fn external_labels_are_added_in_order(
        written in prop::collection::btree_map(
            prop::collection::btree_map("[a-d]", "[xy]", 0..4),
            (0i64..100, any::<bool>()),
            1..25,
        ),
        external in prop::collection::btree_map("[a-e]", "[xy]", 0..3),
    ) {
        let fail = |error: Error| TestCaseError::fail(error.to_string());
        let pairs = |map: &BTreeMap<String, String>| {
            let pairs = map.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            Labels::from_sorted(pairs)
        };
        let external = pairs(&external);
        let mut node = Node::with(WITH_OUT_OF_ORDER);
        let mut model: BTreeMap<Labels, BTreeMap<i64, u64>> = BTreeMap::new();
        for cut_to_block in [true, false] {
            for (number, (map, (at_ms, in_block))) in written.iter().enumerate() {
                if *in_block != cut_to_block {
                    continue;
                }
                let mut map = map.clone();
                map.insert(LABEL_NAME.to_owned(), "m".to_owned());
                let labels = pairs(&map);
                // Each time once, so that nothing depends on who has the word.
                let time_ms = 37 * number as i64 + at_ms % 37;
                let time_ms = if cut_to_block { time_ms } else { 3_000 + time_ms };
                let series = node.engine.series_ref(&labels).map_err(fail)?;
                let sample = Sample { timestamp_ms: time_ms, value: number as f64 };
                node.engine.append(std::iter::once((series, sample)), 1_000_000).map_err(fail)?;
                let merged = model.entry(labels.with_others(&external)).or_default();
                merged.insert(time_ms, sample.value.to_bits());
            }
            if cut_to_block {
                // Long after, so that a block is due.
                node.append("later", 2_900, 1);
                let later = Labels::from_sorted([(LABEL_NAME, "later"), ("job", "test")]);
                let merged = model.entry(later.with_others(&external)).or_default();
                merged.insert(2_900, 1);
                node.compact();
                prop_assert_eq!(node.engine.figures().map_err(fail)?.blocks > 0, model.len() > 1);
            }
        }
        let selection = selection(TimeRange::ALL, external);
        let mut cursor = node.engine.select(&selection).map_err(fail)?;
        let found = decoded(&all_bytes(&mut cursor, 1).map_err(fail)?).map_err(fail)?;
        let expected = model.iter().map(|(labels, samples)| {
            let pair = |(name, value): (&str, &str)| format!("{name}={value}");
            let labels: Vec<String> = labels.iter().map(pair).collect();
            (labels.join(","), samples.iter().map(|(t, bits)| (*t, *bits)).collect(), 0)
        });
        prop_assert_eq!(found, Answer(expected.collect()));
    }
}

#[test]
fn cursors_may_take_a_part_of_the_memory_only() -> Result<()> {
    let memory = MemoryBudget { bytes_max: 8 * 3 * 8, used_bytes: || 0 };
    let mut node = Node::with(HeadOptions { memory, ..OPTIONS });
    node.append("a", 1, 1);
    let selection = selection(TimeRange::ALL, Labels::default());
    let open: Vec<Cursor> =
        (0..3).map(|_| node.engine.select(&selection)).collect::<Result<_>>()?;
    assert!(matches!(node.engine.select(&selection), Err(Error::ShortOfMemory { .. })));
    drop(open);
    assert!(node.engine.select(&selection).is_ok());
    Ok(())
}
