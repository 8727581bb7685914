//! Chunks of 120 floats: how long a sample takes to be packed, and to be unpacked.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tidepool_engine::chunk::{SAMPLES_PER_CHUNK, XorAppender, XorIter};
use tidepool_engine::codec::crc32c;
use tidepool_engine::model::Sample;

/// A counter that rises by whole numbers, and a gauge with all bits of its values in use.
fn shapes() -> [(&'static str, Vec<Sample>); 2] {
    let samples = |value: fn(i64) -> f64| {
        let sample = |i| Sample { timestamp_ms: 1_700_000_000_000 + i * 15_000, value: value(i) };
        (0..SAMPLES_PER_CHUNK as i64).map(sample).collect()
    };
    [
        ("counter", samples(|i| (1_000_000 + i * 37 + i % 5) as f64)),
        ("gauge", samples(|i| (i as f64 * 0.1).sin())),
    ]
}

fn packed(samples: &[Sample]) -> Vec<u8> {
    let mut appender = XorAppender::new();
    samples.iter().for_each(|sample| appender.append(sample.timestamp_ms, sample.value));
    appender.data()
}

fn chunks(criterion: &mut Criterion) {
    for (name, samples) in shapes() {
        let data = packed(&samples);
        let mut group = criterion.benchmark_group(format!("chunk of a {name}"));
        group.throughput(Throughput::Elements(samples.len() as u64));
        group.bench_function("append", |bencher| bencher.iter(|| packed(black_box(&samples))));
        group.bench_function("iterate", |bencher| {
            bencher.iter(|| XorIter::new(black_box(&data)).map(|all| all.flatten().count()));
        });
        group.throughput(Throughput::Bytes(data.len() as u64));
        group.bench_function("checksum", |bencher| bencher.iter(|| crc32c(black_box(&data))));
        group.finish();
    }
}

criterion_group!(benches, chunks);
criterion_main!(benches);
