//! Chooses the format of floats in the in-order log if the user sets none: Prometheus' records, or
//! columns, which are smaller, but which only tidepool reads. An upgrade must not change which
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
//! The mark is a file, `wal-by-columns`, which Prometheus ignores. Only its existence matters; its
//! text is for users. If a crash loses the mark, the log decides; at worst the choice is
//! Prometheus' records. Prometheus makes its caches when it starts, before it reads the log, and
//! tidepool removes them only after this choice.

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

/// Names of files and directories of a used store, apart from blocks, caches and the log.
const DATA: [&str; 5] = [
    OUT_OF_ORDER_WAL_DIR,
    SNAPSHOTS_DIR,
    QUARANTINE_DIR,
    head_snapshot::FILE,
    "thanos.shipper.json",
];

/// Names that are expected in a directory without data.
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

/// Maximum number of bytes of the log in which floats are searched.
const LOOK_BYTES_MAX: u64 = 16 << 20;

/// First byte of upstream's records of floats (`tsdb/record/record.go`): without start timestamps,
/// then with them. The first bytes of the engine's column records follow: 201 is of older versions.
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

/// Reason for which a format was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatReason {
    /// A flag sets the format.
    Flag,
    /// Prometheus has worked in the directory after tidepool.
    PrometheusWorked,
    Log,
    Marked,
    New,
    /// The directory has data but no mark.
    NotMade,
    NotMarked,
}

/// Signs in a directory on which the choice of the format depends.
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
            // The most recent sign first: Prometheus makes its caches before it writes to the log,
            // and the mark may be older than the last records of the log.
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
    /// Chooses the format of floats from now on, and creates or removes the mark accordingly. Must
    /// be called before the logs are opened.
    pub fn settle_record_format(
        &self,
        wanted: Option<RecordFormat>,
    ) -> Result<(RecordFormat, FormatReason)> {
        let mut seen = self.seen_by_name()?;
        let (format, reason) = match wanted {
            Some(format) => (format, FormatReason::Flag),
            None => {
                // The log is read only if no flag decides, since reading it may take some time.
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
            // The choice of Prometheus' records also applies to later runs without a flag.
            (RecordFormat::Prometheus, _) if seen.has_mark => {
                if let Err(error) = self.remove_mark() {
                    // Harmless once the log has a sample: the log is considered before the mark.
                    tracing::warn!(%error, "could not remove the mark of a log by columns");
                }
            }
            (RecordFormat::Columns, FormatReason::Log | FormatReason::New) if !seen.has_mark => {
                if let Err(error) = self.replace_file(MARK, MARK_TEXT.as_bytes()) {
                    tracing::warn!(%error, "could not mark the directory as one of tidepool's own");
                    // Without a mark a later start would not know that tidepool made the directory.
                    if reason == FormatReason::New {
                        return Ok((RecordFormat::Prometheus, FormatReason::NotMarked));
                    }
                }
            }
            _ => {}
        }
        Ok((format, reason))
    }

    /// Collects the signs that do not require reading the log.
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

    /// Returns a name that is not expected in a directory without data. Hidden files and files of a
    /// new file system are no sign of another owner.
    fn foreign_name(&self) -> Result<Option<String>> {
        let entries = self.disk.list(&self.path).map_err(Action::List.failed(&self.path))?;
        let names = entries.iter().filter_map(|entry| entry.name());
        let mut foreign = names.filter(|name| !name.starts_with('.') && !NEW.contains(name));
        Ok(foreign.next().map(str::to_owned))
    }

    /// Returns the format of the newest floats in the log, whichever program wrote them.
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

/// Returns whether an entry with this name belongs to a used store. The log's directory does not
/// count, because opening the data directory creates it; the log's content counts.
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
