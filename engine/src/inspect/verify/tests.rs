//! Sound blocks are found to be sound; every flipped bit is found, and in the file it is in.

use super::*;
use crate::block::{BlockBuilder, BlockMetaParams, META_FILE, SymbolCollector, TOMBSTONES_FILE};
use crate::chunk::encode;
use crate::codec::crc32c;
use crate::model::{Labels, TimeRange, Value};
use crate::storage::memory::MemoryBlocks;
use crate::wal::{
    ColumnWriter, TombstoneRecord, put_samples, put_series, samples_record, series_record,
    tombstones_record,
};
use crate::{block::Tombstones, index::SeriesRef, model::Sample, storage::LogKind};

type TestResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const START_MS: i64 = 1_700_000_000_000;
const FILES: [&str; 4] = [META_FILE, INDEX_FILE, "chunks/000001", TOMBSTONES_FILE];

type Files = Vec<(&'static str, Vec<u8>)>;

fn block_files() -> TestResult<Files> {
    let blocks = MemoryBlocks::default();
    let labels = |i: u32| {
        let (job, node) = (["a", "b"][i as usize % 2], format!("node-{}", i / 2));
        Labels::from_pairs([("__name__", "up"), ("job", job), ("node", node.as_str())])
    };
    let mut all = (0..6).map(labels).collect::<Result<Vec<_>, _>>()?;
    all.sort();
    let mut symbols = SymbolCollector::default();
    all.iter().for_each(|labels| symbols.add(labels));
    let mut builder = BlockBuilder::new(blocks.create(START_MS)?, symbols)?;
    for (number, labels) in all.iter().enumerate() {
        let values = (0..130).map(|i| (START_MS + i * 1000, Value::Float(i as f64)));
        let values = values.skip(number);
        builder.add_series(labels, &encode(values))?;
    }
    let meta = builder.finish(BlockMetaParams {
        min_time_ms: START_MS,
        max_time_ms: START_MS + 130_000,
        level: 1,
        ..BlockMetaParams::default()
    })?;
    let read = |name: &'static str| -> TestResult<(&'static str, Vec<u8>)> {
        let file = blocks.open(&meta.ulid, name)?;
        Ok((name, file.read_at(0, file.size() as u32)?))
    };
    FILES.into_iter().map(read).collect()
}

fn check(files: &[(&str, Vec<u8>)]) -> TestResult<(Vec<Finding>, BlockCounts)> {
    let blocks = MemoryBlocks::default();
    let mut writer = blocks.create(START_MS)?;
    for (name, bytes) in files {
        writer.write_at(name, 0, bytes)?;
    }
    let id = writer.id().to_owned();
    writer.commit()?;
    let mut check = BlockCheck::new(Rc::new(blocks), &id);
    let mut findings = Vec::new();
    loop {
        let step = check.step()?;
        findings.extend(step.findings);
        if step.done {
            assert_eq!(step.bytes_done, step.bytes_total);
            return Ok((findings, step.found));
        }
    }
}

fn with(files: &Files, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Files {
    let mut files = files.clone();
    if let Some((_, bytes)) = files.iter_mut().find(|(other, _)| *other == name) {
        change(bytes);
    }
    files
}

#[test]
fn a_sound_block_is_sound() -> TestResult {
    let (findings, found) = check(&block_files()?)?;
    assert_eq!(findings, []);
    assert_eq!((found.series, found.chunks), (6, 12));
    assert_eq!(found.samples, 6 * 130 - 15);
    Ok(())
}

#[test]
fn every_flipped_bit_is_found_in_its_file() -> TestResult {
    let files = block_files()?;
    for name in [INDEX_FILE, "chunks/000001", TOMBSTONES_FILE] {
        let len = files.iter().find(|(other, _)| *other == name).map_or(0, |file| file.1.len());
        for bit in 0..len * 8 {
            let damaged = with(&files, name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            let (findings, _) = check(&damaged)?;
            let place = format!("bit {} of byte {} of {name}", bit % 8, bit / 8);
            let in_file = findings.iter().any(|f| f.file == name && f.severity == Severity::Error);
            assert!(in_file, "{place}: {findings:?}");
        }
    }
    Ok(())
}

/// Nothing vouches for white space, and for numbers that no other part repeats.
#[test]
fn flipped_bits_of_meta_are_found_where_something_vouches_for_them() -> TestResult {
    let files = block_files()?;
    let meta = String::from_utf8(files[0].1.clone())?;
    let mut unseen = std::collections::BTreeSet::new();
    for bit in 0..meta.len() * 8 {
        let damaged = with(&files, META_FILE, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        let (findings, _) = check(&damaged)?;
        if findings.iter().any(|finding| finding.file == META_FILE) {
            continue;
        }
        // A range that shrank shows in the index, which then reaches out of it.
        if findings.is_empty() && !meta.as_bytes()[bit / 8].is_ascii_whitespace() {
            let line = meta[..bit / 8].rfind('\n').map_or(0, |at| at + 1);
            let rest = meta[line..].trim_start();
            unseen.insert(rest.split([':', '\n']).next().unwrap_or_default().to_owned());
        }
    }
    let id = &meta[meta.find("01").unwrap_or(0)..][..26];
    let own_line = format!("\"{id}\"");
    // A missing count of floats is that of an older version.
    let keys = ["\"level\"", "\"maxTime\"", "\"minTime\"", "\"numFloatSamples\""];
    let allowed = |line: &String| *line == own_line || keys.contains(&line.as_str());
    // The line of the sources is a ULID alone; that of the block's own name begins with its key.
    assert!(unseen.iter().all(allowed), "{unseen:?}");
    Ok(())
}

#[test]
fn missing_and_cut_files_are_found() -> TestResult {
    let files = block_files()?;
    for name in [INDEX_FILE, "chunks/000001", META_FILE] {
        let mut missing = files.clone();
        missing.retain(|(other, _)| *other != name);
        let (findings, _) = check(&missing)?;
        assert!(findings.iter().any(|finding| finding.file == name), "{name}: {findings:?}");
        for cut in 1..40 {
            let damaged = with(&files, name, |bytes| bytes.truncate(bytes.len() - cut));
            let (findings, _) = check(&damaged)?;
            assert!(findings.iter().any(|finding| finding.file == name), "{name} without {cut}");
        }
    }
    Ok(())
}

#[test]
fn what_checksums_vouch_for_is_checked_all_the_same() -> TestResult {
    let files = block_files()?;
    // A list of postings without its last series, and with a right checksum.
    let damaged = with(&files, INDEX_FILE, |index| {
        let toc = index.len() - 52;
        let at = toc + 32;
        let postings =
            u64::from_be_bytes(index[at..at + 8].try_into().unwrap_or_default()) as usize;
        let len = u32::from_be_bytes(index[postings..postings + 4].try_into().unwrap_or_default());
        let content = postings + 4..postings + 4 + len as usize;
        index[content.end - 1] ^= 1;
        let crc = crc32c(&index[content.clone()]);
        index[content.end..content.end + 4].copy_from_slice(&crc.to_be_bytes());
    });
    let (findings, _) = check(&damaged)?;
    assert!(findings.iter().any(|f| f.what.contains("list")), "{findings:?}");
    let damaged = with(&files, META_FILE, |meta| {
        let text = String::from_utf8_lossy(meta).replace("\"numSeries\": 6", "\"numSeries\": 7");
        *meta = text.into_bytes();
    });
    let (findings, _) = check(&damaged)?;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].what, "it counts 7 series, but there are 6");
    let mut tombstones = Tombstones::default();
    tombstones.add(SeriesRef(2), TimeRange { start_ms: 0, end_ms: 1 });
    let deleted = with(&files, TOMBSTONES_FILE, |bytes| *bytes = tombstones.encode());
    assert_eq!(check(&deleted)?.0, []);
    Ok(())
}

#[test]
fn hopeless_blocks_have_an_end() -> TestResult {
    let files = block_files()?;
    for name in FILES {
        let damaged = with(&files, name, |bytes| bytes.iter_mut().for_each(|byte| *byte = !*byte));
        assert!(!check(&damaged)?.0.is_empty());
        let damaged = with(&files, name, Vec::clear);
        assert!(!check(&damaged)?.0.is_empty());
    }
    Ok(())
}

#[test]
fn records_are_checked() {
    let mut series = series_record();
    put_series(&mut series, 7, 1, [("__name__", "up")].into_iter());
    let sample = Sample { timestamp_ms: START_MS, value: 1.0 };
    let samples_of = |series_ref| {
        let mut record = samples_record(series_ref, START_MS, 1);
        put_samples(&mut record, (series_ref, START_MS), series_ref, sample);
        record
    };
    let mut cut = samples_of(7);
    cut.pop();
    let records = [series, samples_of(7), samples_of(8), cut, vec![99, 1]];
    let errors = |blocks_end_ms| {
        let mut check = LogCheck::new(blocks_end_ms);
        let findings = check.check(LogKind::InOrder, &records);
        let LogCounts { series, lost_samples, .. } = check.counts();
        assert_eq!(series, 1);
        let records = findings.into_iter().map(|finding| finding.record);
        (records.collect::<Vec<_>>(), lost_samples)
    };
    assert_eq!(errors(i64::MIN), (vec![3, 4], 1));
    // What a block holds is no loss.
    assert_eq!(errors(START_MS + 1), (vec![3, 4], 0));
    // What is deleted behind it neither, as long as it is remembered.
    let deleted = |series_ref, end_ms| {
        let range = TimeRange { start_ms: START_MS, end_ms };
        tombstones_record([TombstoneRecord { series_ref, range }])
    };
    for (records, lost) in [
        (vec![samples_of(8), deleted(8, START_MS)], 0),
        (vec![deleted(8, START_MS), samples_of(8)], 1),
        (vec![samples_of(8), deleted(9, START_MS), deleted(8, START_MS - 1)], 1),
        (vec![samples_of(8), samples_of(9), samples_of(8), deleted(8, START_MS)], 2),
    ] {
        let mut check = LogCheck::new(i64::MIN);
        assert!(check.check(LogKind::InOrder, &records).is_empty());
        assert_eq!(check.counts().lost_samples, lost);
        assert!(check.check(LogKind::OutOfOrder, &[samples_of(10)]).is_empty());
        assert_eq!(check.counts().lost_samples, lost);
    }
}

/// A sync failed, the next segment began with a copy of its records, and a checkpoint replaced the
/// segment that the copy builds on: nothing is lost.
#[test]
fn a_copy_whose_original_a_checkpoint_replaced_is_no_damage() {
    let row = |timestamp_ms| [(7, Sample { timestamp_ms, value: 1.0 })];
    let record = |writer: &mut ColumnWriter, timestamp_ms| {
        writer.record(&row(timestamp_ms)).expect("one series")
    };
    let (mut old, mut new) = (ColumnWriter::new(1), ColumnWriter::new(2));
    let _gone = record(&mut old, START_MS - 30);
    let copies = [record(&mut old, START_MS - 20), record(&mut old, START_MS - 10)];
    let first = record(&mut new, START_MS);
    let _missing = record(&mut new, START_MS + 10);
    let after_a_gap = record(&mut new, START_MS + 20);
    let mut series = series_record();
    put_series(&mut series, 7, 1, [("__name__", "up")].into_iter());

    let mut check = LogCheck::new(START_MS);
    let [copy, other] = copies;
    // Later syncs failed, too: copies were copied, with what had come.
    let mut log = vec![series];
    let mut copies = vec![copy, other];
    for record in [first, record(&mut ColumnWriter::new(3), START_MS + 1)] {
        copies.push(record);
        log.extend(copies.iter().cloned());
        log.extend(copies.iter().cloned());
    }
    let findings = check.check(LogKind::InOrder, &log);
    assert_eq!(findings.len(), 0, "{}", findings[0].what);
    assert_eq!(check.counts().lost_samples, 0);
    let findings = check.check(LogKind::InOrder, &[after_a_gap]);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].what.contains("is missing"), "{}", findings[0].what);
}
