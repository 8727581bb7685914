//! An index with large holes, so that series and postings lie beyond 4 GiB.

use super::*;
use crate::index::{ChunkRef, INDEX_FILE, IndexError, IndexReader, IndexWriter, LabelIndex};
use crate::storage::{BlockFile, BlockWriter, StorageError};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const GIB: u64 = 1024 * 1024 * 1024;

/// One sparse file: keeps written pieces, and reads all else as zeros.
#[derive(Clone, Default)]
struct Sparse(Rc<RefCell<BTreeMap<u64, Vec<u8>>>>);

impl BlockWriter for Sparse {
    fn id(&self) -> &str {
        "sparse"
    }

    fn write_at(&mut self, _: &str, offset: u64, bytes: &[u8]) -> StorageResult<()> {
        let mut pieces = self.0.borrow_mut();
        // A section's length is filled in later.
        if let Some((start, piece)) = pieces.range_mut(..=offset).next_back()
            && let Ok(at) = usize::try_from(offset - start)
            && let Some(place) = piece.get_mut(at..at + bytes.len())
        {
            place.copy_from_slice(bytes);
        } else {
            pieces.insert(offset, bytes.to_vec());
        }
        Ok(())
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        Ok(())
    }
}

impl BlockFile for Sparse {
    fn size(&self) -> u64 {
        let pieces = self.0.borrow();
        pieces.last_key_value().map_or(0, |(start, piece)| start + piece.len() as u64)
    }

    fn read_at(&self, offset: u64, len: u32) -> StorageResult<Vec<u8>> {
        let mut read = vec![0; len as usize];
        let end = offset + u64::from(len);
        for (start, piece) in self.0.borrow().range(..end) {
            let from = offset.max(*start);
            let to = end.min(start + piece.len() as u64);
            if from < to {
                let place = (from - offset) as usize..(to - offset) as usize;
                read[place].copy_from_slice(&piece[(from - start) as usize..(to - start) as usize]);
            }
        }
        Ok(read)
    }
}

impl Blocks for Sparse {
    fn list(&self) -> StorageResult<Vec<String>> {
        Ok(vec!["sparse".to_owned()])
    }

    fn open(&self, _: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        match file {
            INDEX_FILE => Ok(Rc::new(self.clone())),
            other => Err(StorageError::NotFound { what: other.to_owned() }),
        }
    }

    fn create(&self, _: i64) -> StorageResult<Box<dyn BlockWriter>> {
        Ok(Box::new(self.clone()))
    }

    fn delete(&self, _: &str) -> StorageResult<()> {
        Ok(())
    }

    fn replace_tombstones(&self, _: &str, _: &[u8], _: &[u8]) -> StorageResult<()> {
        Ok(())
    }
}

#[test]
fn offsets_beyond_four_gib_are_kept_whole() -> TestResult {
    let series = many_series(300, 1)?;
    // Chunks lie in files up to the last number, and up to the last offset.
    let far = ChunkMeta {
        min_time_ms: 5,
        max_time_ms: 6,
        chunk_ref: ChunkRef::new(u32::MAX, u32::MAX - 8),
    };
    for holes in [[5 * GIB, 0], [0, 5 * GIB], [59 * GIB, 5 * GIB - 1024 * 1024]] {
        let mut symbols = SymbolCollector::new(7);
        series.iter().for_each(|(labels, _)| symbols.add(labels));
        let mut file = Sparse::default();
        let mut writer = IndexWriter::new(symbols.into_sorted(), &mut file)?;
        writer.skip(holes[0], &mut file)?;
        let (middle, mut refs) = (series.len() / 2, Vec::new());
        for (number, (labels, _)) in series.iter().enumerate() {
            if number == middle {
                writer.skip(holes[1], &mut file)?;
            }
            refs.push(writer.add_series(labels, &[far], &mut file)?);
        }
        writer.skip(3 * GIB, &mut file)?;
        writer.finish(&mut file)?;
        assert!(file.size() > 8 * GIB);

        let index = IndexReader::open(&file, "sparse")?;
        assert_eq!(index.select(&[])?, refs);
        for ((labels, _), series_ref) in series.iter().zip(&refs) {
            assert_eq!(index.series(*series_ref)?, (labels.clone(), vec![far]));
        }
        for name in ["path", "instance"] {
            for value in index.label_values(name)? {
                let has_it = |(labels, _): &&SeriesSamples| labels.get(name) == value;
                let expected = series.iter().filter(has_it).count();
                assert_eq!(index.postings_for(name, &value)?.len(), expected);
                let lists = index.find_lists(name, &[value])?;
                assert!(lists.iter().all(|offset| *offset > 4 * GIB));
            }
        }
    }
    Ok(())
}

#[test]
fn series_beyond_the_last_reference_are_refused() -> TestResult {
    let series = many_series(3, 1)?;
    let mut symbols = SymbolCollector::new(7);
    series.iter().for_each(|(labels, _)| symbols.add(labels));
    let mut file = Sparse::default();
    let mut writer = IndexWriter::new(symbols.into_sorted(), &mut file)?;
    writer.skip(64 * GIB, &mut file)?;
    let refused = writer.add_series(&series[0].0, &[], &mut file);
    assert!(matches!(refused, Err(IndexError::TooLarge { what: "the index", .. })), "{refused:?}");
    Ok(())
}
