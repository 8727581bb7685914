//! Guards the engine's speed: the component's cost of a fixed piece of work, in WebAssembly
//! instructions.
//!
//! Seconds differ from machine to machine and hour to hour; these counts only depend on compiler
//! and sources. `expected.txt` holds them, and a count that differs by more than
//! [`expected::TOLERANCE_PERCENT`] fails, upwards and downwards: a gain that is not recorded could
//! be lost unnoticed. To accept new counts, which are then committed, with the reason if one is
//! higher:
//!
//! ```text
//! cargo build-component && ACCEPT_COUNTS='why' cargo test --release --workspace --test instructions
//! ```
//!
//! A copied byte counts as an instruction. Not counted: the host's work, and the time that an
//! instruction takes (a cache miss, a wide operation). Benchmarks show those.

mod component;
mod expected;

use component::{BLOCK_DURATION_MS, Instance, Runtime};
use embed_rust::bindings::exports::tidepool::tsdb::store::{FrameFormat, RemoteWriteVersion};
use embed_rust::bindings::tidepool::tsdb::types::{MatchOp, Matcher, TimeRange};
use embed_rust::storage::Storage;
use expected::Counts;
use tidepool_tests::remote_write::{Version, message_bytes};
use tidepool_tests::series::{Dataset, Shape, Texture};
use wasmtime::Result;

const SERIES: usize = 1000;
/// Gives 120 samples of each series in a block.
const INTERVAL_MS: i64 = 60_000;
/// A multiple of the span of three blocks, which are merged into one.
const START_MS: i64 = 83_333 * 3 * BLOCK_DURATION_MS;
/// Number of scrapes: four blocks are cut from them, the rest stays in the head.
const SCRAPES: usize = 570;
const BLOCKS: i64 = 4;

/// Generated samples, and the requests that carry them, one for each scrape.
struct Input {
    now_ms: i64,
    samples: u64,
    bodies: [Vec<Vec<u8>>; 2],
}

impl Input {
    fn new() -> Input {
        let data = Dataset::generate(Shape {
            seed: 1,
            series: SERIES,
            scrapes: SCRAPES,
            start_ms: START_MS,
            interval_ms: INTERVAL_MS,
            texture: Texture::Regular,
        });
        let bodies = |version| {
            data.requests(SERIES).iter().map(|rows| message_bytes(version, rows)).collect()
        };
        Input {
            now_ms: START_MS + SCRAPES as i64 * INTERVAL_MS,
            samples: data.sample_count(),
            bodies: Version::ALL.map(bodies),
        }
    }
}

fn append(
    instance: &mut Instance,
    version: RemoteWriteVersion,
    bodies: &[Vec<u8>],
    now_ms: i64,
) -> Result<()> {
    for body in bodies {
        let outcome = instance.append(version, body, now_ms)?;
        assert_eq!((outcome.samples_written, outcome.refused), (SERIES as u64, 0));
    }
    Ok(())
}

/// Appends everything to an empty store: the first scrape creates the series, the others use them.
fn count_appends(
    runtime: &Runtime,
    input: &Input,
    version: RemoteWriteVersion,
    counts: &mut Counts,
) -> Result<Storage> {
    let (name, bodies) = match version {
        RemoteWriteVersion::V1 => ("1.0", &input.bodies[0]),
        RemoteWriteVersion::V2 => ("2.0", &input.bodies[1]),
    };
    let (first, others) = bodies.split_at(1);
    let mut instance = runtime.open(Storage::default(), 0)?;
    instance.replay()?;
    let created = instance.count(|i| append(i, version, first, input.now_ms))?;
    counts.add(&format!("append {name}, new series"), created, SERIES as u64);
    let appended = instance.count(|i| append(i, version, others, input.now_ms))?;
    counts.add(&format!("append {name}"), appended, input.samples - SERIES as u64);
    Ok(instance.into_storage())
}

fn count_selects(
    instance: &mut Instance,
    place: &str,
    range: TimeRange,
    counts: &mut Counts,
) -> Result<()> {
    let samples = ((range.end_ms - range.start_ms + 1) / INTERVAL_MS) as u64 * SERIES as u64;
    let all = [
        ("streamed", FrameFormat::StreamedChunks),
        ("SAMPLES", FrameFormat::Samples),
        ("as a query instance asks", FrameFormat::ChunkedSeries),
    ];
    for (name, format) in all {
        let count = instance.count(|i| {
            let bytes = i.select(format, Vec::new(), range)?;
            assert!(bytes > samples, "{bytes} bytes of {samples} samples");
            Ok(())
        })?;
        counts.add(&format!("select from {place}, {name}"), count, samples);
    }
    let few = Matcher { name: "mode".into(), op: MatchOp::Regex, value: "i.*".into() };
    let count = instance.count(|i| {
        let bytes = i.select(FrameFormat::StreamedChunks, vec![few], range)?;
        assert!(bytes > 0 && bytes < samples, "{bytes} bytes of {samples} samples");
        Ok(())
    })?;
    counts.add(&format!("select from {place}, few series by a regex"), count, SERIES as u64);
    Ok(())
}

/// Does all of the work and counts it.
fn count() -> Result<Counts> {
    let input = Input::new();
    let runtime = Runtime::new()?;
    let mut counts = Counts::default();
    count_appends(&runtime, &input, RemoteWriteVersion::V1, &mut counts)?;
    let storage = count_appends(&runtime, &input, RemoteWriteVersion::V2, &mut counts)?;

    let mut instance = runtime.open(storage, BLOCK_DURATION_MS)?;
    let replayed = instance.count(|i| {
        assert_eq!(i.replay()?, input.samples);
        Ok(())
    })?;
    counts.add("replay", replayed, input.samples);
    let head = TimeRange { start_ms: START_MS, end_ms: input.now_ms - 1 };
    count_selects(&mut instance, "the head", head, &mut counts)?;

    let mut saved = Vec::new();
    let saving = instance.count(|i| {
        saved = i.save_head()?;
        Ok(())
    })?;
    counts.add("save the head", saving, input.samples);
    let mut instance = runtime.open(instance.into_storage(), BLOCK_DURATION_MS)?;
    let loading = instance.count(|i| {
        assert!(i.load_head(&saved)?, "the head is whole");
        Ok(())
    })?;
    counts.add("load a saved head", loading, input.samples);

    // With this longest span blocks do not grow, so only cuts are counted.
    let block_samples = BLOCK_DURATION_MS as u64 / INTERVAL_MS as u64 * SERIES as u64;
    let cut = instance.count(|i| {
        assert_eq!(i.compact(input.now_ms)?, vec![1; BLOCKS as usize]);
        Ok(())
    })?;
    counts.add("compact, cut", cut, BLOCKS as u64 * block_samples);

    // Nothing is left to cut, so only one merge is counted.
    let mut instance = runtime.open(instance.into_storage(), 0)?;
    instance.replay()?;
    let blocks =
        TimeRange { start_ms: START_MS, end_ms: START_MS + BLOCKS * BLOCK_DURATION_MS - 1 };
    count_selects(&mut instance, "blocks", blocks, &mut counts)?;
    let merged = instance.count(|i| {
        assert_eq!(i.compact(input.now_ms)?, [2]);
        Ok(())
    })?;
    counts.add("compact, merge", merged, 3 * block_samples);
    Ok(counts)
}

#[test]
fn no_work_takes_more_or_fewer_instructions_than_written_down() {
    let counts = count().expect("the component does the work");
    print!("{counts}");
    let expected = include_str!("expected.txt");
    let judged = match std::env::var(expected::ACCEPT_VARIABLE) {
        Ok(reason) => counts.accept(expected, &reason),
        Err(_) => counts.judge(expected),
    };
    if let Err(failure) = judged {
        panic!("{failure}");
    }
}
