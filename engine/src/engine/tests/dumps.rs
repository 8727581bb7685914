//! Lines of text from damaged blocks: damage is reported, and costs only the damaged part.

use super::*;
use crate::block::{BlockBuilder, BlockMetaParams, SymbolCollector};
use crate::chunk::XorAppender;
use crate::storage::Blocks as _;
use std::collections::BTreeSet;

type TestResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const SERIES: usize = 4;
const CHUNKS: i64 = 3;
const SAMPLES: i64 = 5;

fn sound_block() -> TestResult<(MemoryBlocks, String)> {
    let blocks = MemoryBlocks::default();
    let names: Vec<String> = (0..SERIES).map(|number| format!("series_{number}")).collect();
    let labels = |name: &String| Labels::from_sorted([(LABEL_NAME, name.as_str()), ("job", "a")]);
    let mut symbols = SymbolCollector::new(1);
    names.iter().for_each(|name| symbols.add(&labels(name)));
    let writer = blocks.create(1)?;
    let id = writer.id().to_owned();
    let mut builder = BlockBuilder::new(writer, symbols)?;
    for name in &names {
        let mut chunks = Vec::new();
        for chunk in 0..CHUNKS {
            let mut appender = XorAppender::new();
            for sample in 0..SAMPLES {
                appender.append(chunk * 100 + sample, sample as f64 / 3.0);
            }
            chunks.push(appender.to_chunk().ok_or("a chunk")?);
        }
        builder.add_series(&labels(name), &chunks)?;
    }
    builder.finish(BlockMetaParams {
        min_time_ms: 0,
        max_time_ms: 1000,
        level: 1,
        ..BlockMetaParams::default()
    })?;
    Ok((blocks, id))
}

/// Copies a block with other bytes in one of its files.
fn with_bytes(
    sound: &MemoryBlocks,
    id: &str,
    name: &str,
    bytes: &[u8],
) -> TestResult<MemoryBlocks> {
    let blocks = MemoryBlocks::default();
    let mut writer = blocks.create(1)?;
    assert_eq!(writer.id(), id, "meta.json names it");
    for file in ["meta.json", "index", "tombstones", "chunks/000001"] {
        let content = match file == name {
            true => bytes.to_vec(),
            false => content(sound, id, file)?,
        };
        writer.write_at(file, 0, &content)?;
    }
    writer.commit()?;
    Ok(blocks)
}

fn content(blocks: &MemoryBlocks, id: &str, file: &str) -> TestResult<Vec<u8>> {
    let file = blocks.open(id, file)?;
    Ok(file.read_at(0, u32::try_from(file.size())?)?)
}

/// All lines, and the errors of unreadable parts.
fn dump(blocks: &MemoryBlocks) -> TestResult<(Vec<String>, Vec<String>)> {
    let wal = MemoryWal::default();
    let node = Node {
        engine: Node::open(&wal, blocks, OPTIONS),
        wal,
        blocks: blocks.clone(),
        options: OPTIONS,
    };
    let mut cursor = node.engine.dump(&[Vec::new()], TimeRange::ALL, TextFormat::Dump)?;
    let (mut text, mut damages) = (String::new(), Vec::new());
    for _ in 0..1000 {
        match cursor.next(100) {
            Ok(lines) if lines.is_empty() => {
                return Ok((text.lines().map(str::to_owned).collect(), damages));
            }
            Ok(lines) => text.push_str(&lines),
            Err(damage) => damages.push(damage.to_string()),
        }
    }
    Err("it does not end".into())
}

#[test]
fn a_damaged_chunk_costs_only_itself() -> TestResult {
    let (sound, id) = sound_block()?;
    let (whole, damages) = dump(&sound)?;
    assert_eq!((whole.len(), damages), (SERIES * (CHUNKS * SAMPLES) as usize, Vec::new()));
    let chunks = content(&sound, &id, "chunks/000001")?;
    let mut lost_chunks = BTreeSet::new();
    for at in 8..chunks.len() {
        let mut bytes = chunks.clone();
        bytes[at] ^= 1 << (at % 8);
        let (lines, damages) = dump(&with_bytes(&sound, &id, "chunks/000001", &bytes)?)?;
        let lost: Vec<&String> = whole.iter().filter(|line| !lines.contains(line)).collect();
        assert_eq!((lost.len(), damages.len()), (SAMPLES as usize, 1), "byte {at}: {damages:?}");
        assert!(damages[0].contains("chunks/000001"), "{damages:?}");
        assert_eq!(lines.len() + lost.len(), whole.len(), "byte {at}");
        lost_chunks.insert(lost[0].clone());
    }
    assert_eq!(lost_chunks.len(), SERIES * CHUNKS as usize, "each chunk was lost in turn");
    // The end of the file is gone.
    let cut = &chunks[..chunks.len() - 1];
    let (lines, damages) = dump(&with_bytes(&sound, &id, "chunks/000001", cut)?)?;
    assert_eq!((lines.len(), damages.len()), (whole.len() - SAMPLES as usize, 1), "{damages:?}");
    Ok(())
}

#[test]
fn a_damaged_index_costs_no_more_than_its_block() -> TestResult {
    let (sound, id) = sound_block()?;
    let (whole, _) = dump(&sound)?;
    let index = content(&sound, &id, "index")?;
    let mut costs = BTreeSet::new();
    for at in 0..index.len() {
        let mut bytes = index.clone();
        bytes[at] ^= 1 << (at % 8);
        let blocks = with_bytes(&sound, &id, "index", &bytes)?;
        let (lines, damages) = dump(&blocks)?;
        assert!(lines.iter().all(|line| whole.contains(line)), "byte {at}: {lines:?}");
        let is_whole = lines.len() == whole.len();
        assert!(is_whole || !damages.is_empty(), "byte {at}");
        costs.insert(whole.len() - lines.len());
    }
    let of_one_series = (CHUNKS * SAMPLES) as usize;
    assert!(costs.contains(&of_one_series) && costs.contains(&0), "{costs:?}");
    Ok(())
}
