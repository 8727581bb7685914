//! Where delivery stands, in a file that upstream ignores: `forward/<name>.position`.
//!
//! ```text
//! slot 0 at 0, slot 1 at 4 MiB, written in turn:
//! ┌──────────┬────────────┬───────────┬─────────────────┐
//! │ magic 8B │ CRC-32C 4B │ count 8B  │ len 4B │ content │   the larger count whose checksum holds
//! └──────────┴────────────┴───────────┴─────────────────┘
//! content: gap file u64 │ shards u32 │ per shard: 2 × (segment, record, row u32)
//!          │ window i64 │ time i64 │ labels len u32, labels
//! ```
//!
//! Numbers are little-endian. A write goes to the slot that is not the newest, so a crash in the
//! middle leaves the one before. Gaps are large and change rarely: they are files of their own,
//! `forward/<name>.gaps.<number>`, written before the position that names them.

use crate::wasm::{Place, ShardPosition};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"tidefwd1";
const SLOT_BYTES: u64 = 4 << 20;
const HEAD_BYTES: usize = 8 + 4 + 8 + 4;

/// What is written down.
#[derive(Clone, Debug, Default)]
pub struct Position {
    /// By shard.
    pub shards: Vec<ShardPosition>,
    /// The gaps, as the engine gives them.
    pub gaps: Vec<u8>,
}

/// The files of one destination.
pub struct PositionFile {
    file: File,
    dir: PathBuf,
    name: String,
    count: u64,
    gap_number: u64,
    gaps: Vec<u8>,
    is_synced: bool,
}

impl PositionFile {
    /// Opens or makes the file; gives what it says, if it says anything.
    pub fn open(dir: &Path, name: &str) -> io::Result<(PositionFile, Option<Position>)> {
        fs::create_dir_all(dir)?;
        let path = dir.join(format!("{name}.position"));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path)?;
        File::open(dir)?.sync_all()?;
        let slots = [0, 1].map(|slot| read_slot(&file, slot));
        let mut all = PositionFile {
            file,
            dir: dir.to_owned(),
            name: name.to_owned(),
            count: 0,
            gap_number: 0,
            gaps: Vec::new(),
            is_synced: true,
        };
        let newest = slots.into_iter().flatten().max_by_key(|(count, _)| *count);
        let Some((count, content)) = newest else {
            if all.file.metadata()?.len() > 0 {
                return Err(io::Error::other(format!(
                    "{} is damaged; without it nobody knows what was delivered: remove it to go on \
                     from now",
                    path.display()
                )));
            }
            return Ok((all, None));
        };
        let wrong = || io::Error::other(format!("{} is of another version", path.display()));
        let (gap_number, shards) = decode(&content).ok_or_else(wrong)?;
        (all.count, all.gap_number) = (count, gap_number);
        if gap_number > 0 {
            let path = all.gap_path(gap_number);
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            };
            let mut bytes = Vec::new();
            File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(named)?;
            let sum = bytes.split_last_chunk::<4>();
            let whole = sum.filter(|(gaps, sum)| crc32c::crc32c(gaps).to_le_bytes() == **sum);
            let (gaps, _) = whole.ok_or_else(|| named(io::Error::other("it is damaged")))?;
            all.gaps = gaps.to_vec();
        }
        let gaps = all.gaps.clone();
        Ok((all, Some(Position { shards, gaps })))
    }

    fn gap_path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{}.gaps.{number}", self.name))
    }

    /// Writes down where delivery stands. Survives a crash of the process from here on, and a power
    /// cut once synced; gaps do at once.
    pub fn write(&mut self, shards: &[ShardPosition], gaps: Option<Vec<u8>>) -> io::Result<()> {
        let before = self.gap_number;
        if let Some(gaps) = gaps.filter(|gaps| *gaps != self.gaps) {
            let number = before.max(self.count) + 1;
            if !gaps.is_empty() {
                let mut bytes = gaps.clone();
                bytes.extend_from_slice(&crc32c::crc32c(&gaps).to_le_bytes());
                let path = self.gap_path(number);
                fs::write(&path, bytes)?;
                File::open(&path)?.sync_all()?;
                File::open(&self.dir)?.sync_all()?;
            }
            self.gap_number = if gaps.is_empty() { 0 } else { number };
            self.gaps = gaps;
        }
        let content = encode(self.gap_number, shards);
        if (content.len() + HEAD_BYTES) as u64 > SLOT_BYTES {
            return Err(io::Error::from(Errno::FBIG));
        }
        let count = self.count + 1;
        let mut checked = count.to_le_bytes().to_vec();
        checked.extend_from_slice(&(content.len() as u32).to_le_bytes());
        checked.extend_from_slice(&content);
        let mut slot = MAGIC.to_vec();
        slot.extend_from_slice(&crc32c::crc32c(&checked).to_le_bytes());
        slot.extend_from_slice(&checked);
        self.file.write_all_at(&slot, (count % 2) * SLOT_BYTES)?;
        (self.count, self.is_synced) = (count, false);
        if self.gap_number != before {
            self.sync()?;
            if before > 0 {
                let _ = fs::remove_file(self.gap_path(before));
            }
        }
        Ok(())
    }

    /// Makes what was written survive a power cut.
    pub fn sync(&mut self) -> io::Result<()> {
        if !self.is_synced {
            self.file.sync_data()?;
            self.is_synced = true;
        }
        Ok(())
    }
}

fn read_slot(file: &File, slot: u64) -> Option<(u64, Vec<u8>)> {
    let mut head = [0; HEAD_BYTES];
    file.read_exact_at(&mut head, slot * SLOT_BYTES).ok()?;
    let rest = head.strip_prefix(MAGIC)?;
    let (sum, checked) = rest.split_first_chunk::<4>()?;
    let (count, len) = checked.split_first_chunk::<8>()?;
    let len = u32::from_le_bytes(*len.first_chunk::<4>()?) as usize;
    if (len + HEAD_BYTES) as u64 > SLOT_BYTES {
        return None;
    }
    let mut all = checked.to_vec();
    all.resize(checked.len() + len, 0);
    let content = all.get_mut(checked.len()..)?;
    file.read_exact_at(content, slot * SLOT_BYTES + HEAD_BYTES as u64).ok()?;
    let is_whole = crc32c::crc32c(&all).to_le_bytes() == *sum;
    is_whole.then(|| (u64::from_le_bytes(*count), all.split_off(checked.len())))
}

fn encode(gap_number: u64, shards: &[ShardPosition]) -> Vec<u8> {
    let mut out = gap_number.to_le_bytes().to_vec();
    out.extend_from_slice(&(shards.len() as u32).to_le_bytes());
    for shard in shards {
        for place in [&shard.ordered, &shard.late] {
            for number in [place.segment, place.record, place.row] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        out.extend_from_slice(&shard.store_window_ms.to_le_bytes());
        out.extend_from_slice(&shard.store_time_ms.to_le_bytes());
        out.extend_from_slice(&(shard.store_labels.len() as u32).to_le_bytes());
        out.extend_from_slice(&shard.store_labels);
    }
    out
}

fn decode(mut bytes: &[u8]) -> Option<(u64, Vec<ShardPosition>)> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (head, rest) = bytes.split_first_chunk::<N>()?;
        *bytes = rest;
        Some(*head)
    }
    fn number(bytes: &mut &[u8]) -> Option<u32> {
        take(bytes).map(u32::from_le_bytes)
    }
    fn place(bytes: &mut &[u8]) -> Option<Place> {
        Some(Place { segment: number(bytes)?, record: number(bytes)?, row: number(bytes)? })
    }
    let gap_number = u64::from_le_bytes(take(&mut bytes)?);
    let count = number(&mut bytes)?;
    let mut shards = Vec::new();
    for _ in 0..count {
        let (ordered, late) = (place(&mut bytes)?, place(&mut bytes)?);
        let store_window_ms = i64::from_le_bytes(take(&mut bytes)?);
        let store_time_ms = i64::from_le_bytes(take(&mut bytes)?);
        let len = number(&mut bytes)? as usize;
        let (labels, rest) = bytes.split_at_checked(len)?;
        bytes = rest;
        let store_labels = labels.to_vec();
        shards.push(ShardPosition { ordered, late, store_window_ms, store_labels, store_time_ms });
    }
    bytes.is_empty().then_some((gap_number, shards))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(segment: u32) -> ShardPosition {
        let place = |record| Place { segment, record, row: 7 };
        ShardPosition {
            ordered: place(1),
            late: place(2),
            store_window_ms: -5,
            store_labels: vec![1; segment as usize],
            store_time_ms: i64::MIN,
        }
    }

    #[test]
    fn what_was_written_last_is_read_whatever_is_left_of_it() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a.position");
        let (mut file, none) = PositionFile::open(dir.path(), "a")?;
        assert!(none.is_none());
        let segments = |position: Option<Position>| {
            position.map(|p| p.shards.iter().map(|s| s.ordered.segment).collect::<Vec<_>>())
        };
        for segment in 1..=3 {
            file.write(&[shard(segment), shard(segment + 10)], Some(vec![9; segment as usize]))?;
            let (_, read) = PositionFile::open(dir.path(), "a")?;
            let read = read.ok_or_else(|| io::Error::other("nothing"))?;
            assert_eq!(read.gaps, vec![9; segment as usize]);
            assert_eq!(format!("{:?}", read.shards[0]), format!("{:?}", shard(segment)));
        }
        file.write(&[shard(4)], None)?;
        // The newest slot is torn: the one before counts.
        let whole = fs::read(&path)?;
        for cut in [10, HEAD_BYTES + 3] {
            let mut torn = whole.clone();
            torn[cut] ^= 1;
            fs::write(&path, torn)?;
            let (_, read) = PositionFile::open(dir.path(), "a")?;
            assert_eq!(segments(read), Some(vec![3, 13]), "{cut}");
        }
        fs::write(&path, b"something else")?;
        assert!(PositionFile::open(dir.path(), "a").is_err());
        let files = fs::read_dir(dir.path())?.count();
        assert_eq!(files, 2, "of the gaps only the last are left");
        Ok(())
    }
}
