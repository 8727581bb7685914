//! Lists of postings: intersections of lists of equal and of very different length.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tidepool_engine::index::{SeriesRef, difference, intersection};

fn every(step: usize) -> Vec<SeriesRef> {
    (0..100_000).step_by(step).map(SeriesRef).collect()
}

fn postings(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("postings of 100000 series");
    let all = every(1);
    for step in [2, 10_000] {
        let some = every(step);
        group.throughput(Throughput::Elements(all.len() as u64));
        let id = |what: &str| format!("{what} with every {step}.");
        group.bench_function(id("intersection"), |bencher| {
            bencher.iter(|| intersection(black_box(&all), black_box(&some)));
        });
        group.bench_function(id("difference"), |bencher| {
            bencher.iter(|| difference(black_box(&all), black_box(&some)));
        });
    }
    group.finish();
}

criterion_group!(benches, postings);
criterion_main!(benches);
