//! A block of upstream whose index has version 1; `engine/tests/fixtures` names its source.

use super::*;
use crate::block::tests::select::any_matcher;
use crate::codec::crc32c;
use crate::model::{Matcher, MatcherSpec};
use proptest::prelude::*;

const INDEX: &[u8] =
    include_bytes!("../../../tests/fixtures/index_format_v1/01DXXFZDYD1MQW6079WK0K6EDQ/index");
const CHUNKS: &[u8] = include_bytes!(
    "../../../tests/fixtures/index_format_v1/01DXXFZDYD1MQW6079WK0K6EDQ/chunks/000001"
);
const META: &[u8] =
    include_bytes!("../../../tests/fixtures/index_format_v1/01DXXFZDYD1MQW6079WK0K6EDQ/meta.json");
const TOMBSTONES: &[u8] =
    include_bytes!("../../../tests/fixtures/index_format_v1/01DXXFZDYD1MQW6079WK0K6EDQ/tombstones");
const DUMP: &str = include_str!("../../../tests/fixtures/index_format_v1/dump.txt");

/// Adds the block under a new name, also in its `meta.json`.
pub(crate) fn add(blocks: &MemoryBlocks, index: &[u8]) -> TestResult<String> {
    let mut writer = blocks.create(1_577_836_800_000)?;
    let id = writer.id().to_owned();
    let meta = String::from_utf8(META.to_vec())?.replace("01DXXFZDYD1MQW6079WK0K6EDQ", &id);
    for (name, bytes) in [
        ("meta.json", meta.as_bytes()),
        ("index", index),
        ("chunks/000001", CHUNKS),
        ("tombstones", TOMBSTONES),
    ] {
        writer.write_at(name, 0, bytes)?;
    }
    writer.commit()?;
    Ok(id)
}

pub(crate) fn index() -> &'static [u8] {
    INDEX
}

pub(crate) fn dump_lines() -> Vec<&'static str> {
    DUMP.lines().collect()
}

fn lines(all: &[SeriesSamples]) -> Vec<String> {
    let line = |(labels, samples): &SeriesSamples| {
        let samples = samples.iter().map(|sample| (sample.value, sample.timestamp_ms));
        samples.map(|(value, time)| format!("{labels} {value} {time}")).collect::<Vec<_>>()
    };
    all.iter().flat_map(line).collect()
}

fn open(index: &[u8]) -> TestResult<BlockReader> {
    let blocks = MemoryBlocks::default();
    let id = add(&blocks, index)?;
    Ok(BlockReader::open(&blocks, &id)?)
}

/// The index with the entries of its postings offset table in another order.
fn shuffled() -> TestResult<Vec<u8>> {
    let mut index = INDEX.to_vec();
    let toc = index.len() - 52;
    let at = |offset: usize| -> TestResult<u64> {
        Ok(u64::from_be_bytes(INDEX[offset..offset + 8].try_into()?))
    };
    let table = at(toc + 40)? as usize;
    let len = u32::from_be_bytes(INDEX[table..table + 4].try_into()?) as usize;
    let content = table + 8..table + 4 + len;
    let mut entries = Vec::new();
    let mut rest = &INDEX[content.clone()];
    while !rest.is_empty() {
        // 2, name, value, offset of two bytes at most; texts are shorter than 128 bytes.
        let name = 2 + usize::from(rest[1]);
        let value = name + 1 + usize::from(rest[name]);
        let offset = rest[value..].iter().position(|byte| byte & 0x80 == 0).ok_or("no offset")?;
        let entry;
        (entry, rest) = rest.split_at(value + offset + 1);
        entries.push(entry);
    }
    let count = entries.len();
    let moved: Vec<u8> = (0..count).flat_map(|i| entries[i * 7 % count].to_vec()).collect();
    assert!(count % 7 != 0, "the step must reach every entry");
    index[content].copy_from_slice(&moved);
    let crc = crc32c(&index[table + 4..table + 4 + len]);
    index[table + 4 + len..table + 8 + len].copy_from_slice(&crc.to_be_bytes());
    Ok(index)
}

#[test]
fn it_reads_as_promtool_dumps_it() -> TestResult {
    for index in [INDEX.to_vec(), shuffled()?] {
        let block = open(&index)?;
        assert_eq!(lines(&read_all(&block)?), dump_lines());
        assert_eq!(block.label_names().collect::<Vec<_>>(), ["bar", "foo"]);
        let values = block.label_values("bar")?;
        assert!(values.len() == 100 && values.is_sorted(), "{values:?}");
        assert_eq!(block.label_values("foo")?, ["bar", "baz"]);
        for value in &values {
            let refs = block.index().postings_for("bar", value)?;
            assert_eq!(block.series_labels(refs[0])?.get("bar"), value);
        }
        assert_eq!(block.index().values_of(&block.select(&[])?, "bar")?.len(), 100);
    }
    Ok(())
}

#[test]
fn a_shuffled_table_is_damage_in_version_2() -> TestResult {
    let mut index = shuffled()?;
    index[4] = 2;
    let error = open(&index).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("do not ascend"), "{error}");
    Ok(())
}

#[test]
fn a_symbol_that_begins_elsewhere_is_damage() -> TestResult {
    let mut index = INDEX.to_vec();
    // The first series' name, `bar`, one byte too far; then the entry's checksum.
    let entry = 0x144..0x14c;
    assert_eq!(index[entry.start - 1..entry.start + 3], [8, 1, 0xaf, 2]);
    index[entry.start + 1] = 0xb0;
    let crc = crc32c(&index[entry.clone()]);
    index[entry.end..entry.end + 4].copy_from_slice(&crc.to_be_bytes());
    let block = open(&index)?;
    let error = read_all(&block).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("damaged at byte 304: a series uses a symbol that does not"), "{error}");
    Ok(())
}

proptest! {
    #[test]
    fn selections_agree_with_a_plain_filter(
        specs in prop::collection::vec(any_matcher(), 0..2),
        name in prop::sample::select(vec!["bar", "baz", "foo", "none"]),
        expression in prop::sample::select(vec!["1.*", "[2-4]5|bar", "b.+", "", ".+", "9|99|baz"]),
        is_negated: bool,
    ) {
        let fail = |e: &dyn std::fmt::Display| TestCaseError::fail(e.to_string());
        let block = open(INDEX).map_err(|e| fail(&e))?;
        let op = if is_negated { crate::model::MatchOp::NotRegex } else { crate::model::MatchOp::Regex };
        let more = MatcherSpec { name: name.to_owned(), op, value: expression.to_owned() };
        let matchers: Result<Vec<Matcher>, _> = specs.iter().chain([&more]).map(Matcher::new).collect();
        let matchers = matchers.map_err(|e| fail(&e))?;
        let all = read_all(&block).map_err(|e| fail(&e))?;
        let is_selected = |labels: &Labels| matchers.iter().all(|m| m.matches(labels.get(m.name())));
        let expected: Vec<Labels> = all.into_iter().map(|(labels, _)| labels).filter(is_selected).collect();
        let refs = block.select(&matchers).map_err(|e| fail(&e))?;
        let selected: Result<Vec<Labels>, _> = refs.iter().map(|r| block.series_labels(*r)).collect();
        prop_assert_eq!(selected.map_err(|e| fail(&e))?, expected);
    }
}
