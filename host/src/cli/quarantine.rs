//! Messages about `set-aside/`. The logs in this directory are not part of any command's results.

use super::progress::warn_line;
use super::units;
use super::{CliError, Progress};
use tidepool_disk::quarantine::{QUARANTINE_DIR, QuarantineEntry};
use tidepool_disk::wal::LogReader;
use tidepool_disk::{DataDir, Result};
use tidepool_lifecycle::clock::system_now_ms;

/// Size in bytes of the pieces in which a log is read.
const LOG_BYTES: u32 = 1024 * 1024;

#[derive(Default)]
struct Content {
    records: u64,
    damaged_places: u64,
    damaged_bytes: u64,
}

pub fn mention(data: &DataDir) {
    match data.quarantine().entries() {
        Ok(entries) if entries.is_empty() => {}
        Ok(entries) => {
            let bytes = entries.iter().map(|entry| entry.size_bytes).sum();
            warn_line(&format!(
                "{} in {QUARANTINE_DIR} left out, {}: damaged or not to be replayed; \
                 `tidepool tsdb verify` says more",
                entries.len(),
                units::bytes(bytes)
            ));
        }
        Err(error) => warn_line(&error.to_string()),
    }
}

/// Prints a warning for each entry, with its size, its age and its readable part.
pub fn verify(data: &DataDir) -> std::result::Result<(), CliError> {
    let progress = Progress::spinner("looking at what is quarantined");
    for entry in data.quarantine().entries()? {
        let (place, size) =
            (format!("{QUARANTINE_DIR}/{}", entry.name), units::bytes(entry.size_bytes));
        // Rounded to seconds, because the time in the name has seconds.
        let age_ms = time_ms(&entry).map(|time_ms| (system_now_ms() - time_ms) / 1000 * 1000);
        let age = age_ms.map(|age_ms| format!(" {} ago", units::duration(age_ms)));
        let age = age.unwrap_or_default();
        let content = match read(data, &entry) {
            Ok(None) => String::new(),
            Ok(Some(found)) => {
                let Content { records, damaged_places, damaged_bytes } = found;
                format!(
                    "; {records} records can be read, {damaged_places} places of {damaged_bytes} \
                     bytes cannot"
                )
            }
            Err(error) => format!("; it cannot be read: {error}"),
        };
        progress.print(&format!("{place}: warning: quarantined{age}, {size}{content}"));
    }
    Ok(())
}

/// Counts the records of an entry; `None` if the entry is not a log.
fn read(data: &DataDir, entry: &QuarantineEntry) -> Result<Option<Content>> {
    let mut reader = match (entry.is_dir, entry.is_logs()) {
        (true, true) => LogReader::open(&DataDir::open_read_only(&entry.path)?)?,
        (true, false) => return Ok(None),
        (false, _) => LogReader::open_segment(data, &entry.path)?,
    };
    let oddities = reader.oddities().len() as u64;
    let mut content = Content { damaged_places: oddities, ..Content::default() };
    while let Some(piece) = reader.next(LOG_BYTES) {
        content.records += piece.records.len() as u64;
        for place in piece.damaged.iter().chain(&piece.torn_tail) {
            content.damaged_places += 1;
            content.damaged_bytes += place.bytes;
        }
    }
    Ok(Some(content))
}

/// Returns the time of the quarantine from an entry's name; `None` if the name has no time.
pub fn time_ms(entry: &QuarantineEntry) -> Option<i64> {
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", entry.time()?).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond())
}
