//! The block whose bytes `docs/format/block.md` lists.

use super::*;

const DOCUMENT: &str = include_str!("../../../docs/format/block.md");

/// The text of a fenced part of the document.
fn fenced(language: &str) -> TestResult<&'static str> {
    let (_, rest) = DOCUMENT.split_once(&format!("\n```{language}\n")).ok_or("no such part")?;
    let (text, _) = rest.split_once("\n```").ok_or("no end of the part")?;
    Ok(text)
}

/// The bytes of lines like `0008  13 0a   │ what this is`.
fn bytes_of(language: &str) -> TestResult<Vec<u8>> {
    let mut bytes = Vec::new();
    for line in fenced(language)?.lines() {
        let (line, _) = line.split_once('│').ok_or("a line without a bar")?;
        let mut words = line.split_whitespace();
        let offset = usize::from_str_radix(words.next().ok_or("a line without an offset")?, 16)?;
        assert_eq!(offset, bytes.len(), "the offset of a line is wrong");
        for word in words {
            bytes.push(u8::from_str_radix(word, 16)?);
        }
    }
    Ok(bytes)
}

fn series() -> TestResult<Vec<SeriesSamples>> {
    let labels = |instance| {
        Labels::from_pairs([("__name__", "up"), ("job", "node"), ("instance", instance)])
    };
    let at =
        |value, later| vec![sample(1_700_000_000_000, value), sample(1_700_000_015_000, later)];
    Ok(vec![(labels("a")?, at(1.0, 1.0)), (labels("b")?, at(0.0, 2.5))])
}

#[test]
fn the_documents_block_is_read() -> TestResult {
    let (chunks, index, tombstones) =
        (bytes_of("chunks")?, bytes_of("index")?, bytes_of("tombstones")?);
    let files = [
        ("chunks/000001", chunks.as_slice()),
        ("index", &index),
        ("tombstones", &tombstones),
        ("meta.json", fenced("json")?.as_bytes()),
    ];
    let (blocks, id) = block_of_files(&files)?;
    let block = BlockReader::open(&blocks, &id)?;
    assert_eq!(block.meta().ulid, "01M7YFGMMBDYF668YRHWQK6XAK");
    assert_eq!(block.meta().stats.num_samples, 4);
    assert_eq!(block.select(&[])?, [SeriesRef(4), SeriesRef(6)]);
    assert_eq!(block.label_names().collect::<Vec<_>>(), ["__name__", "instance", "job"]);
    assert_eq!(block.label_values("instance")?, ["a", "b"]);
    assert_eq!(read_all(&block)?, series()?);
    Ok(())
}

#[test]
fn the_same_series_become_the_documents_bytes() -> TestResult {
    let blocks = MemoryBlocks::default();
    let mut meta = write(&blocks, &series()?)?;
    for (file, language) in
        [("chunks/000001", "chunks"), ("index", "index"), ("tombstones", "tombstones")]
    {
        assert_eq!(content(&blocks, &meta.ulid, file)?, bytes_of(language)?, "{file}");
    }
    meta.ulid = "01M7YFGMMBDYF668YRHWQK6XAK".to_owned();
    meta.compaction.sources = vec![meta.ulid.clone()];
    assert_eq!(String::from_utf8(meta.encode()?)?, fenced("json")?);
    Ok(())
}
