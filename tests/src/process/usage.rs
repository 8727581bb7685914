//! What a process has used, as Linux tells in `/proc/PID`.
//!
//! `stat` counts CPU time in clock ticks (fields 14 and 15; the second field may hold spaces, so
//! counting starts after its closing parenthesis), `status` has the peak of resident memory
//! (`VmHWM`), `io` the bytes that went towards storage. See proc(5).

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A reading; CPU time and bytes written only grow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User and system time together.
    pub cpu: Duration,
    /// Peak of resident memory.
    pub peak_memory_bytes: u64,
    /// Resident memory now.
    pub memory_bytes: u64,
    /// Bytes that the process caused to be sent to storage.
    pub written_bytes: u64,
}

/// Why there is no reading.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// The process is gone, or the file belongs to someone else.
    #[error("{path} cannot be used")]
    File {
        /// Which file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The file lacks what proc(5) promises.
    #[error("{path} has no {field}")]
    Field {
        /// Which file.
        path: PathBuf,
        /// What is missing.
        field: &'static str,
    },
}

impl Usage {
    /// Reads what a process has used so far.
    pub fn of(process_id: u32) -> Result<Usage, UsageError> {
        let status = read(process_id, "status")?;
        Ok(Usage {
            cpu: cpu(process_id)?,
            peak_memory_bytes: 1024 * number(process_id, "status", &status, "VmHWM:")?,
            memory_bytes: 1024 * number(process_id, "status", &status, "VmRSS:")?,
            written_bytes: number(process_id, "io", &read(process_id, "io")?, "write_bytes:")?,
        })
    }
}

/// Sets the peak of resident memory back to its present amount.
pub fn reset_peak_memory(process_id: u32) -> Result<(), UsageError> {
    let path = path(process_id, "clear_refs");
    fs::write(&path, "5").map_err(|source| UsageError::File { path, source })
}

fn cpu(process_id: u32) -> Result<Duration, UsageError> {
    let stat = read(process_id, "stat")?;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    // The first of these fields is the third of the file.
    let ticks = |number: usize| -> Option<u64> { fields.get(number - 3)?.parse().ok() };
    let ticks = ticks(14).zip(ticks(15)).map(|(user, system)| user + system);
    let ticks = ticks.ok_or_else(|| missing(process_id, "stat", "utime and stime"))?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

fn number(process_id: u32, file: &str, text: &str, field: &'static str) -> Result<u64, UsageError> {
    text.lines()
        .find_map(|line| line.strip_prefix(field)?.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| missing(process_id, file, field))
}

fn read(process_id: u32, file: &str) -> Result<String, UsageError> {
    let path = path(process_id, file);
    fs::read_to_string(&path).map_err(|source| UsageError::File { path, source })
}

fn path(process_id: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{process_id}/{file}"))
}

fn missing(process_id: u32, file: &str, field: &'static str) -> UsageError {
    UsageError::Field { path: path(process_id, file), field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_read() {
        let usage = Usage::of(std::process::id()).expect("this process runs");
        assert!(usage.peak_memory_bytes >= usage.memory_bytes && usage.memory_bytes > 100_000);
    }
}
