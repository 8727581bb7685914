//! Our chunks against those of upstream's packages.

use super::*;
use crate::model::histogram::testing::{Run, TestCount, UPSTREAM, parse, upstream_runs};

/// Like a head, cuts a chunk after a number of samples, or when the appender asks for it.
fn chunks_of<C: ChunkCount + TestCount>(run: &Run<'_>) -> Vec<Vec<u8>> {
    let mut done = Vec::new();
    let mut open: Option<HistogramAppender<C>> = None;
    for (timestamp_ms, text) in &run.samples {
        let histogram = parse::<C>(text);
        let header = match &mut open {
            None => CounterHeader::of_first(histogram.reset_hint),
            Some(appender) if appender.count() == run.cut => appender.header_of_next(&histogram),
            Some(appender) => match appender.append(*timestamp_ms, &histogram) {
                Appended::Yes => continue,
                Appended::NeedsNewChunk(header) => header,
            },
        };
        let next = HistogramAppender::new(*timestamp_ms, &histogram, header);
        done.extend(open.replace(next).map(|full| full.data().to_vec()));
    }
    done.extend(open.map(|last| last.data().to_vec()));
    done
}

/// Whether upstream claims more than it knows, as [`CounterHeader`] describes.
fn is_bolder(upstream: CounterHeader, ours: CounterHeader) -> bool {
    ours == upstream || (upstream, ours) == (CounterHeader::NotReset, CounterHeader::Unknown)
}

fn encodes_as_upstream<C: ChunkCount + TestCount>(run: &Run<'_>) {
    let ours = chunks_of::<C>(run);
    let firsts = run.chunks.iter().map(|(_, read)| read[0].0);
    for ((upstream, first_ms), ours) in run.chunks.iter().map(|(c, _)| c).zip(firsts).zip(&ours) {
        assert_eq!(ours[..2], upstream[..2], "samples from {first_ms} on");
        assert_eq!(ours[HEADER_BYTES..], upstream[HEADER_BYTES..], "samples from {first_ms} on");
        let headers = [upstream, ours].map(|chunk| CounterHeader::from_byte(chunk[2]));
        let (_, first) = run.samples.iter().find(|(t, _)| *t == first_ms).expect("a sample");
        // A gauge chunk hides from upstream that a sample says of itself to be a reset.
        let says_reset = parse::<C>(first).reset_hint == ResetHint::Reset;
        let expected =
            is_bolder(headers[0], headers[1]) || (says_reset && headers[1] == CounterHeader::Reset);
        assert!(expected, "{headers:?} at {first_ms}");
    }
    assert_eq!(ours.len(), run.chunks.len());
}

fn reads_as_upstream<C: ChunkCount + TestCount>(run: &Run<'_>) {
    for (chunk, wanted) in &run.chunks {
        let read: Result<Vec<_>, _> =
            HistogramIter::<C>::new(chunk).expect("a whole header").collect();
        let wanted: Vec<_> = wanted.iter().map(|(time, text)| (*time, parse(text))).collect();
        assert_eq!(read.as_ref(), Ok(&wanted));
    }
}

#[test]
fn chunks_are_upstreams() {
    let runs = upstream_runs();
    assert!(runs.len() >= 10 && UPSTREAM.contains("\nchunk "));
    for run in runs {
        match run.is_float {
            true => encodes_as_upstream::<f64>(&run),
            false => encodes_as_upstream::<u64>(&run),
        }
    }
}

#[test]
fn chunks_read_as_upstream_reads_them() {
    for run in upstream_runs() {
        match run.is_float {
            true => reads_as_upstream::<f64>(&run),
            false => reads_as_upstream::<u64>(&run),
        }
    }
}
