//! Chunks that the storage has checked are not checked again; all others are.

use super::*;
use crate::codec::crc32c;
use crate::storage::ChunkBytes;
use tidepool_remote_write::checked_ends;

/// Returns the ends of chunks that follow one another from the first byte on.
type Ends = fn(&[u8]) -> Vec<u32>;

/// A file whose storage reports chunks as checked.
struct CheckingFile {
    inner: Rc<dyn BlockFile>,
    ends: Ends,
}

impl BlockFile for CheckingFile {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, len: u32) -> StorageResult<Vec<u8>> {
        self.inner.read_at(offset, len)
    }

    fn read_chunks(&self, offset: u64, len: u32) -> StorageResult<ChunkBytes> {
        let bytes = self.inner.read_at(offset, len)?;
        Ok(ChunkBytes { ends: (self.ends)(&bytes), bytes })
    }
}

fn checking(inner: MemoryBlocks, ends: Ends) -> impl Blocks {
    let through =
        move |inner, _: &str| -> Rc<dyn BlockFile> { Rc::new(CheckingFile { inner, ends }) };
    ReadThrough { inner, through }
}

fn right(bytes: &[u8]) -> Vec<u32> {
    checked_ends(bytes, crc32c)
}

fn blind(bytes: &[u8]) -> Vec<u32> {
    let mut ends = Vec::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..)
        && let Ok(extent) = tidepool_remote_write::chunk_extent(rest)
        && extent.end <= rest.len()
    {
        at += extent.end;
        ends.push(at as u32);
    }
    ends
}

fn with_flipped(blocks: &MemoryBlocks, id: &str, at: usize) -> TestResult<(MemoryBlocks, String)> {
    let mut files = files_of(blocks, id)?;
    files[0].1[at] ^= 0x04;
    let files: Vec<_> = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    Ok(block_of_files(&files)?)
}

#[test]
fn a_storage_that_checks_gives_the_same() -> TestResult {
    let series = many_series(1000, 300)?;
    let inner = MemoryBlocks::default();
    let meta = write_with(&inner, &series, |builder| builder.with_chunk_file_bytes_max(100_000))?;
    let blocks = checking(inner, right);
    let block = BlockReader::open(&blocks, &meta.ulid)?;
    assert_eq!(read_all(&block)?, series);
    // Backwards, and with some left out.
    check_backwards(&block, &series, 3)
}

#[test]
fn damage_is_found_as_without_a_storage_that_checks() -> TestResult {
    let series = many_series(40, 3)?;
    let whole = MemoryBlocks::default();
    let meta = write(&whole, &series)?;
    let len = content(&whole, &meta.ulid, "chunks/000001")?.len();
    for at in 8..len {
        let (inner, id) = with_flipped(&whole, &meta.ulid, at)?;
        let told = |blocks: &dyn Blocks| -> TestResult<String> {
            let block = BlockReader::open(blocks, &id)?;
            Ok(read_all(&block).err().map(|error| error.to_string()).unwrap_or_default())
        };
        let expected = told(&inner)?;
        assert!(expected.contains("chunks/000001"), "byte {at}: {expected}");
        assert_eq!(told(&checking(inner, right))?, expected, "byte {at}");
    }
    Ok(())
}

/// If every checksum is believed, a wrong one in the second chunk shows which side checked it.
#[test]
fn what_the_storage_lists_is_not_checked_again() -> TestResult {
    let series = many_series(40, 3)?;
    let whole = MemoryBlocks::default();
    let meta = write(&whole, &series)?;
    let bytes = content(&whole, &meta.ulid, "chunks/000001")?;
    let ends = right(&bytes[8..]);
    let checksum = 8 + ends[1] as usize - 1;
    let (inner, id) = with_flipped(&whole, &meta.ulid, checksum)?;
    let read = |ends: Ends| -> TestResult<Vec<SeriesSamples>> {
        let blocks = checking(inner.clone(), ends);
        read_all(&BlockReader::open(&blocks, &id)?)
    };
    assert_eq!(read(blind)?, series);
    let refused =
        |ends: Ends| read(ends).is_err_and(|error| error.to_string().contains("checksum"));
    assert!(refused(right));
    assert!(refused(|_| Vec::new()));
    // Ends where no chunk ends vouch for nothing.
    assert!(refused(|bytes| (1..=bytes.len() as u32).step_by(5).collect()));
    assert!(refused(|bytes| blind(bytes).into_iter().filter(|end| end % 2 == 0).rev().collect()));
    Ok(())
}
