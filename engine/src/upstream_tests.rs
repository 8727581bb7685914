//! Formats against bytes that upstream's own packages made: float chunks, series and samples of the
//! log, and all files of a block. Each is decoded, and encoded again to the same bytes. Histograms
//! and the other records of the log are compared in their rooms.

use crate::block::{BlockBuilder, BlockMeta, BlockReader, META_FILE, SymbolCollector, Tombstones};
use crate::chunk::{Chunk, Encoding, XorAppender, XorIter, samples};
use crate::model::histogram::testing::hex;
use crate::model::{Labels, Sample, TimeRange};
use crate::storage::memory::MemoryBlocks;
use crate::storage::{Blocks, StorageResult};
use crate::wal::{self, Record};
use std::collections::BTreeMap;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Made by `main.go` beside it, which says what each line is.
const FORMATS: &str = include_str!("../tests/fixtures/formats/formats.txt");

/// Times and bits of values: NaN equals itself.
type Bits = Vec<(i64, u64)>;

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMATS.lines().filter_map(|line| line.split_once(' '))
}

fn value(text: &str) -> TestResult<f64> {
    Ok(f64::from_bits(u64::from_str_radix(text, 16)?))
}

/// A time and a value.
fn sample(text: &str) -> TestResult<Sample> {
    let (time, bits) = text.split_once(' ').ok_or("a time and a value")?;
    Ok(Sample { timestamp_ms: time.parse()?, value: value(bits)? })
}

fn bits_of<'s>(samples: impl IntoIterator<Item = &'s Sample>) -> Bits {
    samples.into_iter().map(|s| (s.timestamp_ms, s.value.to_bits())).collect()
}

fn xor_chunk(samples: &[Sample]) -> TestResult<Chunk> {
    let mut appender = XorAppender::new();
    samples.iter().for_each(|s| appender.append(s.timestamp_ms, s.value));
    Ok(appender.to_chunk().ok_or("no samples")?)
}

/// Pairs such as `"name"="value"`, with commas between them.
fn pairs(mut text: &str) -> TestResult<Vec<(String, String)>> {
    let mut strings = Vec::new();
    while let Some(quoted) = text.strip_prefix('"') {
        let (mut string, mut chars) = (String::new(), quoted.chars());
        loop {
            match chars.next().ok_or("the quote does not end")? {
                '"' => break,
                '\\' => string.push(match chars.next() {
                    Some('n') => '\n',
                    Some(other) => other,
                    None => return Err("a backslash ends it".into()),
                }),
                char => string.push(char),
            }
        }
        strings.push(string);
        text = chars.as_str().trim_start_matches(['=', ',']);
    }
    let (pairs, _) = strings.as_chunks::<2>();
    Ok(pairs.iter().map(|[name, value]| (name.clone(), value.clone())).collect())
}

#[test]
fn float_chunks_are_upstreams() -> TestResult {
    let (mut run, mut chunks) = (Vec::new(), 0);
    for (word, rest) in lines() {
        match word {
            "s" => run.push(sample(rest)?),
            "xor" => {
                let upstream = hex(rest);
                let read = XorIter::new(&upstream)?.collect::<Result<Vec<_>, _>>()?;
                assert_eq!(bits_of(&read), bits_of(&run), "chunk {chunks}");
                assert_eq!(xor_chunk(&run)?.data[..], upstream[..], "chunk {chunks}");
                (run, chunks) = (Vec::new(), chunks + 1);
            }
            _ => break,
        }
    }
    assert_eq!(chunks, 60);
    Ok(())
}

#[test]
fn records_of_series_and_samples_are_upstreams() -> TestResult {
    let (mut series, mut rows) = (Vec::new(), Vec::new());
    let mut compared = 0;
    for (word, rest) in lines() {
        match word {
            "labels" => {
                let (series_ref, labels) = rest.split_once(' ').ok_or("a number and labels")?;
                series.push((series_ref.parse::<u64>()?, pairs(labels)?));
            }
            "row" => {
                let (series_ref, row) = rest.split_once(' ').ok_or("a number and a sample")?;
                rows.push((series_ref.parse::<u64>()?, sample(row)?));
            }
            "series" => {
                let (upstream, mut ours) = (hex(rest), wal::series_record());
                let Record::Series(read) = wal::decode(&upstream)? else {
                    return Err("kind".into());
                };
                for (read, (series_ref, wanted)) in read.zip(&series) {
                    let read = read?;
                    let wanted = wanted.iter().map(|(n, v)| (n.as_str(), v.as_str()));
                    assert_eq!(read.series_ref, *series_ref);
                    assert!(read.labels.iter().copied().eq(wanted.clone()), "{read:?}");
                    wal::put_series(&mut ours, *series_ref, wanted.len(), wanted);
                }
                assert_eq!(ours, upstream);
                compared += series.len();
            }
            "samples" => {
                let upstream = hex(rest);
                let Record::Samples(read) = wal::decode(&upstream)? else {
                    return Err("kind".into());
                };
                let read = read.collect::<Result<Vec<_>, _>>()?;
                let refs = |rows: &[(u64, Sample)]| rows.iter().map(|r| r.0).collect::<Vec<_>>();
                assert_eq!(refs(&read), refs(&rows));
                let of = |rows: &[(u64, Sample)]| bits_of(rows.iter().map(|(_, sample)| sample));
                assert_eq!(of(&read), of(&rows));
                let first = (rows[0].0, rows[0].1.timestamp_ms);
                let mut ours = wal::samples_record(first.0, first.1, rows.len());
                rows.iter().for_each(|(at, s)| wal::put_samples(&mut ours, first, *at, *s));
                assert_eq!(ours, upstream);
                compared += rows.len();
            }
            _ => {}
        }
    }
    assert_eq!(compared, 4 + 25);
    Ok(())
}

/// The fixture's block: its series, what was deleted from them, and its files.
#[derive(Default)]
struct UpstreamBlock {
    series: Vec<(Labels, Vec<Sample>)>,
    deleted: Vec<(usize, TimeRange)>,
    files: BTreeMap<&'static str, Vec<u8>>,
}

fn upstream_block() -> TestResult<UpstreamBlock> {
    let mut block = UpstreamBlock::default();
    for (word, rest) in lines() {
        match word {
            "b" => {
                let pairs = pairs(rest)?;
                let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                block.series.push((Labels::from_pairs(pairs)?, Vec::new()));
            }
            "s" => {
                if let Some((_, samples)) = block.series.last_mut() {
                    samples.push(sample(rest)?);
                }
            }
            "deleted" => {
                let numbers = rest.split(' ').map(str::parse).collect::<Result<Vec<i64>, _>>()?;
                let [place, start_ms, end_ms] = numbers[..] else { return Err("numbers".into()) };
                block.deleted.push((usize::try_from(place)?, TimeRange { start_ms, end_ms }));
            }
            "file" => {
                let (name, bytes) = rest.split_once(' ').ok_or("a name and bytes")?;
                block.files.insert(name, hex(bytes));
            }
            _ => {}
        }
    }
    assert_eq!((block.series.len(), block.files.len()), (42, 4));
    Ok(block)
}

/// The block's files in a storage.
fn stored(block: &UpstreamBlock) -> StorageResult<(MemoryBlocks, String)> {
    let blocks = MemoryBlocks::default();
    let mut writer = blocks.create(1_700_000_000_000)?;
    for (name, bytes) in &block.files {
        writer.write_at(name, 0, bytes)?;
    }
    let id = writer.id().to_owned();
    writer.commit()?;
    Ok((blocks, id))
}

/// The chunks of every series, by upstream's cuts.
fn chunks_of(reader: &BlockReader) -> TestResult<Vec<Vec<Chunk>>> {
    let mut all = Vec::new();
    for series in reader.select(&[])? {
        let (_, metas) = reader.series(series)?;
        all.push(metas.iter().map(|meta| reader.chunk(meta)).collect::<Result<Vec<_>, _>>()?);
    }
    Ok(all)
}

#[test]
fn a_block_of_upstream_is_read() -> TestResult {
    let upstream = upstream_block()?;
    let (blocks, id) = stored(&upstream)?;
    let reader = BlockReader::open(&blocks, &id)?;
    let chunks = chunks_of(&reader)?;
    let refs = reader.select(&[])?;
    assert_eq!(refs.len(), upstream.series.len());
    for ((series, chunks), (labels, wanted)) in refs.iter().zip(&chunks).zip(&upstream.series) {
        assert_eq!(reader.series_labels(*series)?, *labels);
        let mut read = Vec::new();
        for chunk in chunks {
            assert_eq!(chunk.encoding, Encoding::Xor);
            read.extend(samples(chunk)?.collect::<Result<Vec<_>, _>>()?);
        }
        assert_eq!(bits_of(&read), bits_of(wanted), "{labels}");
        for (name, value) in labels.iter() {
            assert!(reader.index().postings_for(name, value)?.contains(series), "{labels}");
        }
    }
    for (place, range) in &upstream.deleted {
        assert!(reader.deleted_ranges(refs[*place]).contains(range), "{place} {range:?}");
    }
    assert_eq!(reader.tombstones().count(), upstream.deleted.len() as u64);
    assert_eq!(reader.tombstones().count(), reader.meta().stats.num_tombstones);
    let count: usize = upstream.series.iter().map(|(_, samples)| samples.len()).sum();
    assert_eq!(reader.meta().stats.num_samples, count as u64);
    Ok(())
}

#[test]
fn the_same_series_become_upstreams_files() -> TestResult {
    let upstream = upstream_block()?;
    let (blocks, id) = stored(&upstream)?;
    let reader = BlockReader::open(&blocks, &id)?;

    let mut symbols = SymbolCollector::new(7);
    upstream.series.iter().for_each(|(labels, _)| symbols.add(labels));
    let ours = MemoryBlocks::default();
    let mut builder = BlockBuilder::new(ours.create(1_700_000_000_000)?, symbols)?;
    for ((labels, samples), cuts) in upstream.series.iter().zip(chunks_of(&reader)?) {
        let (mut rest, mut chunks) = (samples.as_slice(), Vec::new());
        for cut in cuts {
            let (samples, after) = rest.split_at(crate::chunk::sample_count(&cut)?.into());
            chunks.push(xor_chunk(samples)?);
            rest = after;
        }
        assert!(rest.is_empty(), "{labels}");
        builder.add_series(labels, &chunks)?;
    }
    let meta = builder.finish(crate::block::BlockMetaParams {
        min_time_ms: reader.meta().min_time_ms,
        max_time_ms: reader.meta().max_time_ms,
        level: 1,
        ..Default::default()
    })?;
    for name in ["chunks/000001", "index"] {
        let file = ours.open(&meta.ulid, name)?;
        assert!(file.read_at(0, file.size() as u32)? == upstream.files[name], "{name} differs");
    }

    let refs = reader.select(&[])?;
    let mut tombstones = Tombstones::default();
    upstream.deleted.iter().for_each(|(place, range)| tombstones.add(refs[*place], *range));
    assert_eq!(tombstones.encode(), upstream.files["tombstones"]);

    let decoded = BlockMeta::decode("upstream", &upstream.files[META_FILE])?;
    assert_eq!(decoded.encode()?, upstream.files[META_FILE]);
    // Ours says the same, but for its name and what is deleted.
    let (mut stats, name) = (meta.stats, decoded.ulid.clone());
    stats.num_tombstones = decoded.stats.num_tombstones;
    assert_eq!((stats, vec![name]), (decoded.stats, decoded.compaction.sources));
    assert_eq!(meta.compaction.level, decoded.compaction.level);
    Ok(())
}
