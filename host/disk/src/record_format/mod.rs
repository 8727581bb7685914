//! The format of floats in the in-order log if the user does not set one: Prometheus' records, or
//! columns, which are smaller and which only tidepool reads. An upgrade must not change which
//! programs can read a directory, so only directories that tidepool made get columns:
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
//! The mark is a file, `wal-by-columns`, which Prometheus ignores. Only its existence counts; its
//! text is for people. If a crash loses the mark, the log decides, and at worst it gets Prometheus'
//! records. Prometheus makes its caches when it starts, before it reads the log, and tidepool
//! removes them only after this decision.

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

/// Names in a store that has been used, apart from blocks, caches and the log.
const DATA: [&str; 5] = [
    OUT_OF_ORDER_WAL_DIR,
    SNAPSHOTS_DIR,
    QUARANTINE_DIR,
    head_snapshot::FILE,
    "thanos.shipper.json",
];

/// Names that are allowed in a directory without data.
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

/// Maximum number of bytes of the log that are searched for floats.
const LOOK_BYTES_MAX: u64 = 16 << 20;

/// First bytes of records of floats: upstream's (`tsdb/record/record.go`), without and with start
/// timestamps, and the engine's columns; older versions wrote 201.
const SAMPLES_RECORD: u8 = 2;
const SAMPLES_V2_RECORD: u8 = 11;
const COLUMNS_RECORDS: [u8; 2] = [201, 203];

/// Layout of floats in the in-order log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFormat {
    /// Samples, as Prometheus writes them.
    Prometheus,
    Columns,
}

/// Reason for the choice of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatReason {
    /// A flag sets the format.
    Flag,
    /// Prometheus has worked in the directory after tidepool.
    PrometheusWorked,
    Log,
    Marked,
    New,
    /// The directory has data and no mark.
    NotMade,
    NotMarked,
}

/// Signs in a directory that decide about the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DirectoryState {
    has_head_caches: bool,
    newest_floats: Option<RecordFormat>,
    has_mark: bool,
    has_data: bool,
}

impl DirectoryState {
    fn choice(self) -> (RecordFormat, FormatReason) {
        match self {
            // By how recent a sign is: Prometheus makes its caches before it writes to the log, and
            // a mark may be older than the last records of the log.
            DirectoryState { has_head_caches: true, .. } => {
                (RecordFormat::Prometheus, FormatReason::PrometheusWorked)
            }
            DirectoryState { newest_floats: Some(format), .. } => (format, FormatReason::Log),
            DirectoryState { has_mark: true, .. } => (RecordFormat::Columns, FormatReason::Marked),
            DirectoryState { has_data: false, .. } => (RecordFormat::Columns, FormatReason::New),
            _ => (RecordFormat::Prometheus, FormatReason::NotMade),
        }
    }
}

impl DataDir {
    /// Decides the format of floats from now on, and creates or removes the mark accordingly. Must
    /// be called before the logs are opened.
    pub fn settle_record_format(
        &self,
        wanted: Option<RecordFormat>,
    ) -> Result<(RecordFormat, FormatReason)> {
        let mut seen = self.seen_by_name()?;
        let (format, reason) = match wanted {
            Some(format) => (format, FormatReason::Flag),
            None => {
                // The log is read only if no flag decides, since that may take some time.
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
            // A run with Prometheus' records also decides for later runs without a flag.
            (RecordFormat::Prometheus, _) if seen.has_mark => {
                if let Err(error) = self.remove_mark() {
                    // Harmless once the log holds a sample, since the log comes before the mark.
                    tracing::warn!(%error, "could not remove the mark of a log by columns");
                }
            }
            (RecordFormat::Columns, FormatReason::Log | FormatReason::New) if !seen.has_mark => {
                if let Err(error) = self.replace_file(MARK, MARK_TEXT.as_bytes()) {
                    tracing::warn!(%error, "could not mark the directory as one of tidepool's own");
                    // Without a mark a later start would not know whose directory this is.
                    if reason == FormatReason::New {
                        return Ok((RecordFormat::Prometheus, FormatReason::NotMarked));
                    }
                }
            }
            _ => {}
        }
        Ok((format, reason))
    }

    /// Collects the signs that need no look into the log.
    fn seen_by_name(&self) -> Result<DirectoryState> {
        let mut seen = DirectoryState::default();
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

    /// Returns a name that does not belong into a directory without data. Hidden files and the
    /// files of a new file system are no sign of another owner.
    fn foreign_name(&self) -> Result<Option<String>> {
        let entries = self.disk.list(&self.path).map_err(Action::List.failed(&self.path))?;
        let names = entries.iter().filter_map(|entry| entry.name());
        let mut foreign = names.filter(|name| !name.starts_with('.') && !NEW.contains(name));
        Ok(foreign.next().map(str::to_owned))
    }

    /// Format of the newest floats in the log, whichever program wrote them.
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

/// Returns whether an entry with this name belongs to a store that has been used. Not for the log,
/// which opening the directory creates: its content counts.
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
