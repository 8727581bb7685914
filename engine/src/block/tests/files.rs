//! Writing and reading whole blocks, and the refusals of both sides.

use super::*;
use crate::chunk::Encoding;
use crate::index::IndexError;
use crate::model::TimeRange;
use std::cell::Cell;

#[test]
fn many_series_in_many_files_come_back() -> TestResult {
    let series = many_series(1000, 300)?;
    let blocks = MemoryBlocks::default();
    let meta = write_with(&blocks, &series, |builder| builder.with_chunk_file_bytes_max(100_000))?;
    assert_eq!(
        (meta.stats.num_series, meta.stats.num_chunks),
        (series.len() as u64, 3 * series.len() as u64)
    );
    assert_eq!(meta.stats.num_samples, 300 * series.len() as u64);
    assert!(blocks.open(&meta.ulid, "chunks/000003").is_ok());
    let block = BlockReader::open(&blocks, &meta.ulid)?;
    assert_eq!(block.meta(), &meta);
    assert_eq!(read_all(&block)?, series);
    // From the last file to the first, too.
    check_backwards(&block, &series, 7)?;
    for name in ["__name__", "code", "instance", "path"] {
        let mut values: Vec<&str> = series.iter().map(|(labels, _)| labels.get(name)).collect();
        values.retain(|value| !value.is_empty());
        values.sort_unstable();
        values.dedup();
        assert_eq!(block.label_values(name)?, values);
        for value in values {
            let expected = series.iter().filter(|(labels, _)| labels.get(name) == value).count();
            assert_eq!(block.index().postings_for(name, value)?.len(), expected);
        }
        assert!(block.index().postings_for(name, "~")?.is_empty());
        assert!(block.index().postings_for(name, "!")?.is_empty());
    }
    Ok(())
}

/// Values longer than one read, and more of them than are in memory at once.
#[test]
fn long_values_come_back() -> TestResult {
    let mut series = Vec::new();
    for i in 0..100u32 {
        let value = format!("{}{i:03}", "long ".repeat(if i % 40 == 7 { 40_000 } else { 500 }));
        let labels = Labels::from_pairs([("__name__", "m"), ("value", &value)])?;
        series.push((labels, vec![sample(1, 1.0), sample(i64::from(i) + 2, 2.0)]));
    }
    series.sort_by(|a, b| a.0.cmp(&b.0));
    let blocks = MemoryBlocks::default();
    let meta = write(&blocks, &series)?;
    let block = BlockReader::open(&blocks, &meta.ulid)?;
    assert_eq!(read_all(&block)?, series);
    let values: Vec<&str> = series.iter().map(|(labels, _)| labels.get("value")).collect();
    assert_eq!(block.label_values("value")?, values);
    for value in values {
        assert_eq!(block.index().postings_for("value", value)?.len(), 1);
    }
    Ok(())
}

/// A read of everything in order asks the storage for few, large pieces.
#[test]
fn neighbours_share_reads() -> TestResult {
    let series = many_series(3000, 120)?;
    let blocks = MemoryBlocks::default();
    let meta = write(&blocks, &series)?;
    let reads = Rc::new(Cell::new(0));
    let through = |inner, _: &str| -> Rc<dyn BlockFile> {
        Rc::new(CountingFile { inner, reads: Rc::clone(&reads) })
    };
    let counting = ReadThrough { inner: blocks, through };
    let block = BlockReader::open(&counting, &meta.ulid)?;
    assert_eq!(read_all(&block)?, series);
    assert!(reads.get() < 60, "{} reads", reads.get());
    Ok(())
}

struct CountingFile {
    inner: Rc<dyn BlockFile>,
    reads: Rc<Cell<u32>>,
}

impl BlockFile for CountingFile {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, len: u32) -> StorageResult<Vec<u8>> {
        self.reads.set(self.reads.get() + 1);
        self.inner.read_at(offset, len)
    }
}

#[test]
fn a_deleted_block_stays_readable() -> TestResult {
    let series = many_series(20, 5)?;
    let blocks = MemoryBlocks::default();
    let meta = write(&blocks, &series)?;
    let block = BlockReader::open(&blocks, &meta.ulid)?;
    blocks.delete(&meta.ulid)?;
    assert_eq!(read_all(&block)?, series);
    Ok(())
}

#[test]
fn order_is_checked_while_writing() -> TestResult {
    let mut series = many_series(10, 5)?;
    series.swap(3, 4);
    let refused = write(&MemoryBlocks::default(), &series);
    let refused_order =
        matches!(refused, Err(BlockError::Index(IndexError::UnsortedSeries { .. })));
    assert!(refused_order, "{refused:?}");

    let series = many_series(1, 5)?;
    let twice = [chunks_of(&series[0].1), chunks_of(&series[0].1)].concat();
    let mut symbols = SymbolCollector::default();
    symbols.add(&series[0].0);
    let mut builder = BlockBuilder::new(MemoryBlocks::default().create(0)?, symbols)?;
    let refused = builder.add_series(&series[0].0, &twice);
    let refused_chunks =
        matches!(refused, Err(BlockError::Index(IndexError::UnsortedChunks { .. })));
    assert!(refused_chunks, "{refused:?}");
    let unknown = Labels::from_sorted([("unknown", "label")]);
    let refused = builder.add_series(&unknown, &twice[..1]);
    let refused_label = matches!(refused, Err(BlockError::Index(IndexError::UnknownSymbol { .. })));
    assert!(refused_label, "{refused:?}");
    let refused = SymbolList::from_sorted(0, ["", "b", "a"]).err();
    assert_eq!(refused, Some(IndexError::UnsortedSymbols { symbol: "a".to_owned() }));
    Ok(())
}

#[test]
fn samples_outside_of_the_blocks_range_are_refused() -> TestResult {
    let series = many_series(1, 2)?;
    let mut symbols = SymbolCollector::default();
    symbols.add(&series[0].0);
    let mut builder = BlockBuilder::new(MemoryBlocks::default().create(0)?, symbols)?;
    builder.add_series(&series[0].0, &chunks_of(&series[0].1))?;
    let params = BlockMetaParams {
        min_time_ms: 1_700_000_000_000,
        max_time_ms: 1_700_000_015_000,
        ..BlockMetaParams::default()
    };
    let refused = builder.finish(params).err().map(|error| error.to_string());
    assert_eq!(
        refused.as_deref(),
        Some(
            "the block's samples span 1700000000000..=1700000015000 ms, outside of its range 1700000000000..1700000015000 ms"
        )
    );
    Ok(())
}

#[test]
fn histogram_chunks_pass_through() -> TestResult {
    let blocks = MemoryBlocks::default();
    let labels = Labels::from_sorted([("__name__", "latency")]);
    let mut symbols = SymbolCollector::default();
    symbols.add(&labels);
    let mut builder = BlockBuilder::new(blocks.create(0)?, symbols)?;
    let data = [0, 9, 1, 2, 3].as_slice().into();
    let chunk = Chunk { encoding: Encoding::FloatHistogram, min_time_ms: 5, max_time_ms: 6, data };
    builder.add_series(&labels, std::slice::from_ref(&chunk))?;
    let params = BlockMetaParams { max_time_ms: 7, ..BlockMetaParams::default() };
    let meta = builder.finish(params)?;
    assert_eq!((meta.stats.num_float_samples, meta.stats.num_histogram_samples), (0, 9));
    let block = BlockReader::open(&blocks, &meta.ulid)?;
    let (_, metas) = block.series(block.select(&[])?[0])?;
    assert_eq!(block.chunk(&metas[0])?, chunk);
    Ok(())
}

#[test]
fn tombstones_come_back_joined() -> TestResult {
    let range = |start_ms, end_ms| TimeRange { start_ms, end_ms };
    let mut tombstones = Tombstones::default();
    tombstones.add(SeriesRef(9), range(50, 60));
    tombstones.add(SeriesRef(9), range(-5, 10));
    tombstones.add(SeriesRef(9), range(11, 20));
    tombstones.add(SeriesRef(4), range(i64::MIN, i64::MAX));
    let bytes = tombstones.encode();
    let (blocks, id) = block_of_files(&[("tombstones", &bytes)])?;
    let read = Tombstones::read(&blocks, &id)?;
    assert_eq!(read, tombstones);
    assert_eq!(read.deleted_ranges(SeriesRef(9)), [range(-5, 20), range(50, 60)]);
    assert_eq!(read.deleted_ranges(SeriesRef(4)), [TimeRange::ALL]);
    assert_eq!((read.deleted_ranges(SeriesRef(5)), read.count()), (&[][..], 3));
    let (blocks, id) = block_of_files(&[("meta.json", b"{}")])?;
    assert!(Tombstones::read(&blocks, &id)?.is_empty());
    Ok(())
}

#[test]
fn other_tools_keys_in_meta_json_are_read_over() -> TestResult {
    let json = br#"{"ulid": "X", "minTime": -1, "maxTime": 2, "thanos": {"labels": {"a": "b"}},
        "compaction": {"level": 2, "sources": null, "hints": ["from-out-of-order"]}, "version": 1}"#;
    let meta = BlockMeta::decode("X", json)?;
    assert_eq!((meta.min_time_ms, meta.compaction.level), (-1, 2));
    assert_eq!(BlockMeta::decode("X", &meta.encode()?)?, meta);
    let newer = br#"{"ulid": "X", "minTime": 0, "maxTime": 2, "compaction": {}, "version": 2}"#;
    let refused = BlockMeta::decode("X", newer).err().map(|error| error.to_string());
    assert_eq!(
        refused.as_deref(),
        Some("meta.json of block X has version 2; only version 1 is supported")
    );
    Ok(())
}
