//! Resource usage of a process, as Linux reports it in `/proc/PID`.
//!
//! CPU time is that of the process' own clock (clock_getcpuclockid(3)), in nanoseconds: `stat`
//! counts ticks of 10 ms, which is more than a small query takes. Only its children are counted by
//! `stat` (fields 16 and 17; the second field may hold spaces, so counting starts after its closing
//! parenthesis). `status` has resident memory (`VmRSS`), its anonymous part (`RssAnon`) and its
//! peak (`VmHWM`), `io` the bytes that went towards storage. See proc(5).

use nix::errno::Errno;
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The field of `status` with anonymous memory.
const ANONYMOUS: &str = "RssAnon:";

/// A reading; CPU time and bytes written only grow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User and system time together, with that of children that have ended.
    pub cpu: Duration,
    pub peak_memory_bytes: u64,
    pub memory_bytes: u64,
    /// Resident memory that belongs to no file, so that the page cache could not release it.
    pub anonymous_memory_bytes: u64,
    /// Bytes that the process caused to be sent to storage.
    pub written_bytes: u64,
}

/// Reason why there is no reading.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// The process has ended, or the file belongs to another user.
    #[error("{path} cannot be used")]
    File {
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The process has no CPU clock, because it has ended.
    #[error("process {process_id} has no CPU clock")]
    Clock {
        process_id: u32,
        /// Error of the operating system.
        source: Errno,
    },
    /// The file lacks a field that proc(5) documents.
    #[error("{path} has no {field}")]
    Field {
        path: PathBuf,
        /// Name of the missing field.
        field: &'static str,
    },
}

impl Usage {
    /// Reads the usage of a process so far.
    pub fn of(process_id: u32) -> Result<Usage, UsageError> {
        let status = read(process_id, "status")?;
        Ok(Usage {
            cpu: cpu(process_id)?,
            peak_memory_bytes: 1024 * number(process_id, "status", &status, "VmHWM:")?,
            memory_bytes: 1024 * number(process_id, "status", &status, "VmRSS:")?,
            anonymous_memory_bytes: 1024 * number(process_id, "status", &status, ANONYMOUS)?,
            written_bytes: number(process_id, "io", &read(process_id, "io")?, "write_bytes:")?,
        })
    }
}

/// Reads only the anonymous memory of a process, which is cheap enough for frequent looks.
pub(super) fn anonymous_memory(process_id: u32) -> Result<u64, UsageError> {
    let status = read(process_id, "status")?;
    Ok(1024 * number(process_id, "status", &status, ANONYMOUS)?)
}

/// Resets the peak of resident memory to its current amount.
pub fn reset_peak_memory(process_id: u32) -> Result<(), UsageError> {
    let path = path(process_id, "clear_refs");
    fs::write(&path, "5").map_err(|source| UsageError::File { path, source })
}

fn cpu(process_id: u32) -> Result<Duration, UsageError> {
    let clock = |source| UsageError::Clock { process_id, source };
    let pid = i32::try_from(process_id).map_err(|_| clock(Errno::ESRCH))?;
    let own = clock_getcpuclockid(Pid::from_raw(pid)).and_then(|id| id.now()).map_err(clock)?;
    let stat = read(process_id, "stat")?;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    // `fields` begins with the third field of the file.
    let ticks = |number: usize| -> Option<u64> { fields.get(number - 3)?.parse().ok() };
    let ticks = ticks(16).zip(ticks(17)).map(|(user, system)| user + system);
    let ticks = ticks.ok_or_else(|| missing(process_id, "stat", "cutime and cstime"))?;
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    Ok(Duration::from(own) + Duration::from_secs_f64(ticks as f64 / ticks_per_second))
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
        assert!((1..usage.memory_bytes).contains(&usage.anonymous_memory_bytes));
    }

    #[test]
    fn little_work_is_counted_too() {
        let cpu = || super::cpu(std::process::id()).expect("this process runs");
        let (before, mut sum) = (cpu(), 0u64);
        // Works for less than one tick.
        for number in 0..100_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
        assert!(cpu() > before, "{sum}");
    }

    #[test]
    fn a_process_that_is_not_there_has_no_clock() {
        // Kernels number processes below 2^22.
        assert!(matches!(super::cpu(1 << 26), Err(UsageError::Clock { .. })));
    }
}
