use super::*;
use crate::chunk::{Chunk, XorAppender};
use crate::error::Result;
use crate::model::{Labels, Sample, TimeRange};
use crate::wire::ChunkedSeries;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn labels(name: &str) -> Labels {
    Labels::from_sorted([("__name__", name)])
}

fn chunk(samples: &[(i64, f64)]) -> Chunk {
    let mut appender = XorAppender::new();
    samples.iter().for_each(|(time, value)| appender.append(*time, *value));
    appender.to_chunk().expect("a chunk of at least one sample")
}

fn decoded(chunks: &[Chunk]) -> Vec<(i64, u64)> {
    let samples = chunks.iter().flat_map(|chunk| {
        crate::chunk::samples(chunk).expect("a chunk of floats").map(|s| s.expect("a sample"))
    });
    samples.map(|Sample { timestamp_ms, value }| (timestamp_ms, value.to_bits())).collect()
}

/// Returns the series it was made of.
struct Given {
    series: Vec<ChunkedSeries>,
    given: usize,
}

impl Given {
    fn boxed(series: Vec<(&str, Vec<Chunk>)>) -> Box<dyn SeriesSource> {
        let series =
            series.into_iter().map(|(name, chunks)| ChunkedSeries { labels: labels(name), chunks });
        Box::new(Given { series: series.collect(), given: 0 })
    }
}

impl SeriesSource for Given {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        self.given += 1;
        let next = self.series.get(self.given - 1);
        Ok(next.map(|ChunkedSeries { labels, chunks }| ChunkedSeries {
            labels: labels.clone(),
            chunks: chunks.clone(),
        }))
    }

    fn rewind(&mut self) -> Result<()> {
        self.given = 0;
        Ok(())
    }
}

#[test]
fn chunks_that_merging_left_outside_the_range_are_not_given() -> Result<()> {
    let every_other = |from: i64| (0..120).map(|i| (from + 2 * i, 0.5)).collect::<Vec<_>>();
    let of = |from: i64| vec![("a", vec![chunk(&every_other(from))])];
    let lonely = vec![("b", vec![chunk(&[(0, 0.5)]), chunk(&[(300, 0.5)])])];
    for (start_ms, expected) in [(200, vec!["a", "b"]), (250, vec!["b"]), (0, vec!["a", "b"])] {
        let range = TimeRange { start_ms, end_ms: 400 };
        let sources = vec![Given::boxed(of(0)), Given::boxed(of(1)), Given::boxed(lonely.clone())];
        let mut cursor = Cursor::new(
            Box::new(AllRead(Box::new(Merge::new(sources)?))),
            &Selection {
                matchers: Vec::new(),
                range,
                format: FrameFormat::StreamedChunks,
                query_index: 0,
                frame_bytes_max: 0,
                samples_max: 0,
                external: Labels::default(),
            },
        );
        let series = cursor.next(u32::MAX)?;
        let names: Vec<&str> = series.iter().map(|one| one.labels.get("__name__")).collect();
        assert_eq!(names, expected);
        let mut chunks = series.iter().flat_map(|one| &one.chunks);
        assert!(chunks.all(|chunk| chunk.max_time_ms >= start_ms));
    }
    Ok(())
}

#[test]
fn sources_are_merged_in_label_order_and_the_first_has_the_word() -> Result<()> {
    let head = vec![("a", vec![chunk(&[(10, 1.0), (20, 2.0)])]), ("c", vec![chunk(&[(5, 5.0)])])];
    let block = vec![("a", vec![chunk(&[(0, 0.0), (10, 9.0)])]), ("b", vec![chunk(&[(1, 1.0)])])];
    let mut merge = Merge::new(vec![Given::boxed(head), Given::boxed(block)])?;
    let mut seen = Vec::new();
    while let Some(series) = merge.next_series()? {
        seen.push((series.labels.get("__name__").to_owned(), decoded(&series.chunks)));
    }
    let bits =
        |rows: &[(i64, f64)]| rows.iter().map(|(t, v)| (*t, v.to_bits())).collect::<Vec<_>>();
    assert_eq!(
        seen,
        [
            ("a".to_owned(), bits(&[(0, 0.0), (10, 1.0), (20, 2.0)])),
            ("b".to_owned(), bits(&[(1, 1.0)])),
            ("c".to_owned(), bits(&[(5, 5.0)])),
        ]
    );
    Ok(())
}

#[test]
fn chunks_that_overlap_none_stay_as_they_are() -> Result<()> {
    let (early, late) = (chunk(&[(0, 1.0), (9, 1.0)]), chunk(&[(10, 1.0)]));
    let merged = merge_chunks(&labels("a"), vec![late.clone(), early.clone()])?;
    assert!(std::rc::Rc::ptr_eq(&merged[0].data, &early.data));
    assert!(std::rc::Rc::ptr_eq(&merged[1].data, &late.data));
    Ok(())
}

#[test]
fn a_samples_answer_has_a_limit() -> Result<()> {
    let selection = Selection {
        matchers: Vec::new(),
        range: TimeRange { start_ms: 1, end_ms: 3 },
        format: FrameFormat::Samples,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 3,
        external: Labels::default(),
    };
    let rows: Vec<_> = (0..5).map(|time| (time, 1.0)).collect();
    let source = || Given::boxed(vec![("a", vec![chunk(&rows)])]);
    let within = Cursor::new(Box::new(AllRead(source())), &selection).next_frames(1000)?;
    assert!(!within.is_empty());
    let selection = Selection { samples_max: 2, ..selection };
    let beyond = Cursor::new(Box::new(AllRead(source())), &selection).next_frames(1000);
    assert!(matches!(beyond, Err(crate::Error::LimitExceeded { max: 2, .. })));
    Ok(())
}

proptest! {
    #[test]
    fn merging_equals_a_map(runs in prop::collection::vec(
        prop::collection::btree_map(0i64..400, any::<u64>(), 1..150), 0..6,
    )) {
        let mut model = BTreeMap::new();
        let mut chunks = Vec::new();
        for run in &runs {
            let samples: Vec<_> = run.iter().map(|(t, bits)| (*t, f64::from_bits(*bits))).collect();
            chunks.push(chunk(&samples));
            for (time, bits) in run {
                model.entry(*time).or_insert(*bits);
            }
        }
        let merged = merge_chunks(&labels("a"), chunks).expect("sound chunks");
        prop_assert_eq!(decoded(&merged), model.into_iter().collect::<Vec<_>>());
        prop_assert!(merged.windows(2).all(|two| two[0].max_time_ms < two[1].min_time_ms));
    }
}
