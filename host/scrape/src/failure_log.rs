//! Logs failed scrapes to the files of `scrape_failure_log_file`, as lines of JSON.
//!
//! A file is opened for each line, so that other programs may rename it. The size of a file is
//! bounded; older lines are moved to one second file with the suffix `.1`.

use crate::error::ScrapeError;
use jiff::Timestamp;
use serde_json::json;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, rename};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Suffix of the file with older lines.
const OLDER: &str = ".1";

/// Maximum number of lines that may wait for a slow disk; further lines are lost.
const WAITING_MAX: usize = 1000;

/// Writes the files; clones share one writer.
#[derive(Clone, Debug)]
pub struct FailureLog {
    bytes_max: u64,
    /// Error of the last write, if it failed. The lock serializes the writes.
    last_error: Arc<Mutex<Option<String>>>,
    /// Number of lines that wait for the disk.
    waiting: Arc<AtomicUsize>,
}

impl FailureLog {
    /// Creates a log with a maximum size of each file, in bytes.
    pub fn new(bytes_max: u64) -> FailureLog {
        FailureLog { bytes_max, last_error: Arc::default(), waiting: Arc::default() }
    }

    /// Logs a failed scrape in the background. A line that cannot be written is lost; the program's
    /// log reports each new error. Lines beyond [`WAITING_MAX`] are lost silently.
    pub fn write(&self, path: &Path, job: &str, target: &str, error: &ScrapeError) {
        // Counted before the check, so that concurrent calls cannot exceed the maximum.
        if self.waiting.fetch_add(1, Relaxed) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Relaxed);
            return;
        }
        let line = json!({
            "time": Timestamp::now().to_string(),
            "level": "ERROR",
            "msg": error.to_string(),
            "job_name": job,
            "target": target,
        });
        let (log, path, line) = (self.clone(), path.to_owned(), format!("{line}\n"));
        // The task logs its own errors.
        drop(tokio::task::spawn_blocking(move || {
            log.write_line(&path, &line);
            log.waiting.fetch_sub(1, Relaxed);
        }));
    }

    fn write_line(&self, path: &Path, line: &str) {
        let mut last_error = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        let error = append(path, line, self.bytes_max).err().map(|error| error.to_string());
        // Logged once per error, because with a full disk each line fails.
        if let Some(error) = error.as_ref().filter(|error| Some(*error) != last_error.as_ref()) {
            let path = path.display();
            tracing::error!(%path, error, "scrape_failure_log_file cannot be written");
        }
        *last_error = error;
    }
}

fn append(path: &Path, line: &str, bytes_max: u64) -> io::Result<()> {
    let mut file = open(path)?;
    let bytes = file.metadata()?.len();
    // A line longer than the limit is still written, alone in a file.
    if bytes > 0 && bytes.saturating_add(line.len() as u64) > bytes_max {
        let mut older: OsString = path.into();
        older.push(OLDER);
        rename(path, PathBuf::from(older))?;
        file = open(path)?;
    }
    file.write_all(line.as_bytes())
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::read_to_string;

    #[test]
    fn a_file_has_a_largest_size_and_the_newest_lines() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("failures");
        let log = FailureLog::new(9);
        for line in ["one\n", "two\n", "three\n", "longer than the limit\n", "six\n"] {
            log.write_line(&path, line);
        }
        assert_eq!(read_to_string(&path)?, "six\n");
        let older = path.with_extension("1");
        assert_eq!(read_to_string(&older)?, "longer than the limit\n");
        // A file that was moved away begins again.
        rename(&path, &older)?;
        log.write_line(&path, "7\n");
        assert_eq!(read_to_string(&path)?, "7\n");
        Ok(())
    }

    #[tokio::test]
    async fn a_line_says_what_failed_and_where() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("failures.log");
        let error = ScrapeError::Status("500 \"x\"\n".into());
        FailureLog::new(1000).write(&path, "a", "http://b/c", &error);
        let line = loop {
            match read_to_string(&path) {
                Ok(text) if text.ends_with('\n') => break text,
                _ => tokio::task::yield_now().await,
            }
        };
        let line: serde_json::Value = serde_json::from_str(&line)?;
        assert_eq!(line["msg"], "server returned HTTP status 500 \"x\"\n");
        assert_eq!((&line["job_name"], &line["target"]), (&json!("a"), &json!("http://b/c")));
        Ok(())
    }
}
