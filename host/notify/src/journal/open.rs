//! The start: what is in the directory, and the repair of what is damaged there.
//!
//! Nothing here stops a start. What cannot be read or repaired is logged, and costs its own events.

use super::error::{JournalError, Result};
use super::format::ENTRY_RECORD_BYTES_MIN;
use super::open_alerts::OpenAlerts;
use super::quarantine;
use super::reader::Place;
use super::replay::{Item, Replay};
use super::segment::{Segment, Survey, UNFINISHED_SUFFIX, number_of, path_of, rewrite, survey};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidepool_disk::error::Action;
use tidepool_disk::fs::{Access, Disk};

/// Places of damage that [`read_dir`] returns at most.
const DAMAGE_MAX: usize = 1000;

/// What is in the directory.
#[derive(Default)]
pub(super) struct Found {
    /// Ascending.
    pub(super) segments: Vec<Segment>,
    /// Largest number seen.
    pub(super) newest: u64,
    pub(super) newest_time_ms: i64,
    pub(super) damaged: u64,
    pub(super) open: OpenAlerts,
}

/// Damage in a file of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub path: PathBuf,
    pub offset: u64,
    /// 0 if all from the offset on could not be read.
    pub bytes: u64,
}

/// Reads and repairs the journal in `dir`, whose quarantine is in `parent`.
pub(super) fn load(disk: &dyn Disk, parent: &Path, dir: &Path) -> Found {
    let mut found = Found::default();
    let names = list(disk, dir, &mut |name| {
        // A crash ended a repair, which begins once more.
        if let Err(error) = disk.remove_file(&dir.join(name)) {
            tracing::warn!(file = name, %error, "could not remove an unfinished alert journal");
        }
    });
    let numbers = names.unwrap_or_else(|error| {
        tracing::error!(%error, "could not read the alert journal: it continues without its past");
        found.damaged += 1;
        Vec::new()
    });
    let mut limit = u64::MAX;
    for (index, first) in numbers.iter().copied().enumerate().rev() {
        let path = path_of(dir, first);
        found.newest = found.newest.max(first);
        let mut look = match survey(disk, dir, first, limit) {
            Ok(look) => look,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => unreadable(disk, &path, first, error),
        };
        found.newest = found.newest.max(look.number_seen);
        found.damaged += report(&path, &look, limit);
        let is_usable = is_usable(&look, index == 0);
        if !is_usable {
            match quarantine::take(disk, parent, &path) {
                Ok(kept) => tracing::info!(
                    path = %path.display(), kept = %kept.display(),
                    "quarantined a segment of the alert journal without an intact event"
                ),
                Err(error) => tracing::warn!(%error, "could not quarantine a segment"),
            }
            continue;
        }
        if is_damaged(&look, limit) && look.failure.is_none() {
            look = repair(disk, parent, dir, look, limit);
        }
        if limit == u64::MAX {
            found.newest_time_ms = look.newest.map_or(0, |(_, time_ms)| time_ms);
            if look.torn.is_some() {
                truncate(disk, &path, look.segment.bytes);
            }
        }
        limit = first;
        found.segments.push(look.segment);
    }
    found.segments.reverse();
    let mut visit = |item: Item<'_>| {
        if let Item::Open(entry) = item {
            found.open.apply(&Arc::new(entry.clone()));
        }
    };
    // Damage is known already.
    Replay::new(disk, dir, u64::MAX, &mut visit).run(&found.segments, &[], &mut |_, _| {});
    found
}

/// Reads a journal without changing it, also while a node writes to it. Visits what
/// [`super::Journal::scan`] visits, and returns the first places of damage. `dir` is the directory
/// that the journal was opened with.
pub fn read_dir(
    disk: &dyn Disk,
    dir: &Path,
    from: u64,
    visit: &mut dyn FnMut(Item<'_>),
) -> Result<Vec<Damage>> {
    let dir = dir.join(super::JOURNAL_DIR);
    let numbers = list(disk, &dir, &mut |_| {})?;
    let (mut segments, mut damage, mut limit) = (Vec::new(), Vec::new(), u64::MAX);
    for (index, first) in numbers.iter().copied().enumerate().rev() {
        let path = path_of(&dir, first);
        let look = match survey(disk, &dir, first, limit) {
            Ok(look) => look,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => unreadable(disk, &path, first, error),
        };
        let torn = look.torn.filter(|_| is_torn_damage(&look, limit));
        let failure = look.failure.as_ref().map(|(offset, _)| Place { offset: *offset, bytes: 0 });
        for Place { offset, bytes } in look.damage.iter().copied().chain(torn).chain(failure) {
            if damage.len() < DAMAGE_MAX {
                damage.push(Damage { path: path.clone(), offset, bytes });
            }
        }
        if is_usable(&look, index == 0) {
            limit = first;
            segments.push(look.segment);
        }
    }
    segments.reverse();
    damage.reverse();
    Replay::new(disk, &dir, from, visit).run(&segments, &[], &mut |_, _| {});
    Ok(damage)
}

/// The numbers of the segments, ascending. Calls `unfinished` for names of unfinished files.
fn list(disk: &dyn Disk, dir: &Path, unfinished: &mut dyn FnMut(&str)) -> Result<Vec<u64>> {
    let entries = match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(JournalError::on(Action::List, dir))?,
    };
    let mut numbers = Vec::new();
    for name in entries.iter().filter(|entry| !entry.is_dir).filter_map(|entry| entry.name()) {
        match name.strip_suffix(UNFINISHED_SUFFIX) {
            Some(segment) if number_of(segment).is_some() => unfinished(name),
            Some(_) => {}
            None => numbers.extend(number_of(name)),
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// A segment that could not be opened. It stays, since the cause may be outside of it.
fn unreadable(disk: &dyn Disk, path: &Path, first: u64, error: io::Error) -> Survey {
    let bytes = disk.file_size(path).unwrap_or(0);
    let segment = Segment {
        bytes,
        is_readable: false,
        is_sealed: true,
        is_damage_known: true,
        ..Segment::new(first)
    };
    Survey {
        segment,
        damage: Vec::new(),
        damaged_places: 0,
        torn: None,
        failure: Some((0, error)),
        number_seen: first.saturating_add(bytes / ENTRY_RECORD_BYTES_MIN),
        newest: None,
        opens: 0,
    }
}

/// Whether there is a reason to keep the segment where it is. A crash while it was begun leaves one
/// without: its alerts are known from the segments before, if there are any.
fn is_usable(look: &Survey, is_oldest: bool) -> bool {
    let has_opens = look.segment.is_snapshot_whole || (is_oldest && look.opens > 0);
    look.segment.events > 0 || has_opens || look.failure.is_some()
}

fn is_damaged(look: &Survey, limit: u64) -> bool {
    look.damaged_places > 0 || is_torn_damage(look, limit)
}

/// A torn end is damage where events are missing before the next segment. Else a crash or a failed
/// write left it.
fn is_torn_damage(look: &Survey, limit: u64) -> bool {
    let last = look.newest.map_or(look.segment.first, |(last, _)| last.saturating_add(1));
    look.torn.is_some() && limit != u64::MAX && last < limit
}

/// Logs the damage of a segment, and returns the number of places.
fn report(path: &Path, look: &Survey, limit: u64) -> u64 {
    let path = path.display();
    for Place { offset, bytes } in &look.damage {
        tracing::error!(
            %path, offset, bytes,
            "alert journal damaged: the events there are lost, the others are kept; if this \
             repeats, check the disk"
        );
    }
    let mut places = look.damaged_places;
    if places > look.damage.len() as u64 {
        tracing::error!(%path, places, "the alert journal is damaged in more places");
    }
    if let Some(Place { offset, bytes }) = look.torn {
        if is_torn_damage(look, limit) {
            places += 1;
            tracing::error!(%path, offset, bytes, "alert journal damaged: its last events are lost");
        } else if limit == u64::MAX {
            tracing::info!(%path, offset, bytes, "a crash has torn the end of the alert journal");
        }
    }
    if let Some((offset, error)) = &look.failure {
        places += 1;
        tracing::error!(
            %path, offset, %error,
            "could not read a segment of the alert journal: its events are lost, the others are \
             kept; check the disk"
        );
    }
    places
}

/// Truncates what a crash has torn. Otherwise it would be taken for damage once a segment follows.
fn truncate(disk: &dyn Disk, path: &Path, bytes: u64) {
    let truncated = disk.open(path, Access::Write).and_then(|file| file.set_len(bytes));
    if let Err(error) = truncated {
        tracing::warn!(path = %path.display(), %error, "could not truncate the alert journal");
    }
}

/// Quarantines a damaged segment, and writes its intact records once more.
fn repair(disk: &dyn Disk, parent: &Path, dir: &Path, look: Survey, limit: u64) -> Survey {
    let first = look.segment.first;
    let path = path_of(dir, first);
    let kept = quarantine::keep(disk, parent, &path)
        .and_then(|kept| rewrite(disk, dir, first).map(|()| kept));
    match kept {
        Ok(kept) => tracing::warn!(
            path = %path.display(), kept = %kept.display(),
            "quarantined a damaged segment of the alert journal, and repaired it"
        ),
        Err(error) => {
            tracing::warn!(%error, "could not repair the alert journal; the next start tries again");
        }
    }
    let number_seen = look.number_seen;
    let mut again = survey(disk, dir, first, limit).unwrap_or(look);
    again.number_seen = number_seen;
    again.segment.is_damage_known = is_damaged(&again, limit);
    again
}
