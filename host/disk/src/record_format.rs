//! The format of floats in the in-order log, where the user names none: Prometheus' records, or
//! columns, which are smaller and which only tidepool reads. What can read a directory must not
//! change by an upgrade, so columns are for directories that tidepool made:
//!
//! ```text
//! Prometheus' caches of its head        ──▶ prometheus   and the mark goes
//! newest floats of the log: samples     ──▶ prometheus   and the mark goes
//! newest floats of the log: columns     ──▶ columns      and the mark is made
//! no floats: the mark                   ──▶ columns
//!            no mark, no data at all    ──▶ columns      and the mark is made
//!            no mark, any data          ──▶ prometheus
//! ```
//!
//! The mark is a file, `wal-by-columns`, which Prometheus ignores. That it is there is all that
//! counts; what it says is for people. If a crash loses it, the log is asked, and at worst it gets
//! Prometheus' records. Prometheus makes its caches when it starts, before it reads the log, and
//! tidepool removes them only once it has decided.

use super::DataDir;
use super::blocks::is_block_name;
use super::error::{Action, Result};
use super::failed_starts::STARTING;
use super::fs::Disk;
use super::head_caches::is_head_cache;
use super::quarantine::QUARANTINE_DIR;
use super::wal::{FORWARD_DIR, newest_record};
use super::{LOCK_FILE, OUT_OF_ORDER_WAL_DIR, SNAPSHOTS_DIR, WAL_DIR, head_snapshot};
use std::fmt;

const MARK: &str = "wal-by-columns";
const MARK_TEXT: &str = "tidepool writes the log of this directory by columns, which Prometheus does not read.\n\
     Before Prometheus works here, stop tidepool and run: tidepool tsdb compact --head DIR\n";

/// Names of what a store leaves, apart from blocks, caches and the log.
const DATA: [&str; 5] = [
    OUT_OF_ORDER_WAL_DIR,
    SNAPSHOTS_DIR,
    QUARANTINE_DIR,
    head_snapshot::FILE,
    "thanos.shipper.json",
];

/// Names that a directory without data may have.
const NEW: [&str; 8] = [
    LOCK_FILE,
    WAL_DIR,
    MARK,
    STARTING,
    FORWARD_DIR,
    "plugin-cache",
    "queries.active",
    "lost+found",
];

/// Most bytes of the log that are looked at.
const LOOK_BYTES_MAX: u64 = 16 << 20;

/// First bytes of records of floats: upstream's (`tsdb/record/record.go`), without and with start
/// timestamps, and the engine's columns, of which it wrote 201 before.
const SAMPLES_RECORD: u8 = 2;
const SAMPLES_V2_RECORD: u8 = 11;
const COLUMNS_RECORDS: [u8; 2] = [201, 203];

/// How floats lie in the in-order log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFormat {
    /// As Prometheus writes them.
    Prometheus,
    /// By columns, which only tidepool reads.
    Columns,
}

/// Why a format was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatReason {
    /// A flag names it.
    Flag,
    /// Prometheus has worked in the directory since tidepool did.
    PrometheusWorked,
    /// The newest floats of the log are in this format.
    Log,
    /// The directory has the mark.
    Marked,
    /// The directory had no data.
    New,
    /// The directory has data, but no mark.
    NotMade,
    /// The mark of a new directory could not be written.
    NotMarked,
}

/// What a directory shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    has_head_caches: bool,
    newest_floats: Option<RecordFormat>,
    has_mark: bool,
    has_data: bool,
}

impl Seen {
    fn choice(self) -> (RecordFormat, FormatReason) {
        match self {
            Seen { has_head_caches: true, .. } => {
                (RecordFormat::Prometheus, FormatReason::PrometheusWorked)
            }
            Seen { newest_floats: Some(format), .. } => (format, FormatReason::Log),
            Seen { has_mark: true, .. } => (RecordFormat::Columns, FormatReason::Marked),
            Seen { has_data: false, .. } => (RecordFormat::Columns, FormatReason::New),
            _ => (RecordFormat::Prometheus, FormatReason::NotMade),
        }
    }
}

impl DataDir {
    /// Settles how floats are written from now on, and marks the directory accordingly. To be
    /// called before the logs are opened.
    pub fn settle_record_format(
        &self,
        wanted: Option<RecordFormat>,
    ) -> Result<(RecordFormat, FormatReason)> {
        let mut seen = self.seen_by_name()?;
        let (format, reason) = match wanted {
            Some(format) => (format, FormatReason::Flag),
            None => {
                seen.newest_floats = self.newest_floats()?;
                seen.choice()
            }
        };
        if reason == FormatReason::New
            && let Some(foreign) = self.foreign_name()?
        {
            tracing::warn!(
                path = %self.path.display(), foreign,
                "a new data directory has files of something else; if it is the wrong one, choose \
                 another with --data-dir"
            );
        }
        match (format, reason) {
            // A run with other records than the mark says is the user's word for the time after it.
            (RecordFormat::Prometheus, _) if seen.has_mark => {
                if let Err(error) = self.remove_mark() {
                    // The log says the same, once there is a sample in it.
                    tracing::warn!(%error, "could not remove the mark of a log by columns");
                }
            }
            (RecordFormat::Columns, FormatReason::Log | FormatReason::New) if !seen.has_mark => {
                if let Err(error) = self.replace_file(MARK, MARK_TEXT.as_bytes()) {
                    tracing::warn!(%error, "could not mark the directory as one of tidepool's own");
                    if reason == FormatReason::New {
                        return Ok((RecordFormat::Prometheus, FormatReason::NotMarked));
                    }
                }
            }
            _ => {}
        }
        Ok((format, reason))
    }

    /// What can be seen without a look into the log.
    fn seen_by_name(&self) -> Result<Seen> {
        let mut seen = Seen::default();
        for entry in self.disk.list(&self.path).map_err(Action::List.failed(&self.path))? {
            let Some(name) = entry.name() else { continue };
            seen.has_head_caches |= entry.is_dir && is_head_cache(name);
            seen.has_mark |= name == MARK;
            seen.has_data |= is_data(name);
        }
        let wal = self.wal_path();
        seen.has_data |= !self.disk.list(&wal).map_err(Action::List.failed(&wal))?.is_empty();
        Ok(seen)
    }

    /// A name that a directory without data has no reason to have: hidden files and what a new
    /// file system begins with are no sign of another owner.
    fn foreign_name(&self) -> Result<Option<String>> {
        let entries = self.disk.list(&self.path).map_err(Action::List.failed(&self.path))?;
        let names = entries.iter().filter_map(|entry| entry.name());
        let mut foreign = names.filter(|name| !name.starts_with('.') && !NEW.contains(name));
        Ok(foreign.next().map(str::to_owned))
    }

    /// How the program that wrote to the log last wrote floats.
    fn newest_floats(&self) -> Result<Option<RecordFormat>> {
        let is_float = |record: &[u8]| float_format(record).is_some();
        let newest = newest_record(self, LOOK_BYTES_MAX, is_float)?;
        Ok(newest.as_deref().and_then(float_format))
    }

    fn remove_mark(&self) -> Result<()> {
        let path = self.path.join(MARK);
        self.disk.remove_file(&path).map_err(Action::Remove.failed(&path))?;
        self.disk.sync_dir(&self.path).map_err(Action::Sync.failed(&self.path))
    }
}

/// Whether what has this name belongs to a store that has been used. The log, which opening the
/// directory makes, counts by what is in it.
fn is_data(name: &str) -> bool {
    DATA.contains(&name) || is_head_cache(name) || is_block_name(name)
}

fn float_format(record: &[u8]) -> Option<RecordFormat> {
    match *record.first()? {
        SAMPLES_RECORD | SAMPLES_V2_RECORD => Some(RecordFormat::Prometheus),
        kind if COLUMNS_RECORDS.contains(&kind) => Some(RecordFormat::Columns),
        _ => None,
    }
}

impl fmt::Display for RecordFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecordFormat::Prometheus => "prometheus",
            RecordFormat::Columns => "columns",
        })
    }
}

impl fmt::Display for FormatReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FormatReason::Flag => "the flag says so",
            FormatReason::PrometheusWorked => "Prometheus has worked in the directory",
            FormatReason::Log => "the log has them",
            FormatReason::Marked => "tidepool made the directory",
            FormatReason::New => "the directory is new",
            FormatReason::NotMade => "the directory has data, and no mark of this version",
            FormatReason::NotMarked => "the new directory could not be marked",
        })
    }
}

#[cfg(test)]
mod tests;
