//! Merges that take over files of chunks: the same content, and no chunk written again.

use super::merge::{any_blocks, fail, united};
use super::*;
use crate::block::chunk_file_name;
use crate::compact::linked::LINKED_FILES_MAX;
use crate::inspect::BlockCheck;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

/// Storage that records the use of chunk files.
#[derive(Clone, Default)]
struct Watched {
    inner: MemoryBlocks,
    /// Number of links that succeed before storage refuses.
    links_left: Rc<Cell<usize>>,
    linked: Rc<RefCell<Vec<String>>>,
    chunk_bytes_written: Rc<Cell<usize>>,
}

struct WatchedWriter(Box<dyn BlockWriter>, Watched);

impl Blocks for Watched {
    fn list(&self) -> StorageResult<Vec<String>> {
        self.inner.list()
    }

    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        self.inner.open(block, file)
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        self.linked.borrow_mut().clear();
        Ok(Box::new(WatchedWriter(self.inner.create(now_ms)?, self.clone())))
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        self.inner.delete(block)
    }

    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()> {
        self.inner.replace_tombstones(block, tombstones, meta)
    }
}

impl BlockWriter for WatchedWriter {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> StorageResult<()> {
        if file.starts_with("chunks/") {
            self.1.chunk_bytes_written.set(self.1.chunk_bytes_written.get() + bytes.len());
        }
        self.0.write_at(file, offset, bytes)
    }

    fn link_file(&mut self, block: &str, file: &str, new_file: &str) -> StorageResult<bool> {
        let Some(left) = self.1.links_left.get().checked_sub(1) else { return Ok(false) };
        self.1.links_left.set(left);
        self.1.linked.borrow_mut().push(new_file.to_owned());
        self.0.link_file(block, file, new_file)
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        self.0.commit()
    }
}

impl Watched {
    fn new() -> Watched {
        Watched { links_left: Rc::new(Cell::new(usize::MAX)), ..Watched::default() }
    }

    /// Merges some blocks into one, and checks it as `verify` does.
    fn merge(&self, parents: &[&BlockMeta], samples_per_chunk: usize) -> TestResult<BlockMeta> {
        let plan = Plan::of(Reason::Level, parents).ok_or("no block")?;
        let merge = BlockMerge::new(Rc::new(self.clone()), plan, 7)?;
        let child = run(&mut merge.with_samples_per_chunk(samples_per_chunk))?.ok_or("no block")?;
        self.verify(&child)?;
        Ok(child)
    }

    fn verify(&self, meta: &BlockMeta) -> TestResult {
        let mut check = BlockCheck::new(Rc::new(self.clone()), &meta.ulid);
        loop {
            let step = check.step()?;
            assert!(step.findings.is_empty(), "{:?}", step.findings);
            if step.done {
                return Ok(());
            }
        }
    }

    fn files(&self, block: &BlockMeta) -> TestResult<Vec<Vec<u8>>> {
        let mut files = Vec::new();
        while let Ok(file) = self.open(&block.ulid, &chunk_file_name(files.len() as u32)) {
            files.push(file.read_at(0, file.size() as u32)?);
        }
        Ok(files)
    }
}

/// Series with a sample each 15 s, and one that is only in some of the hours.
fn hours(hours: std::ops::Range<i64>) -> Model {
    let samples = |of: std::ops::Range<i64>| {
        let times = of.start * 240..of.end * 240;
        times.map(|i| (i * 15_000, ((i % 17) as f64 / 8.0).to_bits())).collect()
    };
    let mut model: Model =
        ["a", "b", "c"].map(|name| (name.to_owned(), samples(hours.clone()))).into();
    let (name, half) = (format!("of {}", hours.start), hours.start..hours.start + 1);
    model.insert(name, samples(half));
    model
}

const HOUR_MS: i64 = 3_600_000;

fn write_hours(blocks: &Watched, of: std::ops::Range<i64>) -> TestResult<BlockMeta> {
    write(blocks, &hours(of.clone()), SAMPLES_PER_CHUNK, of.start * HOUR_MS..of.end * HOUR_MS)
}

fn six_hours(blocks: &Watched, start: i64) -> TestResult<BlockMeta> {
    let parts: Vec<BlockMeta> = [start, start + 2, start + 4]
        .map(|hour| write_hours(blocks, hour..hour + 2))
        .into_iter()
        .collect::<TestResult<_>>()?;
    blocks.merge(&parts.iter().collect::<Vec<_>>(), SAMPLES_PER_CHUNK_COMPACTED)
}

#[test]
fn later_merges_write_no_chunk() -> TestResult {
    let blocks = Watched::new();
    let (a, b, c) = (six_hours(&blocks, 0)?, six_hours(&blocks, 6)?, six_hours(&blocks, 12)?);
    assert!(blocks.linked.borrow().is_empty(), "small chunks are joined");
    let expected = read(&blocks)?;
    let parents = [blocks.files(&a)?, blocks.files(&b)?, blocks.files(&c)?].concat();
    let samples: u64 = [&a, &b, &c].map(|meta| meta.stats.num_samples).iter().sum();
    let chunks: u64 = [&a, &b, &c].map(|meta| meta.stats.num_chunks).iter().sum();

    blocks.chunk_bytes_written.set(0);
    let child = blocks.merge(&[&c, &a, &b], SAMPLES_PER_CHUNK_COMPACTED)?;
    assert_eq!(blocks.chunk_bytes_written.get(), 0);
    assert_eq!(blocks.files(&child)?, parents);
    assert_eq!((child.stats.num_samples, child.stats.num_chunks), (samples, chunks));
    assert_eq!(child.stats.num_float_samples, samples);
    assert_eq!(child.stats.num_series, expected.len() as u64);
    assert_eq!((blocks.list()?, read(&blocks)?), (vec![child.ulid.clone()], expected.clone()));

    // And once more.
    let next = six_hours(&blocks, 18)?;
    let expected = read(&blocks)?;
    let child = blocks.merge(&[&child, &next], SAMPLES_PER_CHUNK_COMPACTED)?;
    assert_eq!((blocks.files(&child)?.len(), child.compaction.level), (4, 4));
    assert_eq!(read(&blocks)?, expected);
    Ok(())
}

#[test]
fn what_is_not_taken_over_is_written_behind_it() -> TestResult {
    let blocks = Watched::new();
    let kept = six_hours(&blocks, 0)?;
    let deleted = six_hours(&blocks, 6)?;
    let small = write_hours(&blocks, 12..14)?;
    let overlapping = [six_hours(&blocks, 14)?, write_hours(&blocks, 19..21)?];
    let spec = crate::model::MatcherSpec {
        name: "n".to_owned(),
        op: crate::model::MatchOp::Equal,
        value: "b".to_owned(),
    };
    let range = TimeRange { start_ms: 7 * HOUR_MS, end_ms: 8 * HOUR_MS };
    delete_from_blocks(&blocks, &[vec![crate::model::Matcher::new(&spec)?]], range)?;
    let expected = read(&blocks)?;
    let first = blocks.files(&kept)?;
    let [a, b] = &overlapping;
    let child = blocks.merge(&[&kept, &deleted, &small, a, b], SAMPLES_PER_CHUNK_COMPACTED)?;
    assert_eq!(*blocks.linked.borrow(), ["chunks/000001"]);
    let files = blocks.files(&child)?;
    assert_eq!((files.len(), &files[..1]), (2, &first[..]));
    assert_eq!(read(&blocks)?, expected);
    let samples: usize = expected.values().map(BTreeMap::len).sum();
    assert_eq!(child.stats.num_samples, samples as u64);
    Ok(())
}

/// Storage that cannot link at all, or only the first files.
#[test]
fn storage_that_cannot_link_gets_the_bytes() -> TestResult {
    for links in 0..3 {
        let blocks = Watched::new();
        let parents = [six_hours(&blocks, 0)?, six_hours(&blocks, 6)?, six_hours(&blocks, 12)?];
        let expected = read(&blocks)?;
        blocks.links_left.set(links);
        let child = blocks.merge(&parents.each_ref(), SAMPLES_PER_CHUNK_COMPACTED)?;
        assert!(blocks.linked.borrow().is_empty(), "the block was begun anew");
        assert_eq!(blocks.files(&child)?.len(), 1);
        assert_eq!(read(&blocks)?, expected, "after {links} links");
    }
    Ok(())
}

#[test]
fn a_block_has_few_files() -> TestResult {
    let blocks = Watched::new();
    let expected = RefCell::new(Model::new());
    let add = |from: i64| -> TestResult<BlockMeta> {
        let model = Model::from([("a".to_owned(), (from..from + 9).map(|t| (t, 1)).collect())]);
        let meta = write(&blocks, &model, 9, from..from + 9)?;
        let all = united([&*expected.borrow(), &model], &[]);
        expected.replace(all);
        Ok(meta)
    };
    // Chunks of nine samples are as long as they become.
    let parents = (0..LINKED_FILES_MAX + 3).map(|n| add(9 * i64::from(n)));
    let parents = parents.collect::<TestResult<Vec<BlockMeta>>>()?;
    let child = blocks.merge(&parents.iter().collect::<Vec<_>>(), 9)?;
    assert_eq!(blocks.files(&child)?.len() as u32, LINKED_FILES_MAX + 1);
    // One that has so many is written again, if it comes behind others.
    let next = add(9 * 1000)?;
    let child = blocks.merge(&[&next, &child], 9)?;
    assert!(blocks.files(&child)?.len() as u32 <= LINKED_FILES_MAX + 2);
    assert_eq!(read(&blocks)?, *expected.borrow());
    Ok(())
}

/// A merge does not read chunks that it links; later reads name the damage.
#[test]
fn damage_goes_along_and_is_named() -> TestResult {
    let blocks = Watched::new();
    let parents = [six_hours(&blocks, 0)?, six_hours(&blocks, 6)?];
    let mut bytes = blocks.files(&parents[1])?.remove(0);
    bytes[60] ^= 0x55;
    let mut writer = blocks.create(NOW_MS)?;
    writer.write_at("chunks/000001", 0, &bytes)?;
    for name in ["meta.json", "index", "tombstones"] {
        let file = blocks.open(&parents[1].ulid, name)?;
        writer.write_at(name, 0, &file.read_at(0, file.size() as u32)?)?;
    }
    let damaged = BlockMeta { ulid: writer.id().to_owned(), ..parents[1].clone() };
    writer.commit()?;
    blocks.delete(&parents[1].ulid)?;
    let plan = Plan::of(Reason::Level, &[&parents[0], &damaged]).ok_or("no block")?;
    let child = run(&mut BlockMerge::new(Rc::new(blocks.clone()), plan, 7)?)?.ok_or("no block")?;
    let block = BlockReader::open(&blocks, &child.ulid)?;
    let (mut sound, mut bad) = (0, Vec::new());
    for series in block.select(&[])? {
        for meta in block.series(series)?.1 {
            match block.chunk(&meta) {
                Ok(_) => sound += 1,
                Err(error) => bad.push(BadBlock::of(&child.ulid, &error)),
            }
        }
    }
    assert_eq!((sound + 1, bad.len()), (child.stats.num_chunks as usize, 1));
    assert_eq!((bad[0].file.as_deref(), bad[0].offset), (Some("chunks/000002"), Some(8)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Blocks one behind the other, of which those without deletions are taken over.
    #[test]
    fn linking_equals_a_map(all in any_blocks(), per_chunk in 0usize..2, deleted in 0i64..9000) {
        let check = || -> TestResult {
            let blocks = Watched::new();
            let (mut models, mut metas) = (Vec::new(), Vec::new());
            for (number, (model, samples_per_chunk)) in (0..).zip(&all) {
                let start_ms = 2000 * number;
                let later = |samples: &BTreeMap<i64, u64>| {
                    samples.iter().map(|(time_ms, bits)| (time_ms + start_ms, *bits)).collect()
                };
                let model: Model =
                    model.iter().map(|(name, samples)| (name.clone(), later(samples))).collect();
                let range = start_ms..start_ms + 2000;
                metas.push(write(&blocks, &model, *samples_per_chunk, range)?);
                models.push(model);
            }
            let deletions = [(0, deleted, 100)];
            super::merge::delete(&blocks, deletions[0])?;
            let expected = united(&models, &deletions);
            let plan = Plan::of(Reason::Level, &metas.iter().collect::<Vec<_>>());
            let merge = BlockMerge::new(Rc::new(blocks.clone()), plan.ok_or("no block")?, 7)?;
            if let Some(child) = run(&mut merge.with_samples_per_chunk(per_chunk))? {
                blocks.verify(&child)?;
            }
            assert_eq!(read(&blocks)?, expected);
            Ok(())
        };
        check().map_err(fail)?;
    }
}
