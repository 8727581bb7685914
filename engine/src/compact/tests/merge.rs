//! Merged blocks against a plain map, and the effects of damage.

use super::*;
use crate::chunk::sample_count;
use proptest::prelude::*;

pub(super) fn fail(error: Box<dyn std::error::Error>) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

/// Blocks of few series over times that overlap, with chunks of some length.
pub(super) fn any_blocks() -> impl Strategy<Value = Vec<(Model, usize)>> {
    let samples = prop::collection::btree_map(0i64..2000, any::<u64>(), 0..300);
    let model = prop::collection::btree_map("[a-e]", samples, 0..5);
    prop::collection::vec((model, 1usize..200), 1..5)
}

/// Deletions as series, start and length.
fn any_deletions() -> impl Strategy<Value = Vec<(u8, i64, i64)>> {
    prop::collection::vec((0u8..5, 0i64..2000, 0i64..500), 0..4)
}

pub(super) fn delete(
    blocks: &dyn Blocks,
    (series, start_ms, len_ms): (u8, i64, i64),
) -> TestResult {
    let value = char::from(b'a' + series).to_string();
    let op = crate::model::MatchOp::Equal;
    let spec = crate::model::MatcherSpec { name: "n".to_owned(), op, value };
    let range = TimeRange { start_ms, end_ms: start_ms + len_ms };
    delete_from_blocks(blocks, &[vec![crate::model::Matcher::new(&spec)?]], range)?;
    Ok(())
}

/// Returns the union of models: of two samples at one time, that of the later model. Deletions
/// apply to all models and include both ends.
pub(super) fn united<'a>(
    models: impl IntoIterator<Item = &'a Model>,
    deletions: &[(u8, i64, i64)],
) -> Model {
    let mut united = Model::new();
    for (name, samples) in models.into_iter().flatten() {
        united.entry(name.clone()).or_default().extend(samples);
    }
    for (series, start_ms, len_ms) in deletions {
        let name = char::from(b'a' + series).to_string();
        if let Some(samples) = united.get_mut(&name) {
            samples.retain(|time_ms, _| *time_ms < *start_ms || *time_ms > start_ms + len_ms);
        }
    }
    united.retain(|_, samples| !samples.is_empty());
    united
}

fn check(all: &[(Model, usize)], deletions: &[(u8, i64, i64)], per_chunk: usize) -> TestResult {
    let blocks = MemoryBlocks::default();
    let mut newest = None;
    for (model, samples_per_chunk) in all {
        let range = if model.values().all(BTreeMap::is_empty) { 0..1 } else { 0..2000 };
        newest = Some(write(&blocks, model, *samples_per_chunk, range)?.ulid);
    }
    deletions.iter().try_for_each(|deletion| delete(&blocks, *deletion))?;
    let expected = united(all.iter().map(|(model, _)| model), deletions);
    assert_eq!(read(&blocks)?, expected, "before the merge");
    let samples: usize = expected.values().map(BTreeMap::len).sum();
    let plan = plan_all(&blocks)?;
    let mut merge =
        BlockMerge::new(Rc::new(blocks.clone()), plan, 7)?.with_samples_per_chunk(per_chunk);
    let child = run(&mut merge)?;
    assert_eq!(read(&blocks)?, expected);
    let Some(child) = child else {
        assert_eq!((samples, blocks.list()?.len()), (0, 0));
        return Ok(());
    };
    assert_eq!(child.stats.num_samples, samples as u64);
    assert_eq!(child.stats.num_series, expected.len() as u64);
    assert_eq!(child.compaction.level, 2);
    assert_eq!(Some(child.newest_source()), newest.as_deref());
    assert_eq!(BlockReader::open(&blocks, &child.ulid)?.meta(), &child);
    assert_eq!(blocks.list()?, [child.ulid]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn merging_equals_a_map(
        all in any_blocks(),
        deletions in any_deletions(),
        per_chunk in prop::sample::select(vec![0usize, 120, 480, 5000]),
    ) {
        check(&all, &deletions, per_chunk).map_err(fail)?;
    }
}

#[test]
fn untouched_chunks_are_copied_and_small_ones_joined() -> TestResult {
    let blocks = MemoryBlocks::default();
    let samples = |range: std::ops::Range<i64>| range.map(|i| (i * 15_000, (i as f64).to_bits()));
    let big: BTreeMap<i64, u64> = samples(0..500).collect();
    let small: BTreeMap<i64, u64> = samples(500..740).collect();
    let histograms = vec![histogram_chunk(0, 9, 5, 1), histogram_chunk(10, 4_499_999, 120, 2)];
    let later = vec![histogram_chunk(7_500_000, 11_099_999, 3, 3)];
    let first = [(labels("a"), xor_chunks(&big, 500)), (labels("h"), histograms.clone())];
    let second =
        [(labels("a"), xor_chunks(&small, SAMPLES_PER_CHUNK)), (labels("h"), later.clone())];
    write_chunks(&blocks, &first, 0..7_500_000)?;
    write_chunks(&blocks, &second, 7_500_000..11_100_000)?;
    let child = run(&mut BlockMerge::new(Rc::new(blocks.clone()), plan_all(&blocks)?, 7)?)?;
    let child = child.ok_or("no block")?;
    assert_eq!((child.stats.num_chunks, child.stats.num_histogram_samples), (5, 128));
    let block = BlockReader::open(&blocks, &child.ulid)?;
    let mut read = Vec::new();
    for series in block.select(&[])? {
        let (_, metas) = block.series(series)?;
        read.push(metas.iter().map(|meta| block.chunk(meta)).collect::<Result<Vec<_>, _>>()?);
    }
    assert_eq!(read[0][0], first[0].1[0]);
    assert_eq!(sample_count(&read[0][1])?, 240);
    assert_eq!(read[1], [histograms, later].concat());
    Ok(())
}

/// More series and more values than a slice handles, which bounds the number of steps.
#[test]
fn work_is_done_in_slices() -> TestResult {
    let blocks = MemoryBlocks::default();
    let samples = |n: i64| BTreeMap::from([(n, 1), (n + 1, 2)]);
    let model =
        |from: i64| -> Model { (0..2500).map(|i| (format!("{i:04}"), samples(from))).collect() };
    write(&blocks, &model(0), 10, 0..10)?;
    write(&blocks, &model(10), 10, 10..20)?;
    let expected = united([&model(0), &model(10)], &[]);
    let mut merge = BlockMerge::new(Rc::new(blocks.clone()), plan_all(&blocks)?, 7)?;
    let mut series = Vec::new();
    loop {
        let progress = merge.step(NOW_MS)?;
        series.push(progress.series);
        if progress.done {
            break;
        }
    }
    assert_eq!(series, [0, 1000, 2000, 2500, 0]);
    assert_eq!(merge.step(NOW_MS)?, MergeProgress { done: true, ..MergeProgress::default() });
    assert_eq!(read(&blocks)?, expected);
    Ok(())
}

fn damage(
    blocks: &MemoryBlocks,
    block: &str,
    file: &str,
    offset: usize,
) -> TestResult<MemoryBlocks> {
    let damaged = MemoryBlocks::default();
    let mut names = BTreeMap::new();
    for ulid in blocks.list()? {
        let mut writer = damaged.create(NOW_MS)?;
        for name in ["meta.json", "index", "chunks/000001", "tombstones"] {
            let content = blocks.open(&ulid, name)?;
            let mut bytes = content.read_at(0, content.size() as u32)?;
            if ulid == block && name == file {
                bytes[offset] ^= 0x55;
            }
            writer.write_at(name, 0, &bytes)?;
        }
        names.insert(ulid, writer.id().to_owned());
        writer.commit()?;
    }
    assert!(names.iter().all(|(before, after)| before == after), "{names:?}");
    Ok(damaged)
}

#[test]
fn a_damaged_block_is_named_and_no_other_is_touched() -> TestResult {
    let sound = MemoryBlocks::default();
    let model = |range: std::ops::Range<i64>| -> Model {
        let samples = || range.clone().map(|time| (time, 7)).collect();
        ["a", "b", "c"].map(|name| (name.to_owned(), samples())).into()
    };
    for from in [0, 100, 200] {
        write(&sound, &model(from..from + 100), 50, from..from + 100)?;
    }
    let ulids = sound.list()?;
    for (file, offset) in [
        ("meta.json", 0),
        ("index", 0),
        ("index", 300),
        ("chunks/000001", 1),
        ("chunks/000001", 60),
        ("tombstones", 0),
    ] {
        let blocks = damage(&sound, &ulids[1], file, offset)?;
        let plan = plan_all(&sound)?;
        let mut merge = BlockMerge::new(Rc::new(blocks.clone()), plan, 7);
        let ended = merge.as_mut().map_err(|_| ()).map(run);
        let bad = match (ended, merge) {
            (Ok(Err(MergeError::BadParent(bad))), _) | (_, Err(MergeError::BadParent(bad))) => bad,
            (ended, _) => return Err(format!("{file} at {offset}: {ended:?}").into()),
        };
        assert_eq!((&bad.block, bad.file.as_deref()), (&ulids[1], Some(file)), "{bad}");
        assert!(bad.reason.contains(file), "{bad}");
        assert_eq!(blocks.list()?, ulids, "no block came or went");

        // The others can be merged without it.
        let found = survey(&blocks)?;
        assert_eq!(found.bad.len(), usize::from(file == "meta.json" || file == "tombstones"));
        let others: Vec<_> = found.metas.iter().filter(|meta| meta.ulid != bad.block).collect();
        let plan = Plan::of(Reason::Level, &others).ok_or("no block")?;
        run(&mut BlockMerge::new(Rc::new(blocks.clone()), plan, 7)?)?;
        assert_eq!(blocks.list()?.len(), 2);
    }
    Ok(())
}

/// The checksum matches, but the content does not decode.
#[test]
fn a_chunk_that_does_not_decode_is_found() -> TestResult {
    let blocks = MemoryBlocks::default();
    let samples = |range: std::ops::Range<i64>| range.map(|time| (time, time as u64)).collect();
    let sound = xor_chunks(&samples(0..50), 50);
    write_chunks(&blocks, &[(labels("a"), sound)], 0..50)?;
    let mut broken = xor_chunks(&samples(50..100), 50);
    broken[0].data = broken[0].data[..40].into();
    let bad_ulid = write_chunks(&blocks, &[(labels("a"), broken)], 50..100)?.ulid;
    let mut merge = BlockMerge::new(Rc::new(blocks.clone()), plan_all(&blocks)?, 7)?;
    let Err(MergeError::BadParent(bad)) = run(&mut merge) else { return Err("not found".into()) };
    assert_eq!(bad.block, bad_ulid);
    assert_eq!((bad.file.as_deref(), bad.offset), (Some("chunks/000001"), Some(8)));
    assert_eq!(blocks.list()?.len(), 2);
    Ok(())
}

#[test]
fn samples_outside_of_a_blocks_range_are_its_fault() -> TestResult {
    let blocks = MemoryBlocks::default();
    let model = Model::from([("a".to_owned(), (0..50).map(|time| (time, 1)).collect())]);
    let ulid = write(&blocks, &model, 50, 0..50)?.ulid;
    let file = blocks.open(&ulid, "meta.json")?;
    let json = String::from_utf8(file.read_at(0, file.size() as u32)?)?;
    let edited = json.replace("\"maxTime\": 50", "\"maxTime\": 49");
    assert_ne!(json, edited);
    let other = MemoryBlocks::default();
    let mut writer = other.create(NOW_MS)?;
    for name in ["index", "chunks/000001", "tombstones"] {
        let file = blocks.open(&ulid, name)?;
        writer.write_at(name, 0, &file.read_at(0, file.size() as u32)?)?;
    }
    writer.write_at("meta.json", 0, edited.as_bytes())?;
    writer.commit()?;
    let mut merge = BlockMerge::new(Rc::new(other.clone()), plan_all(&other)?, 7)?;
    let ended = run(&mut merge);
    assert!(matches!(&ended, Err(MergeError::BadParent(bad)) if bad.block == ulid), "{ended:?}");
    assert_eq!(other.list()?, [ulid]);
    Ok(())
}

#[test]
fn sizes_are_those_of_all_files() -> TestResult {
    let blocks = MemoryBlocks::default();
    let model = Model::from([("a".to_owned(), (0..50).map(|time| (time, 1)).collect())]);
    let ulid = write(&blocks, &model, 50, 0..50)?.ulid;
    let mut bytes = 0;
    for name in ["meta.json", "index", "chunks/000001", "tombstones"] {
        bytes += blocks.open(&ulid, name)?.size();
    }
    assert_eq!(block_bytes(&blocks, &ulid)?, bytes);
    Ok(())
}

/// The smallest compactor merges the blocks of a small node.
#[test]
fn small_blocks_are_merged_in_little_memory() -> TestResult {
    for (block_count, memory_bytes_max, fits) in
        [(3, 8 << 20, true), (10, 12 << 20, true), (3, 0, false)]
    {
        let blocks = MemoryBlocks::default();
        for _ in 0..block_count {
            let samples: BTreeMap<i64, u64> = (0..100).map(|time_ms| (time_ms, 1)).collect();
            let model = (0..200).map(|series| (format!("{series:05}"), samples.clone())).collect();
            write(&blocks, &model, 50, 0..2000)?;
        }
        let merge = BlockMerge::new(Rc::new(blocks.clone()), plan_all(&blocks)?, 7)?;
        let merged = run(&mut merge.with_memory_bytes_max(memory_bytes_max));
        match fits {
            true => assert_eq!(merged?.map(|meta| meta.stats.num_series), Some(200)),
            false => assert!(matches!(merged, Err(MergeError::Refused { .. })), "{merged:?}"),
        }
    }
    Ok(())
}
