use super::*;
use crate::chunk::varbit::BitBuffer;
use crate::chunk::{ChunkError, Encoding, SAMPLES_PER_CHUNK_MAX, encode, values};
use crate::model::Value;
use crate::model::histogram::testing::{TestCount, any_histograms, parse};
use crate::model::histogram::{FloatHistogram, Histogram, NativeHistogram};
use proptest::prelude::*;

type Rows<C> = Vec<(i64, NativeHistogram<C>)>;

fn encoded<C: ChunkCount>(rows: &Rows<C>) -> Vec<HistogramAppender<C>> {
    let mut chunks: Vec<HistogramAppender<C>> = Vec::new();
    for (timestamp_ms, histogram) in rows {
        let header = match chunks.last_mut().map(|open| open.append(*timestamp_ms, histogram)) {
            Some(Appended::Yes) => continue,
            Some(Appended::NeedsNewChunk(header)) => header,
            None => CounterHeader::of_first(histogram.reset_hint),
        };
        chunks.push(HistogramAppender::new(*timestamp_ms, histogram, header));
    }
    chunks
}

fn decoded<C: ChunkCount>(data: &[u8]) -> Result<Rows<C>, ChunkError> {
    HistogramIter::new(data)?.collect()
}

fn comes_back<C: ChunkCount>(rows: &Rows<C>) -> Result<(), TestCaseError> {
    let chunks = encoded(rows);
    let mut read: Rows<C> = Vec::new();
    for chunk in &chunks {
        let part = decoded(chunk.data()).expect("a sound chunk");
        prop_assert_eq!(part.len(), usize::from(chunk.count()));
        prop_assert_eq!(part[0].0, chunk.first_timestamp_ms());
        prop_assert_eq!(part[part.len() - 1].0, chunk.last_timestamp_ms());
        for (i, (_, histogram)) in part.iter().enumerate() {
            let wanted = chunk.header().hint_at(i as u16);
            prop_assert!(histogram.is_stale() || histogram.reset_hint == wanted);
        }
        read.extend(part);
    }
    prop_assert_eq!(read.len(), rows.len());
    for ((time, wanted), (read_time, read)) in rows.iter().zip(&read) {
        prop_assert_eq!(time, read_time);
        prop_assert!(wanted.same_observations(read), "{wanted:?} became {read:?}");
        prop_assert_eq!(read.check_shape(), Ok(()));
    }
    Ok(())
}

fn damage_is_survived<C: ChunkCount>(rows: &Rows<C>, at: usize, bit: u8, cut: usize) {
    for chunk in encoded(rows) {
        let mut data = chunk.data().to_vec();
        let bytes = data.len();
        data[at % bytes] ^= 1 << bit;
        let _ = decoded::<C>(&data);
        let _ = decoded::<C>(&chunk.data()[..cut % bytes]);
        // The other kind's bytes are hostile ones.
        let _ = decoded::<u64>(&data);
        let _ = decoded::<f64>(&data);
    }
}

/// No sample is made of bits after a cut, except of the cut byte's free bits.
fn a_cut_is_noticed<C: ChunkCount>(rows: &Rows<C>, cut: usize) -> Result<(), TestCaseError> {
    for chunk in encoded(rows) {
        let kept = cut % chunk.data().len();
        prop_assert!(decoded::<C>(&chunk.data()[..kept]).is_err());
    }
    Ok(())
}

proptest! {
    #[test]
    fn whole_counts_come_back(rows in any_histograms::<u64>()) {
        comes_back(&rows)?;
    }

    #[test]
    fn fractional_counts_come_back(rows in any_histograms::<f64>()) {
        comes_back(&rows)?;
    }

    #[test]
    fn damaged_chunks_are_survived(
        whole in any_histograms::<u64>(),
        fractions in any_histograms::<f64>(),
        at: usize, bit in 0u8..8, cut: usize,
    ) {
        damage_is_survived(&whole, at, bit, cut);
        damage_is_survived(&fractions, at, bit, cut);
        a_cut_is_noticed(&whole, cut)?;
        a_cut_is_noticed(&fractions, cut)?;
    }

    #[test]
    fn any_bytes_are_survived(mut bytes: Vec<u8>, count in 0u8..9) {
        if let Some(low) = bytes.get_mut(1) {
            *low = count;
        }
        let _ = decoded::<u64>(&bytes);
        let _ = decoded::<f64>(&bytes);
    }

    #[test]
    fn values_of_mixed_kinds_come_back(
        whole in any_histograms::<u64>(),
        fractions in any_histograms::<f64>(),
        numbers: Vec<f64>,
    ) {
        let numbers = numbers.into_iter().map(Value::from);
        let whole = whole.into_iter().map(|(_, histogram)| u64::value(histogram));
        let fractions = fractions.into_iter().map(|(_, histogram)| f64::value(histogram));
        let all = numbers.chain(whole).chain(fractions).zip(0i64..);
        let rows: Vec<(i64, Value)> = all.map(|(value, time)| (time, value)).collect();
        let chunks = encode(rows.iter().cloned());
        let mut read = Vec::new();
        for chunk in &chunks {
            let part: Result<Vec<_>, _> = values(chunk).expect("a header").collect();
            let part = part.expect("a sound chunk");
            prop_assert_eq!((part[0].0, part[part.len() - 1].0), (chunk.min_time_ms, chunk.max_time_ms));
            read.extend(part);
        }
        prop_assert_eq!(read.len(), rows.len());
        for ((time, wanted), (read_time, read)) in rows.iter().zip(&read) {
            prop_assert_eq!(time, read_time);
            prop_assert!(wanted.same_observations(read));
        }
    }
}

fn counter(buckets: &[(i32, u64)], hint: u8) -> Histogram {
    let mut next = 0;
    let mut spans = Vec::new();
    for (index, _) in buckets {
        spans.push(format!("{}:1", index - next));
        next = index + 1;
    }
    let total: u64 = buckets.iter().map(|(_, count)| count).sum();
    let mut before = 0;
    let deltas = buckets.iter().map(|(_, count)| {
        let delta = *count as i64 - before;
        before = *count as i64;
        delta.to_string()
    });
    let deltas = deltas.collect::<Vec<_>>().join(",");
    parse(&format!("{hint};0;0;0;{total};0;[{}];[];[{deltas}];[];[]", spans.join(",")))
}

fn begun(histogram: &Histogram) -> HistogramAppender<u64> {
    HistogramAppender::new(0, histogram, CounterHeader::of_first(histogram.reset_hint))
}

#[test]
fn new_buckets_do_not_begin_a_new_chunk() {
    let mut chunk = begun(&counter(&[(0, 5)], 0));
    for (time, buckets) in [(1, [(0, 5), (7, 1)]), (2, [(-3, 2), (0, 6)])] {
        let outcome = chunk.append(time, &counter(&buckets, 0));
        // A bucket that is gone was a counter that went down.
        let wanted = match time {
            1 => Appended::Yes,
            _ => Appended::NeedsNewChunk(CounterHeader::Reset),
        };
        assert_eq!(outcome, wanted);
    }
    assert_eq!(chunk.append(3, &counter(&[(-3, 2), (0, 6), (7, 1)], 0)), Appended::Yes);
    assert_eq!(
        chunk.append(4, &counter(&[(0, 9), (7, 1)], 0)),
        Appended::NeedsNewChunk(CounterHeader::Reset)
    );
    let read = decoded::<u64>(chunk.data()).expect("a sound chunk");
    let lens: Vec<_> = read.iter().map(|(_, h)| h.positive_buckets.len()).collect();
    assert_eq!(lens, [3, 3, 3]);
}

#[test]
fn headers_say_what_became_of_the_counter() {
    use CounterHeader::{Gauge, NotReset, Reset, Unknown};
    let first = counter(&[(0, 5)], 0);
    let (more, less) = (counter(&[(0, 6)], 0), counter(&[(0, 4)], 0));
    let says_reset = counter(&[(0, 9)], 1);
    let gauge = counter(&[(0, 1)], 3);
    let stale = Histogram::stale();
    let wider = Histogram {
        layout: crate::model::histogram::BucketLayout {
            zero_threshold: 0.5,
            ..(*more.layout).clone()
        }
        .into(),
        ..more.clone()
    };
    let chunk = begun(&first);
    for (next, wanted, after_full) in [
        (&more, Appended::Yes, NotReset),
        (&less, Appended::NeedsNewChunk(Reset), Reset),
        (&says_reset, Appended::NeedsNewChunk(Reset), Reset),
        (&gauge, Appended::NeedsNewChunk(Gauge), Gauge),
        (&wider, Appended::NeedsNewChunk(Unknown), Unknown),
        (&stale, Appended::Yes, NotReset),
    ] {
        assert_eq!(chunk.clone().append(1, next), wanted, "{next:?}");
        assert_eq!(chunk.header_of_next(next), after_full, "{next:?}");
    }
    let mut ended = chunk;
    assert_eq!(ended.append(1, &stale), Appended::Yes);
    assert_eq!(ended.append(2, &stale), Appended::Yes);
    assert_eq!(ended.append(3, &more), Appended::NeedsNewChunk(Unknown));
    let gauges = begun(&gauge);
    assert_eq!((gauges.header(), gauges.header_of_next(&more)), (Gauge, Unknown));
}

#[test]
fn a_full_chunk_takes_no_more() {
    let histogram = counter(&[(0, 5)], 0);
    let mut chunk = begun(&histogram);
    for time in 1..i64::from(SAMPLES_PER_CHUNK_MAX) {
        assert_eq!(chunk.append(time, &histogram), Appended::Yes);
    }
    let outcome = chunk.append(1 << 20, &histogram);
    assert_eq!(outcome, Appended::NeedsNewChunk(CounterHeader::NotReset));
    assert_eq!(chunk.count(), SAMPLES_PER_CHUNK_MAX);
    let chunk = chunk.to_chunk();
    assert_eq!(
        (chunk.encoding, chunk.min_time_ms, chunk.max_time_ms),
        (Encoding::Histogram, 0, 65_534)
    );
}

fn hostile(put: impl Fn(&mut BitBuffer)) -> Vec<u8> {
    let mut out = BitBuffer::default();
    out.put(1 << 8, 24);
    out.put(0, 8);
    put(&mut out);
    out.data().to_vec()
}

#[test]
fn lies_about_sizes_cost_nothing() {
    let many_buckets = hostile(|out| {
        out.put_varbit_int(0);
        out.put_varbit_uint(2);
        for _ in 0..2 {
            out.put_varbit_uint(u64::from(u32::MAX));
            out.put_varbit_int(0);
        }
        out.put_varbit_uint(0);
    });
    assert!(matches!(decoded::<u64>(&many_buckets), Err(ChunkError::BadLayout { .. })));
    assert!(matches!(decoded::<f64>(&many_buckets), Err(ChunkError::BadLayout { .. })));
    let many_spans = hostile(|out| {
        out.put_varbit_int(0);
        out.put_varbit_uint(u64::MAX);
    });
    assert!(matches!(
        decoded::<u64>(&many_spans),
        Err(ChunkError::CutShort { sample: 0, count: 1 })
    ));
    let many_bounds = hostile(|out| {
        out.put_varbit_int(-53);
        out.put(0, 2);
        out.put_varbit_uint(u64::MAX);
    });
    assert!(matches!(decoded::<u64>(&many_bounds), Err(ChunkError::CutShort { .. })));
    let unknown =
        hostile(|out| out.put_varbit_int(-54)).into_iter().chain([0; 9]).collect::<Vec<_>>();
    assert_eq!(decoded::<u64>(&unknown), Err(ChunkError::UnknownSchema { schema: -54 }));
    assert_eq!(decoded::<u64>(&[0, 1]), Err(ChunkError::NoHeader));
}

#[test]
fn finer_schemas_are_brought_down_when_read() {
    let mut fine = parse::<f64>(
        "0;20;0;0;0;0;[1:3];[];[3ff0000000000000,3ff0000000000000,3ff0000000000000];[];[]",
    );
    let chunk = HistogramAppender::new(5, &fine, CounterHeader::Unknown);
    let read: Vec<(i64, FloatHistogram)> = decoded(chunk.data()).expect("a sound chunk");
    fine.limit_resolution().expect("sound buckets");
    assert_eq!(read, [(5, fine)]);
}
