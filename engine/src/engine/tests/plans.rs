//! A host that follows plans of answers gets the engine's own answers.

use super::*;
use crate::codec::{crc32c, put_uvarint, split_uvarint};
use crate::select::Cursor;
use crate::storage::{BlockFile, Blocks as _};
use crate::wire::{Fields, PlannedChunk, Value as Field, put_planned_series, split_planned_series};
use proptest::prelude::*;

/// Follows plans as the WIT file describes them.
#[derive(Default)]
struct Host {
    files: Vec<Rc<dyn BlockFile>>,
    /// Number of chunks that the host read itself.
    read: usize,
}

impl Host {
    /// Returns a series with the bytes of its chunks, and the rest of the plan.
    fn follow<'p>(&mut self, blocks: &MemoryBlocks, plan: &'p [u8]) -> (Vec<u8>, &'p [u8]) {
        let (bytes, rest) = split_uvarint(plan).expect("a length");
        let (series, rest) = rest.split_at(bytes as usize);
        let mut content = Vec::new();
        for field in Fields::new(series) {
            let (number, Field::Bytes(bytes)) = field.expect("a field") else { panic!("bytes") };
            match number {
                1 => put_field(&mut content, 1, bytes),
                2 => put_field(&mut content, 2, &self.chunk(bytes)),
                3 => {
                    let name = std::str::from_utf8(bytes).expect("a name");
                    let (block, name) = name.split_once('/').expect("block and file");
                    self.files.push(blocks.open(block, name).expect("a file that is there"));
                }
                _ => panic!("field {number}"),
            }
        }
        let mut whole = Vec::new();
        put_uvarint(&mut whole, content.len() as u64);
        whole.extend(content);
        (whole, rest)
    }

    fn chunk(&mut self, planned: &[u8]) -> Vec<u8> {
        let mut place = (None, 0);
        let mut times = Vec::new();
        for field in Fields::new(planned) {
            match field.expect("a field") {
                (number @ (1 | 2), Field::Varint(time)) => {
                    times.push(8 * number as u8);
                    put_uvarint(&mut times, time);
                }
                (5, Field::Varint(file)) => place.0 = Some(file),
                (6, Field::Varint(offset)) => place.1 = offset,
                _ => return planned.to_vec(),
            }
        }
        let file = &self.files[place.0.expect("a file") as usize];
        let stored = file.read_at(place.1, (file.size() - place.1) as u32).expect("bytes");
        let (len, rest) = split_uvarint(&stored).expect("a length");
        let (content, rest) = rest.split_at(1 + len as usize);
        assert_eq!(rest[..4], crc32c(content).to_be_bytes());
        self.read += 1;
        let mut chunk = times;
        chunk.extend([3 << 3, content[0]]);
        put_field(&mut chunk, 4, &content[1..]);
        chunk
    }
}

fn put_field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    put_uvarint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn all_frames(cursor: &mut Cursor) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        match cursor.next_frames(100)? {
            piece if piece.is_empty() => return Ok(all),
            piece => all.extend(piece),
        }
    }
}

/// Compares the host's result of plans with the engine's, series by series.
fn followed(blocks: &MemoryBlocks, cursor: &mut Cursor, bytes_max: u32) -> Result<[Vec<u8>; 2]> {
    let mut host = Host::default();
    let [mut by_host, mut by_engine] = [Vec::new(), Vec::new()];
    loop {
        let plan = cursor.next_plan(bytes_max)?;
        let mut rest = plan.as_slice();
        if rest.is_empty() {
            return Ok([by_host, by_engine]);
        }
        while !rest.is_empty() {
            let (series, after) = host.follow(blocks, rest);
            by_host.extend(series);
            by_engine.extend(cursor.read_planned(&rest[..rest.len() - after.len()])?);
            rest = after;
        }
    }
}

proptest! {
    /// Series in head and blocks, out-of-order samples, deletions, merged blocks, external labels
    /// by which series become equal.
    #[test]
    fn who_follows_a_plan_has_the_answer(
        written in prop::collection::vec((0u8..4, 0i64..5000, prop::bool::weighted(0.04)), 1..250),
        deleted in prop::option::of((0i64..4000, 0i64..900)),
        ends in (-100i64..5500, -100i64..5500),
        bytes_max in 0u32..400,
        external in prop::option::of(prop_oneof![Just("job"), Just("zone")]),
    ) {
        let fail = |error: Error| TestCaseError::fail(error.to_string());
        let mut node = Node::with(WITH_OUT_OF_ORDER);
        for (series, time_ms, cut) in written {
            if cut {
                node.compact();
            }
            node.append(&format!("s{series}"), time_ms, u64::from(series) + 7);
        }
        if let Some((start_ms, len)) = deleted {
            let range = TimeRange { start_ms, end_ms: start_ms + len };
            node.engine.delete(&[Vec::new()], range).map_err(fail)?;
        }
        let range = TimeRange { start_ms: ends.0.min(ends.1), end_ms: ends.0.max(ends.1) };
        let external = Labels::from_sorted(external.map(|name| (name, "x")));
        let selection = Selection { external, ..all_of(Vec::new(), range) };
        let mut cursor = node.engine.select(&selection).map_err(fail)?;
        let expected = all_frames(&mut cursor).map_err(fail)?;
        for _ in 0..2 {
            cursor.rewind().map_err(fail)?;
            let [by_host, by_engine] = followed(&node.blocks, &mut cursor, bytes_max).map_err(fail)?;
            prop_assert_eq!(&by_host, &expected);
            prop_assert_eq!(&by_engine, &expected);
        }
    }
}

/// Series `a` to `d` in blocks of a second, and a little in the head.
fn some_blocks() -> Node {
    let mut node = Node::new();
    for time_ms in (0..4600).step_by(50) {
        for name in ["a", "b", "c", "d"] {
            node.append(name, time_ms, time_ms as u64);
        }
    }
    node.compact();
    node
}

#[test]
fn chunks_of_blocks_are_named_and_not_read() -> Result<()> {
    let node = some_blocks();
    let blocks = node.blocks.list()?.len();
    assert!(blocks > 1, "{blocks}");
    let mut cursor = node.engine.select(&all_of(Vec::new(), TimeRange::ALL))?;
    let plan = cursor.next_plan(u32::MAX)?;
    let mut host = Host::default();
    let mut rest = plan.as_slice();
    while !rest.is_empty() {
        (_, rest) = host.follow(&node.blocks, rest);
    }
    assert_eq!((host.files.len(), host.read), (blocks, 4 * blocks));
    assert_eq!(cursor.next_plan(u32::MAX)?, b"");
    // Names are those of one plan: a second cursor has its own.
    let mut other = node.engine.select(&all_of(Vec::new(), TimeRange::ALL))?;
    assert_eq!(other.next_plan(1)?, plan[..other_len(&plan)]);
    Ok(())
}

fn other_len(plan: &[u8]) -> usize {
    let (_, rest) = split_planned_series(plan).expect("a series");
    plan.len() - rest.len()
}

/// Host and engine name a damaged chunk in the same way.
#[test]
fn the_engine_says_which_chunk_is_damaged() -> Result<()> {
    let mut node = some_blocks();
    // The second series of a block in the middle: its chunk follows the header and the first one.
    let block = node.blocks.list()?.swap_remove(1);
    let file = |name: &str| {
        let file = node.blocks.open(&block, name)?;
        file.read_at(0, file.size() as u32)
    };
    let mut chunks = file("chunks/000001")?;
    let (len, rest) = split_uvarint(&chunks[8..]).expect("a length");
    let at = chunks.len() - rest.len() + 1 + len as usize + 4;
    chunks[at + 5] ^= 1;
    let mut damaged = node.blocks.create(9)?;
    let id = damaged.id().to_owned();
    let meta = String::from_utf8_lossy(&file("meta.json")?).replace(&block, &id);
    damaged.write_at("meta.json", 0, meta.as_bytes())?;
    damaged.write_at("index", 0, &file("index")?)?;
    damaged.write_at("chunks/000001", 0, &chunks)?;
    damaged.commit()?;
    node.blocks.delete(&block)?;
    node.restart();

    let selection = all_of(Vec::new(), TimeRange::ALL);
    let expected = all_frames(&mut node.engine.select(&selection)?).map_err(|e| e.to_string());
    let Err(expected) = expected else { panic!("the damage was not found") };
    assert_eq!(
        expected,
        format!(
            "chunks/000001 of block {id} is damaged at byte {at}: the chunk's checksum does not \
             match"
        )
    );
    let mut cursor = node.engine.select(&selection)?;
    let mut read = Vec::new();
    let found = loop {
        let plan = cursor.next_plan(0)?;
        match cursor.read_planned(&plan) {
            Ok(series) => read.extend(series),
            Err(error) => break error.to_string(),
        }
    };
    assert_eq!(found, expected);
    // What comes before it is given.
    let sound = node.engine.select(&selection)?.next_frames(1)?;
    assert_eq!(read, sound);
    Ok(())
}

#[test]
fn what_is_no_plan_is_refused() -> Result<()> {
    let node = some_blocks();
    let selection = all_of(Vec::new(), TimeRange::ALL);
    let samples = Selection { format: FrameFormat::Samples, ..selection.clone() };
    let refused = node.engine.select(&samples)?.next_plan(1);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");

    let mut cursor = node.engine.select(&selection)?;
    cursor.next_plan(u32::MAX)?;
    let files = node.blocks.list()?.len() as u32;
    let read = |file: u32, offset: u32| {
        let span = TimeRange { start_ms: 0, end_ms: 50 };
        let labels = Labels::from_sorted([(LABEL_NAME, "a")]);
        let mut series = Vec::new();
        let chunk = PlannedChunk::Stored { span, file, offset };
        put_planned_series(&mut series, &labels, &[], &[chunk]);
        cursor.read_planned(&series)
    };
    assert!(read(files - 1, 8).is_ok());
    assert!(matches!(read(files, 8), Err(Error::Invalid(_))));
    assert!(matches!(read(files - 1, 7), Err(Error::Block(_))));
    assert!(matches!(read(files - 1, u32::MAX), Err(Error::Block(_))));
    assert!(matches!(cursor.read_planned(&[]), Err(Error::Malformed(_))));
    // A cursor knows only what its own plans named.
    let other = node.engine.select(&selection)?;
    let plan = node.engine.select(&selection)?.next_plan(0)?;
    assert!(matches!(other.read_planned(&plan), Err(Error::Invalid(_))));
    Ok(())
}
