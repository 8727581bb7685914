//! An index with a stored summary gives the same answers as one that was read.

use super::*;
use crate::index::IndexReader;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Summaries that were kept, and the number of bytes that were read.
#[derive(Clone, Default)]
struct Noted {
    summaries: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    read_bytes: Rc<Cell<u64>>,
}

struct NotingFile {
    inner: Rc<dyn BlockFile>,
    block: String,
    noted: Noted,
}

impl BlockFile for NotingFile {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, len: u32) -> StorageResult<Vec<u8>> {
        let read_bytes = &self.noted.read_bytes;
        read_bytes.set(read_bytes.get() + u64::from(len));
        self.inner.read_at(offset, len)
    }

    fn summary(&self) -> Option<Vec<u8>> {
        self.noted.summaries.borrow().get(&self.block).cloned()
    }

    fn keep_summary(&self, summary: &[u8]) {
        self.noted.summaries.borrow_mut().insert(self.block.clone(), summary.to_vec());
    }
}

/// All answers of an index as text.
fn answers(index: &IndexReader) -> TestResult<Vec<String>> {
    let mut answers = Vec::new();
    for name in index.label_names() {
        answers.push(format!("{name} {}", index.label_value_count(name)));
        for value in index.label_values(name)? {
            answers.push(format!("{value} {:?}", index.postings_for(name, &value)?));
        }
        answers.push(format!("{:?}", index.postings_for(name, "no such value")?));
    }
    for series in index.all_postings()? {
        answers.push(format!("{:?}", index.series(series)?));
    }
    Ok(answers)
}

#[test]
fn a_summarized_index_says_the_same_and_is_read_less() -> TestResult {
    let noted = Noted::default();
    let through = |inner, block: &str| -> Rc<dyn BlockFile> {
        Rc::new(NotingFile { inner, block: block.to_owned(), noted: noted.clone() })
    };
    let blocks = ReadThrough { inner: MemoryBlocks::default(), through };
    let meta = write(&blocks.inner, &many_series(3000, 2)?)?;
    let expected = answers(&IndexReader::open(&blocks, &meta.ulid)?)?;
    assert!(noted.summaries.borrow().is_empty());

    let opened_with = |expected: &[String]| -> TestResult<u64> {
        noted.read_bytes.set(0);
        let index = IndexReader::reopen(&blocks, &meta.ulid)?;
        let read_bytes = noted.read_bytes.get();
        assert_eq!(answers(&index)?, expected);
        Ok(read_bytes)
    };
    let first = opened_with(&expected)?;
    let second = opened_with(&expected)?;
    assert!(second < 100 && first > 10_000, "{first} bytes, then {second}");

    // Summaries that are cut short, go on, or are of another file say nothing.
    let summary = noted.summaries.borrow().get(&meta.ulid).cloned().unwrap_or_default();
    let other = write(&blocks.inner, &many_series(2999, 2)?)?;
    IndexReader::reopen(&blocks, &other.ulid)?;
    let of_other = noted.summaries.borrow().get(&other.ulid).cloned().unwrap_or_default();
    let longer = [summary.as_slice(), &[0]].concat();
    let cuts = (0..summary.len()).step_by(97).map(|end| summary[..end].to_vec());
    for wrong in cuts.chain([of_other, longer]) {
        noted.summaries.borrow_mut().insert(meta.ulid.clone(), wrong);
        let index = IndexReader::reopen(&blocks, &meta.ulid)?;
        assert_eq!(index.label_names().count(), 4);
        assert_eq!(noted.summaries.borrow().get(&meta.ulid), Some(&summary));
    }
    assert_eq!(opened_with(&expected)?, second);
    Ok(())
}
