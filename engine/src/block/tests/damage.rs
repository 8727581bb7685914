//! Damaged and cut files give an error that names the place, or the right answer.

use super::*;
use crate::codec::crc32c;
use crate::model::{MatchOp, Matcher, MatcherSpec};
use proptest::prelude::*;

struct IntactBlock {
    series: Vec<SeriesSamples>,
    files: Vec<(&'static str, Vec<u8>)>,
}

fn whole() -> TestResult<IntactBlock> {
    let series = many_series(60, 3)?;
    let blocks = MemoryBlocks::default();
    let meta = write(&blocks, &series)?;
    Ok(IntactBlock { series, files: files_of(&blocks, &meta.ulid)? })
}

impl IntactBlock {
    fn read_with(&self, replaced: &str, bytes: &[u8]) -> TestResult<Vec<SeriesSamples>> {
        let files: Vec<(&str, &[u8])> = self
            .files
            .iter()
            .map(|(name, whole)| (*name, if *name == replaced { bytes } else { whole.as_slice() }))
            .collect();
        let (blocks, id) = block_of_files(&files)?;
        let block = BlockReader::open(&blocks, &id)?;
        let names: Vec<String> = block.label_names().map(str::to_owned).collect();
        for name in names {
            for value in block.label_values(&name)? {
                block.index().postings_for(&name, &value)?;
            }
        }
        read_all(&block)
    }
}

#[test]
fn flipped_bits_give_errors() -> TestResult {
    let whole = whole()?;
    for (name, bytes) in whole.files.iter().filter(|(name, _)| *name != "meta.json") {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            // Padding, and what is not read, may change without harm.
            if let Ok(read) = whole.read_with(name, &damaged) {
                assert!(read == whole.series, "{name}, byte {at}");
            }
        }
    }
    Ok(())
}

#[test]
fn cut_files_give_errors() -> TestResult {
    let whole = whole()?;
    for (name, bytes) in &whole.files {
        for len in 0..bytes.len() {
            assert!(whole.read_with(name, &bytes[..len]).is_err(), "{name} cut at {len}");
        }
    }
    Ok(())
}

/// Lengths and counts are bounded even where a checksum vouches for them.
#[test]
fn huge_lengths_do_not_ask_for_memory() -> TestResult {
    let whole = whole()?;
    let mut chunks = whole.files[0].1.clone();
    chunks[8..13].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
    let error = whole.read_with("chunks/000001", &chunks).err().map(|error| error.to_string());
    let error = error.unwrap_or_default();
    assert!(error.contains("chunks/000001") && error.contains("at byte 8"), "{error}");
    let mut index = whole.files[1].1.clone();
    index[5..9].fill(0xff);
    let error = whole.read_with("index", &index).err().map(|error| error.to_string());
    let error = error.unwrap_or_default();
    assert!(error.contains("index of block") && error.contains("at byte 5"), "{error}");
    Ok(())
}

/// Appends a section with a valid checksum around any content.
fn put_section(out: &mut Vec<u8>, count: u32, entries: &[u8]) {
    let content = [&count.to_be_bytes(), entries].concat();
    out.extend_from_slice(&(content.len() as u32).to_be_bytes());
    out.extend_from_slice(&content);
    out.extend_from_slice(&crc32c(&content).to_be_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

/// Builds an index of arbitrary content with valid checksums.
fn nonsense_index(symbols: &[String], series: &[u8], table: &[(String, String, u8)]) -> Vec<u8> {
    let mut index = b"\xba\xaa\xd7\x00\x02".to_vec();
    let mut entries = Vec::new();
    symbols.iter().for_each(|symbol| put_text(&mut entries, symbol));
    put_section(&mut index, symbols.len() as u32, &entries);
    let series_at = index.len();
    index.resize(series_at.next_multiple_of(16), 0);
    index.push(series.len() as u8);
    index.extend_from_slice(series);
    index.extend_from_slice(&crc32c(series).to_be_bytes());
    let postings_at = index.len();
    put_section(&mut index, 3, &[0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 4]);
    let table_at = index.len();
    let mut entries = Vec::new();
    for (name, value, offset) in table {
        entries.push(2);
        put_text(&mut entries, name);
        put_text(&mut entries, value);
        crate::codec::put_uvarint(&mut entries, postings_at as u64 + u64::from(*offset / 64));
    }
    put_section(&mut index, table.len() as u32, &entries);
    let toc = [5, series_at, series_at, table_at, postings_at, table_at];
    let toc: Vec<u8> = toc.iter().flat_map(|offset| (*offset as u64).to_be_bytes()).collect();
    index.extend_from_slice(&toc);
    index.extend_from_slice(&crc32c(&toc).to_be_bytes());
    index
}

#[test]
fn a_chunk_in_the_last_conceivable_file_is_missing() {
    assert_eq!(crate::block::chunk_file_name(0), "chunks/000001");
    assert_eq!(crate::block::chunk_file_name(u32::MAX), "chunks/4294967296");
}

proptest! {
    #[test]
    fn nonsense_with_right_checksums_is_survived(
        symbols in prop::collection::vec("[a-c]{0,2}", 0..40),
        series: [u8; 24],
        table in prop::collection::vec(("[ab]{0,1}", "[a-d]{0,3}", any::<u8>()), 0..150),
        is_sorted: bool,
    ) {
        let mut table = table;
        if is_sorted {
            table.sort();
        }
        let index = nonsense_index(&symbols, &series, &table);
        let read = || -> TestResult {
            let (blocks, id) = block_of_files(&[("index", &index)])?;
            let index = crate::index::IndexReader::open(&blocks, &id)?;
            for (op, value) in [(MatchOp::Equal, "b"), (MatchOp::Regex, "a|bc|d"), (MatchOp::NotRegex, "c.*")] {
                let spec = MatcherSpec { name: "a".to_owned(), op, value: value.to_owned() };
                if let Ok(refs) = index.select(&[Matcher::new(&spec)?]) {
                    refs.iter().for_each(|series| drop(index.series(*series)));
                }
            }
            index.label_values("b")?;
            Ok(())
        };
        let _ = read();
    }

    #[test]
    fn tombstones_of_any_bytes_are_survived(content: Vec<u8>) {
        let mut bytes = b"\x01\x30\xba\x30\x01".to_vec();
        bytes.extend_from_slice(&content);
        bytes.extend_from_slice(&crc32c(&content).to_be_bytes());
        if let Ok((blocks, id)) = block_of_files(&[("tombstones", &bytes)]) {
            let _ = Tombstones::read(&blocks, &id);
        }
    }
}
