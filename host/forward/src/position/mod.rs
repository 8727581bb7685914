//! The delivery position, in a file that upstream ignores: `forward/<name>.position`.
//!
//! ```text
//! slot 0 at 0, slot 1 at 4 MiB, written in turn:
//! ┌──────────┬────────────┬───────────┬─────────────────┐
//! │ magic 8B │ CRC-32C 4B │ count 8B  │ len 4B │ content │   of valid slots, the larger count is used
//! └──────────┴────────────┴───────────┴─────────────────┘
//! content: gap file u64 │ shards u32 │ per shard: 2 × (segment, record, row u32)
//!          │ window i64 │ time i64 │ labels len u32, labels
//!          then the progress of delivery: time i64, `i64::MIN` if it is not known
//! ```
//!
//! Numbers are little-endian. A write goes to the older slot, so a crash during a write leaves the
//! newer slot intact. Gaps, ranges to read from the store, are large and change rarely: they are
//! in files of their own, `forward/<name>.gaps.<number>`, written before the position that names
//! them. A position that cannot be read is kept as `forward/<name>.position.damaged`.

use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use tidepool_disk::wal::POSITION_SUFFIX;
use tidepool_runtime::{Place, ShardPosition};

const MAGIC: &[u8; 8] = b"tidefwd2";
/// Magic of older versions, which assigned series to shards in another way.
const MAGIC_OF_OTHER_SHARDS: &[u8; 8] = b"tidefwd1";
const DAMAGED: &str = ".position.damaged";
const GAPS: &str = ".gaps.";
const SLOT_BYTES: u64 = 4 << 20;
const HEAD_BYTES: usize = 8 + 4 + 8 + 4;

/// Delivery position of a destination.
#[derive(Clone, Debug, Default)]
pub struct Position {
    pub shards: Vec<ShardPosition>,
    /// The gaps, as the engine encodes them.
    pub gaps: Vec<u8>,
    /// Time up to which samples are delivered.
    pub delivered_ms: Option<i64>,
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

/// Kind of a destination's file.
enum Part {
    Position,
    Gaps(u64),
    Damaged,
}

impl Position {
    /// Returns a position in which each of `shards` shards has these two places in the logs.
    pub fn at(in_order: Place, out_of_order: Place, shards: u32) -> Position {
        let (store_window_ms, store_time_ms) = (i64::MIN, i64::MIN);
        let store_labels = Vec::new();
        let shard =
            ShardPosition { in_order, out_of_order, store_window_ms, store_labels, store_time_ms };
        let shards = vec![shard; shards.max(1) as usize];
        Position { shards, gaps: Vec::new(), delivered_ms: None }
    }

    /// Returns positions for another assignment of series to shards: each starts at the earliest of
    /// the old positions. No row is skipped, but delivered rows may be sent again.
    fn with_other_shards(shards: &[ShardPosition]) -> Vec<ShardPosition> {
        let first = |place: fn(&ShardPosition) -> Place| {
            shards.iter().map(place).min_by_key(|place| (place.segment, place.record, place.row))
        };
        let in_order = first(|shard| shard.in_order);
        let out_of_order = first(|shard| shard.out_of_order);
        let (Some(in_order), Some(out_of_order)) = (in_order, out_of_order) else {
            return Vec::new();
        };
        Position::at(in_order, out_of_order, shards.len() as u32).shards
    }

    /// Returns the beginning of the logs, for when earlier deliveries are not known.
    pub fn oldest() -> Position {
        let place = Place { segment: 0, record: 0, row: 0 };
        Position::at(place, place, 1)
    }
}

impl PositionFile {
    /// Opens or creates the file; returns its position, if any. A damaged file must not keep an
    /// unattended node from starting: it is renamed, and all samples in the log are sent again.
    pub fn open(dir: &Path, name: &str) -> io::Result<(PositionFile, Option<Position>)> {
        fs::create_dir_all(dir)?;
        let path = dir.join(format!("{name}{POSITION_SUFFIX}"));
        let mut all = PositionFile {
            file: open(&path)?,
            dir: dir.to_owned(),
            name: name.to_owned(),
            count: 0,
            gap_number: 0,
            gaps: Vec::new(),
            is_synced: true,
        };
        let read = all.read();
        if let Err(what) = &read {
            let kept = dir.join(format!("{name}{DAMAGED}"));
            fs::rename(&path, &kept)?;
            all.file = open(&path)?;
            tracing::error!(
                remote_name = name, %what, kept = %kept.display(),
                "position file damaged: resending the whole WAL; the backlog in blocks is not \
                 sent"
            );
        }
        // A new or renamed file survives a power cut only if its directory is synced.
        File::open(dir)?.sync_all()?;
        // A crash may have left files of gaps that no position names.
        let is_left = |part: &Part| matches!(part, Part::Gaps(number) if *number != all.gap_number);
        remove(dir, |found, part| found == name && is_left(part))?;
        let position = read.unwrap_or_else(|_| Some(Position::oldest()));
        Ok((all, position))
    }

    /// Reads the position; an error says why it cannot be read.
    fn read(&mut self) -> Result<Option<Position>, String> {
        let slots = [0, 1].map(|slot| read_slot(&self.file, slot));
        let newest = slots.into_iter().flatten().max_by_key(|slot| slot.count);
        let Some(Slot { count, content, is_of_other_shards }) = newest else {
            // An empty file is new. A file with content but without an intact slot is damaged.
            return match self.file.metadata() {
                Ok(metadata) if metadata.len() == 0 => Ok(None),
                Ok(_) => Err("the position is damaged".to_owned()),
                Err(error) => Err(error.to_string()),
            };
        };
        let (gap_number, mut shards, delivered_ms) =
            decode(&content).ok_or("the position is of another version of tidepool")?;
        // A single shard has all series in either assignment.
        if is_of_other_shards && shards.len() > 1 {
            shards = Position::with_other_shards(&shards);
        }
        let mut gaps = Vec::new();
        if gap_number > 0 {
            let read = fs::read(self.gap_path(gap_number));
            gaps = read.map_err(|error| format!("the list of gaps: {error}"))?;
            let sum = gaps.split_last_chunk::<4>();
            let is_whole =
                sum.is_some_and(|(gaps, sum)| crc32c::crc32c(gaps).to_le_bytes() == *sum);
            if !is_whole {
                return Err("the list of gaps is damaged".to_owned());
            }
            gaps.truncate(gaps.len() - 4);
        }
        (self.count, self.gap_number) = (count, gap_number);
        self.gaps.clone_from(&gaps);
        Ok(Some(Position { shards, gaps, delivered_ms }))
    }

    /// Removes the files of all destinations except `names`. A removed destination that is
    /// configured again starts from scratch. Returns the names whose positions were removed.
    pub fn keep_only(dir: &Path, names: &[&str]) -> io::Result<Vec<String>> {
        let mut gone = Vec::new();
        remove(dir, |found, part| {
            let is_removed = !names.contains(&found);
            if is_removed && matches!(part, Part::Position) {
                gone.push(found.to_owned());
            }
            is_removed
        })?;
        Ok(gone)
    }

    fn gap_path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{}{GAPS}{number}", self.name))
    }

    /// Writes the position. It survives a crash of the process at once, and a power cut after
    /// [`PositionFile::sync`]; changed gaps are synced at once. A failed write changes nothing.
    pub fn write(
        &mut self,
        shards: &[ShardPosition],
        gaps: Option<Vec<u8>>,
        delivered_ms: Option<i64>,
    ) -> io::Result<()> {
        let gaps = gaps.filter(|gaps| *gaps != self.gaps);
        let gap_number = match &gaps {
            None => self.gap_number,
            Some(gaps) if gaps.is_empty() => 0,
            Some(gaps) => {
                // A new number: the position on disk still names the file of the old gaps.
                let number = self.gap_number.max(self.count) + 1;
                let mut bytes = gaps.clone();
                bytes.extend_from_slice(&crc32c::crc32c(gaps).to_le_bytes());
                let path = self.gap_path(number);
                // Synced before a position names the file, without which it is unreadable.
                fs::write(&path, bytes)?;
                File::open(&path)?.sync_all()?;
                File::open(&self.dir)?.sync_all()?;
                number
            }
        };
        let content = encode(gap_number, shards, delivered_ms);
        // A longer slot would overwrite the next slot.
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
        // The slots are written in turn, so that the newest slot is never overwritten.
        self.file.write_all_at(&slot, (count % 2) * SLOT_BYTES)?;
        (self.count, self.is_synced) = (count, false);
        let before = std::mem::replace(&mut self.gap_number, gap_number);
        if let Some(gaps) = gaps {
            self.gaps = gaps;
        }
        if gap_number != before {
            // The older slot names the old gaps. They are removed only once the new slot is synced.
            self.sync()?;
            if before > 0 {
                let _ = fs::remove_file(self.gap_path(before));
            }
        }
        Ok(())
    }

    /// Syncs the file, so that the written position survives a power cut.
    pub fn sync(&mut self) -> io::Result<()> {
        if !self.is_synced {
            self.file.sync_data()?;
            self.is_synced = true;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Removes the files for which `is_removed`, given destination and kind of file, returns true.
fn remove(dir: &Path, mut is_removed: impl FnMut(&str, &Part) -> bool) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let file_name = entry.file_name();
        let Some((name, part)) = file_name.to_str().and_then(part_of) else { continue };
        if is_removed(name, &part) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Returns the destination and the kind of a file by its name.
fn part_of(file_name: &str) -> Option<(&str, Part)> {
    if let Some(name) = file_name.strip_suffix(POSITION_SUFFIX) {
        return Some((name, Part::Position));
    }
    if let Some(name) = file_name.strip_suffix(DAMAGED) {
        return Some((name, Part::Damaged));
    }
    let (name, number) = file_name.rsplit_once(GAPS)?;
    Some((name, Part::Gaps(number.parse().ok()?)))
}

/// A slot whose checksum is correct.
struct Slot {
    count: u64,
    content: Vec<u8>,
    is_of_other_shards: bool,
}

fn read_slot(file: &File, slot: u64) -> Option<Slot> {
    let mut head = [0; HEAD_BYTES];
    file.read_exact_at(&mut head, slot * SLOT_BYTES).ok()?;
    let (magic, rest) = head.split_first_chunk::<8>()?;
    let is_of_other_shards = magic == MAGIC_OF_OTHER_SHARDS;
    if magic != MAGIC && !is_of_other_shards {
        return None;
    }
    let (sum, checked) = rest.split_first_chunk::<4>()?;
    let (count, len) = checked.split_first_chunk::<8>()?;
    let len = u32::from_le_bytes(*len.first_chunk::<4>()?) as usize;
    // A damaged length must not allocate more than a slot.
    if (len + HEAD_BYTES) as u64 > SLOT_BYTES {
        return None;
    }
    let mut all = checked.to_vec();
    all.resize(checked.len() + len, 0);
    let content = all.get_mut(checked.len()..)?;
    file.read_exact_at(content, slot * SLOT_BYTES + HEAD_BYTES as u64).ok()?;
    let is_whole = crc32c::crc32c(&all).to_le_bytes() == *sum;
    let (count, content) = (u64::from_le_bytes(*count), all.split_off(checked.len()));
    is_whole.then_some(Slot { count, content, is_of_other_shards })
}

fn encode(gap_number: u64, shards: &[ShardPosition], delivered_ms: Option<i64>) -> Vec<u8> {
    let mut out = gap_number.to_le_bytes().to_vec();
    out.extend_from_slice(&(shards.len() as u32).to_le_bytes());
    for shard in shards {
        for place in [&shard.in_order, &shard.out_of_order] {
            for number in [place.segment, place.record, place.row] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        out.extend_from_slice(&shard.store_window_ms.to_le_bytes());
        out.extend_from_slice(&shard.store_time_ms.to_le_bytes());
        out.extend_from_slice(&(shard.store_labels.len() as u32).to_le_bytes());
        out.extend_from_slice(&shard.store_labels);
    }
    out.extend_from_slice(&delivered_ms.unwrap_or(i64::MIN).to_le_bytes());
    out
}

fn decode(mut bytes: &[u8]) -> Option<(u64, Vec<ShardPosition>, Option<i64>)> {
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
        let (in_order, out_of_order) = (place(&mut bytes)?, place(&mut bytes)?);
        let store_window_ms = i64::from_le_bytes(take(&mut bytes)?);
        let store_time_ms = i64::from_le_bytes(take(&mut bytes)?);
        let len = number(&mut bytes)? as usize;
        let (labels, rest) = bytes.split_at_checked(len)?;
        bytes = rest;
        let store_labels = labels.to_vec();
        shards.push(ShardPosition {
            in_order,
            out_of_order,
            store_window_ms,
            store_labels,
            store_time_ms,
        });
    }
    // Positions of older versions end here, without a progress.
    let delivered_ms = match bytes.is_empty() {
        true => i64::MIN,
        false => i64::from_le_bytes(take(&mut bytes)?),
    };
    let delivered_ms = Some(delivered_ms).filter(|time_ms| *time_ms > i64::MIN);
    bytes.is_empty().then_some((gap_number, shards, delivered_ms))
}

#[cfg(test)]
mod tests;
