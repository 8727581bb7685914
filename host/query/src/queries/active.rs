//! `queries.active`: a file in the data directory that lists the running queries. After a crash,
//! the next start logs the queries that were running.
//!
//! ```text
//! '['  entry  entry  …   one of 1000 bytes for each query that may run
//! entry: {"query":"…","timestamp_sec":…}  zeros  ','   or only zeros
//! ```
//!
//! Writes are not synced: the file survives a crash of the process, not a power cut. The list is
//! optional, so a disk that refuses writes keeps no query from running. Source:
//! `promql/query_logger.go` in prometheus/prometheus.

use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidepool_lifecycle::clock::system_now_ms;

/// The file's name, as in Prometheus.
const NAME: &str = "queries.active";

/// Size of an entry in bytes, including the comma at its end.
const ENTRY_BYTES: usize = 1000;

/// Maximum number of bytes read of an earlier file, which is enough for Prometheus' 20 entries.
const READ_BYTES_MAX: u64 = 64 << 10;

/// The file of running queries. If it could not be created, nothing is recorded.
pub struct ActiveQueries {
    file: Option<File>,
    free: Mutex<Vec<usize>>,
}

/// A running query. Its entry is freed on drop.
pub struct ActiveQuery<'a> {
    of: &'a ActiveQueries,
    number: Option<usize>,
}

impl ActiveQueries {
    /// Logs queries that did not end in the last run, then creates a file of `running_max` entries.
    pub fn open(data_dir: &Path, running_max: usize) -> ActiveQueries {
        let path = data_dir.join(NAME);
        match unfinished(&path) {
            Ok(None) => {}
            Ok(Some(queries)) => {
                tracing::warn!(queries, "these queries did not finish in the last run");
            }
            Err(error) => tracing::warn!(%error, file = NAME, "could not read the active queries"),
        }
        let file = emptied(&path, running_max);
        let file = file.map_err(|error| {
            tracing::warn!(%error, file = NAME, "could not create the list of active queries");
        });
        ActiveQueries { file: file.ok(), free: Mutex::new((0..running_max).rev().collect()) }
    }

    /// Records the start of a query. The write may block, so this is not for async tasks.
    pub fn begin(&self, query: &str) -> ActiveQuery<'_> {
        let number = self.free().pop();
        if let (Some(file), Some(number)) = (&self.file, number) {
            let mut entry = entry(query, system_now_ms() / 1000);
            entry.resize(ENTRY_BYTES - 1, 0);
            entry.push(b',');
            // The list is optional, so a failed write is ignored.
            let _ = file.write_all_at(&entry, place(number));
        }
        ActiveQuery { of: self, number }
    }

    fn free(&self) -> MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveQuery<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        if let Some(file) = &self.of.file {
            let _ = file.write_all_at(&[0; ENTRY_BYTES], place(number));
        }
        // Freed after it is erased, so that the entry of the next query is not overwritten.
        self.of.free().push(number);
    }
}

fn place(number: usize) -> u64 {
    1 + number as u64 * ENTRY_BYTES as u64
}

fn emptied(path: &Path, running_max: usize) -> io::Result<File> {
    let file = OpenOptions::new().create(true).write(true).truncate(true).open(path)?;
    file.write_all_at(b"[", 0)?;
    file.set_len(place(running_max))?;
    Ok(file)
}

/// Formats an entry without its padding. A query that does not fit is cut.
fn entry(query: &str, time_seconds: i64) -> Vec<u8> {
    let mut bytes_max = query.len().min(ENTRY_BYTES);
    loop {
        let cut = &query[..query.floor_char_boundary(bytes_max)];
        let text = Value::from(cut);
        let entry = format!("{{\"query\":{text},\"timestamp_sec\":{time_seconds}}}").into_bytes();
        match entry.len().checked_sub(ENTRY_BYTES - 1) {
            None | Some(0) => return entry,
            // JSON escapes a byte of the query with at most six: `\u001f`.
            Some(excess) => bytes_max = bytes_max.saturating_sub(excess.div_ceil(6)),
        }
    }
}

/// Returns the entries of an earlier file as a JSON list; `None` without a file or entries.
fn unfinished(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
    bytes.retain(|byte| *byte != 0);
    let text = String::from_utf8_lossy(&bytes);
    let entries = text.strip_prefix('[').unwrap_or_default().trim_end_matches(',');
    Ok((!entries.is_empty()).then(|| format!("[{entries}]")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_end_is_found_again() -> Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join(NAME);
        assert_eq!(unfinished(&path)?, None);
        let active = ActiveQueries::open(directory.path(), 3);
        assert_eq!(std::fs::metadata(&path)?.len(), 3001);
        let (first, second) = (active.begin("up"), active.begin("sum(\"\u{1}é\")"));
        drop(first);
        let long = active.begin(&"\"".repeat(5000));
        let more = [active.begin("b"), active.begin("beyond")];
        let left: Value = serde_json::from_str(&unfinished(&path)?.unwrap_or_default())?;
        let queries: Vec<&str> =
            left.as_array().into_iter().flatten().filter_map(|it| it["query"].as_str()).collect();
        // The entry of the first query was free and is used again.
        assert_eq!(queries.len(), 3);
        assert!(queries[0].starts_with('"') && queries[0].len() > 400, "{queries:?}");
        assert_eq!(queries[1..], ["sum(\"\u{1}é\")", "b"]);
        assert!(left[1]["timestamp_sec"].is_i64());
        drop((second, long, more));
        assert_eq!(unfinished(&path)?, None);
        let all: Vec<_> = (0..3).map(|_| active.begin("c")).collect();
        assert_eq!(all.iter().filter(|query| query.number.is_some()).count(), 3);
        Ok(())
    }

    #[test]
    fn a_file_of_prometheus_is_read() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join(NAME);
        let mut bytes = b"[{\"query\":\"up\",\"timestamp_sec\":1}".to_vec();
        bytes.resize(1000, 0);
        bytes.push(b',');
        bytes.resize(20_001, 0);
        std::fs::write(&path, bytes)?;
        let expected = "[{\"query\":\"up\",\"timestamp_sec\":1}]";
        assert_eq!(unfinished(&path)?.as_deref(), Some(expected));
        std::fs::write(&path, "[")?;
        assert_eq!(unfinished(&path)?, None);
        std::fs::write(&path, "")?;
        assert_eq!(unfinished(&path)?, None);
        Ok(())
    }
}
