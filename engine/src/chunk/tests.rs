use super::*;
use crate::codec::BitWriter;
use crate::model::Sample;
use proptest::prelude::*;

type TestResult = Result<(), Box<dyn std::error::Error>>;

fn encode(samples: &[Sample]) -> XorAppender {
    let mut appender = XorAppender::new();
    for sample in samples {
        appender.append(sample.timestamp_ms, sample.value);
    }
    appender
}

fn decode(data: &[u8]) -> Result<Vec<Sample>, ChunkError> {
    XorIter::new(data)?.collect()
}

/// Steps of every width, values that stay, creep and jump, any bit pattern.
fn any_samples() -> impl Strategy<Value = Vec<Sample>> {
    let step = prop_oneof![
        5 => Just(15_000i64),
        3 => 14_900i64..15_100,
        1 => 0i64..200_000,
        1 => 0i64..4_000_000,
        1 => any::<i64>(),
    ];
    let bits = prop_oneof![
        3 => Just(None),
        3 => (0u64..1000).prop_map(|n| Some((n as f64).to_bits())),
        2 => any::<u64>().prop_map(Some),
    ];
    prop::collection::vec((step, bits), 0..300).prop_map(|steps| {
        let (mut timestamp_ms, mut value_bits) = (1_700_000_000_000i64, 0u64);
        let mut next = |(step, bits): (i64, Option<u64>)| {
            timestamp_ms = timestamp_ms.wrapping_add(step);
            value_bits = bits.unwrap_or(value_bits);
            Sample { timestamp_ms, value: f64::from_bits(value_bits) }
        };
        steps.into_iter().map(&mut next).collect()
    })
}

proptest! {
    #[test]
    fn samples_come_back(samples in any_samples()) {
        let mut appender = XorAppender::new();
        for (i, sample) in samples.iter().enumerate() {
            appender.append(sample.timestamp_ms, sample.value);
            if i % 40 == 0 {
                prop_assert_eq!(&decode(&appender.data()), &Ok(samples[..=i].to_vec()));
            }
        }
        prop_assert_eq!(usize::from(appender.count()), samples.len());
        prop_assert_eq!(appender.first_timestamp_ms(), samples.first().map(|s| s.timestamp_ms));
        prop_assert_eq!(appender.last_timestamp_ms(), samples.last().map(|s| s.timestamp_ms));
        prop_assert_eq!(decode(&appender.data()), Ok(samples));
    }

    #[test]
    fn damage_is_survived(samples in any_samples(), byte: prop::sample::Index, bit in 0u32..8) {
        let mut data = encode(&samples).data();
        let at = byte.index(data.len());
        data[at] ^= 1u8 << bit;
        let read = XorIter::new(&data).map_or(0, Iterator::count);
        prop_assert!(read <= usize::from(u16::MAX));
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        let _ = decode(&bytes);
    }

    #[test]
    fn a_cut_is_noticed(samples in any_samples(), cut: prop::sample::Index) {
        let data = encode(&samples).data();
        let kept = cut.index(data.len());
        let result = decode(&data[..kept]);
        let all_bits_zero = matches!(&result, Ok(read) if read.is_empty() && samples.is_empty());
        prop_assert!(result.is_err() || all_bits_zero, "{kept} of {}", data.len());
    }
}

/// Bytes that Prometheus 3.15's promtool wrote (`tsdb create-blocks-from openmetrics`).
#[test]
fn the_bytes_are_upstreams() -> TestResult {
    let samples = [(1_700_000_000_000, 0.0), (1_700_000_015_000, 2.5)];
    let samples = samples.map(|(timestamp_ms, value)| Sample { timestamp_ms, value });
    let upstream = b"\x00\x02\x80\xa0\xab\xfe\xf9\x62\0\0\0\0\0\0\0\0\x98\x75\xc2\x6c\x00\x40";
    assert_eq!(encode(&samples).data(), upstream);
    assert_eq!(decode(upstream)?, samples);
    Ok(())
}

/// Prometheus, continuing a chunk after a restart, takes its window for "all 64 bits" if no value
/// has differed yet, and writes `10` without ever having written `11`.
#[test]
fn a_window_that_was_never_set_means_all_bits() -> TestResult {
    let mut data = encode(&[Sample { timestamp_ms: 0, value: 1.0 }]).data();
    data[1] = 2;
    data.push(5);
    let difference = 1.0f64.to_bits() ^ 3.5f64.to_bits();
    let position_bits = 8 * data.len() as u32;
    data.resize(data.len() + 18, 0);
    let mut writer = BitWriter::resume(&mut data, position_bits);
    writer.put(0b10, 2);
    writer.put(difference, 64);
    assert_eq!(decode(&data)?.last(), Some(&Sample { timestamp_ms: 5, value: 3.5 }));
    Ok(())
}

#[test]
fn errors_say_where() -> TestResult {
    assert_eq!(decode(&[0]), Err(ChunkError::NoHeader));
    let mut data = encode(&[Sample { timestamp_ms: 0, value: 1.0 }]).data();
    data[1] = 2;
    assert_eq!(decode(&data), Err(ChunkError::CutShort { sample: 1, count: 2 }));
    let histogram = Chunk {
        encoding: Encoding::Histogram,
        min_time_ms: 0,
        max_time_ms: 0,
        data: [0, 7].as_slice().into(),
    };
    assert_eq!(sample_count(&histogram)?, 7);
    let refused = samples(&histogram).err();
    assert_eq!(refused, Some(ChunkError::NotFloats { encoding: Encoding::Histogram }));
    Ok(())
}

#[test]
fn an_appender_stays_small() {
    assert!(size_of::<XorAppender>() <= 120, "{}", size_of::<XorAppender>());
    assert!(size_of::<ValueAppender>() <= 120, "{}", size_of::<ValueAppender>());
    let chunk = encode(&[Sample { timestamp_ms: 3, value: 1.0 }]).to_chunk();
    assert_eq!(chunk.map(|chunk| (chunk.min_time_ms, chunk.max_time_ms)), Some((3, 3)));
    assert_eq!(XorAppender::new().to_chunk(), None);
}

/// The largest sample, at every position in a page.
#[test]
fn the_widest_samples_fit_at_every_bit() {
    for regular in 0..500i64 {
        let mut samples: Vec<Sample> =
            (0..=regular).map(|step| Sample { timestamp_ms: step * 10, value: 1.0 }).collect();
        for wide in 1..12u64 {
            let timestamp_ms = regular * 10 + (1 << 50) * (wide * wide * wide) as i64;
            // Both ends of the difference are set, each in turn.
            let value = f64::from_bits(if wide % 2 == 0 { 1 << 63 | 1 } else { 0 });
            samples.push(Sample { timestamp_ms, value });
        }
        assert_eq!(decode(&encode(&samples).data()), Ok(samples));
    }
}
