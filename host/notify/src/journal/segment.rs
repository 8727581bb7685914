//! One segment: its name, what is in it, and how a damaged one is repaired.

use super::error::{JournalError, Result};
use super::format::{ENTRY_RECORD_BYTES_MIN, MAGIC, NUMBER_MAX, Record};
use super::reader::{Piece, Place, Reader};
use std::io;
use std::path::{Path, PathBuf};
use tidepool_disk::error::Action;
use tidepool_disk::fs::Disk;

/// Places of damage in a file that are named one by one; further ones are counted.
const PLACES_MAX: usize = 16;

/// Bytes that a repair writes at once.
const WRITE_BYTES: usize = 64 * 1024;

/// Suffix of a file that will replace a damaged segment.
pub(super) const UNFINISHED_SUFFIX: &str = ".tmp";

/// A segment in the directory.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// The number in its name: that of its first event.
    pub(super) first: u64,
    /// Where its last intact record ends. Appended records are counted once they are synced.
    pub(super) bytes: u64,
    /// Where its first event begins.
    pub(super) snapshot_end: u64,
    /// Whether it has all alerts that were open at its begin.
    pub(super) is_snapshot_whole: bool,
    pub(super) events: u64,
    /// Number of its oldest event.
    pub(super) oldest: Option<u64>,
    pub(super) first_time_ms: Option<i64>,
    pub(super) newest_time_ms: Option<i64>,
    pub(super) is_readable: bool,
    /// Takes no further events, because a write or a read of it failed.
    pub(super) is_sealed: bool,
    /// Its damage was counted and logged.
    pub(super) is_damage_known: bool,
}

/// What a look at a segment found.
pub(super) struct Survey {
    pub(super) segment: Segment,
    /// The first places of damage, and the number of all.
    pub(super) damage: Vec<Place>,
    pub(super) damaged_places: u64,
    pub(super) torn: Option<Place>,
    /// Why it could not be read, and from which offset on.
    pub(super) failure: Option<(u64, io::Error)>,
    /// Largest number that it has or, if a part of it cannot be read, may have.
    pub(super) number_seen: u64,
    /// Number and time of its newest event that counts.
    pub(super) newest: Option<(u64, i64)>,
    pub(super) opens: u32,
}

impl Segment {
    pub(super) fn new(first: u64) -> Segment {
        Segment {
            first,
            bytes: 0,
            snapshot_end: 0,
            is_snapshot_whole: false,
            events: 0,
            oldest: None,
            first_time_ms: None,
            newest_time_ms: None,
            is_readable: true,
            is_sealed: false,
            is_damage_known: false,
        }
    }

    pub(super) fn add_event(&mut self, number: u64, time_ms: i64) {
        self.events += 1;
        self.oldest.get_or_insert(number);
        self.first_time_ms.get_or_insert(time_ms);
        self.newest_time_ms = self.newest_time_ms.max(Some(time_ms));
    }
}

pub(super) fn path_of(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("{first:08}"))
}

/// The number in the name of a segment; `None` for other names.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let number = name.parse().ok().filter(|number| (1..=NUMBER_MAX).contains(number))?;
    // Other spellings, such as `+1` or `1`, are names of other files.
    (format!("{number:08}") == name).then_some(number)
}

/// Reads a segment. Events from the number `limit` on do not count: their write failed after it had
/// reached the disk in part, and they were written once more, to the next segment, which begins
/// with `limit`.
pub(super) fn survey(disk: &dyn Disk, dir: &Path, first: u64, limit: u64) -> io::Result<Survey> {
    let mut reader = Reader::open(disk, &path_of(dir, first), None)?;
    let mut found = Survey {
        segment: Segment::new(first),
        damage: Vec::new(),
        damaged_places: 0,
        torn: None,
        failure: None,
        number_seen: first,
        newest: None,
        opens: 0,
    };
    let mut opens_expected = None;
    let segment = &mut found.segment;
    while let Some(piece) = reader.next() {
        match piece {
            Piece::Record(record) => {
                segment.bytes = reader.position();
                match record {
                    Record::Begin { opens, .. } => opens_expected = Some(opens),
                    Record::Open(_) => found.opens = found.opens.saturating_add(1),
                    Record::Event(entry) => {
                        let number = entry.number;
                        found.number_seen = found.number_seen.max(number);
                        let last = found.newest.map_or(first.saturating_sub(1), |(last, _)| last);
                        if number > last && number < limit {
                            segment.add_event(number, entry.event.time_ms);
                            found.newest = Some((number, entry.event.time_ms));
                        }
                        continue;
                    }
                    Record::Unknown => {}
                }
                if found.newest.is_none() {
                    segment.snapshot_end = segment.bytes;
                }
            }
            Piece::Damage(place) => {
                found.damaged_places += 1;
                if found.damage.len() < PLACES_MAX {
                    found.damage.push(place);
                }
            }
            Piece::Torn(place) => found.torn = Some(place),
            Piece::Unreadable { offset, source } => {
                let may_be = reader.unread_bytes() / ENTRY_RECORD_BYTES_MIN;
                found.number_seen = found.number_seen.saturating_add(may_be);
                found.failure = Some((offset, source));
            }
        }
    }
    segment.is_snapshot_whole = opens_expected == Some(found.opens);
    segment.is_sealed = found.failure.is_some();
    Ok(found)
}

/// Writes a segment once more without what is damaged in it; the caller has kept the original.
pub(super) fn rewrite(disk: &dyn Disk, dir: &Path, first: u64) -> Result<()> {
    let path = path_of(dir, first);
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(UNFINISHED_SUFFIX);
    let unfinished = PathBuf::from(unfinished);
    let written = copy_records(disk, &path, &unfinished).and_then(|()| {
        disk.rename(&unfinished, &path).map_err(JournalError::on(Action::Rename, &unfinished))
    });
    if written.is_err() {
        // Removed now, since its space may be needed; otherwise the next start removes it.
        let _ = disk.remove_file(&unfinished);
    }
    written?;
    disk.sync_dir(dir).map_err(JournalError::on(Action::Sync, dir))
}

fn copy_records(disk: &dyn Disk, from: &Path, to: &Path) -> Result<()> {
    let mut reader =
        Reader::open(disk, from, None).map_err(JournalError::on(Action::Open, from))?;
    let file = disk.create(to).map_err(JournalError::on(Action::Create, to))?;
    let (mut bytes, mut offset) = (MAGIC.to_vec(), 0);
    loop {
        let piece = reader.next();
        if bytes.len() >= WRITE_BYTES || piece.is_none() {
            file.write_at(offset, &bytes).map_err(JournalError::on(Action::Write, to))?;
            offset += bytes.len() as u64;
            bytes.clear();
        }
        match piece {
            None => break,
            Some(Piece::Record(_)) => bytes.extend_from_slice(reader.record()),
            Some(Piece::Damage(_) | Piece::Torn(_)) => {}
            Some(Piece::Unreadable { source, .. }) => {
                return Err(JournalError::on(Action::Read, from)(source));
            }
        }
    }
    file.sync_data().map_err(JournalError::on(Action::Sync, to))
}
