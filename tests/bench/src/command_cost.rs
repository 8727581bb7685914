//! Cost of a command that works on a data directory, and the directories for such commands.

use super::BenchError;
use super::trial::Cost;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tidepool_tests::made::upstream;
use tidepool_tests::process::{Usage, UsageError};

/// Pause between two looks at a running command; its use after the last look is not counted.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug)]
pub struct CommandCost {
    /// CPU and wall time from start to end.
    pub cost: Cost,
    pub peak_memory_bytes: u64,
}

/// Returns a command that merges blocks as a Prometheus does whose longest block has this span.
pub fn upstream_compact(data_dir: &Path, longest_ms: i64) -> Result<Command, BenchError> {
    let mut command = upstream()?;
    // Prometheus' server sets this value for itself.
    command.env("GOGC", "75");
    command.arg("compact").arg(data_dir).arg(longest_ms.to_string());
    Ok(command)
}

/// Copies a log. Finished segments are linked, because no server writes to them.
pub fn link_log(from: &Path, to: &Path) -> Result<(), BenchError> {
    let (from, to) = (from.join("wal"), to.join("wal"));
    fs::create_dir_all(&to)?;
    let entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
    let mut segments: Vec<PathBuf> = entries.iter().map(|entry| entry.path()).collect();
    segments.sort();
    let newest = segments.len().saturating_sub(1);
    for (number, segment) in segments.iter().enumerate() {
        let target = to.join(segment.file_name().unwrap_or_default());
        match number == newest {
            true => fs::copy(segment, target).map(|_| ())?,
            false => fs::hard_link(segment, target)?,
        }
    }
    Ok(())
}

/// Runs a command that must succeed, and measures its cost.
pub fn measure(command: &mut Command) -> Result<CommandCost, BenchError> {
    let start = Instant::now();
    let mut log = tempfile::tempfile()?;
    let output = || log.try_clone();
    let mut child = command.stdin(Stdio::null()).stdout(output()?).stderr(output()?).spawn()?;
    let mut usage = Usage::default();
    let status = loop {
        // The command may end between two looks.
        usage = usage_of(child.id(), usage)?;
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(LOOK_PAUSE),
        }
    };
    let wall = start.elapsed();
    if !status.success() {
        let program = command.get_program().to_string_lossy().into_owned();
        io::Seek::rewind(&mut log)?;
        return Err(BenchError::Command { program, log: io::read_to_string(log)? });
    }
    let cost = Cost { cpu: usage.cpu, wall };
    Ok(CommandCost { cost, peak_memory_bytes: usage.peak_memory_bytes })
}

/// Returns the usage of a process; after its end, the usage known before.
fn usage_of(process_id: u32, before: Usage) -> Result<Usage, UsageError> {
    match Usage::of(process_id) {
        Err(UsageError::Field { .. } | UsageError::Clock { .. }) => Ok(before),
        usage => usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn the_newest_segment_is_a_copy() {
        let (from, to) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        fs::create_dir(from.path().join("wal")).expect("a directory");
        for segment in ["00000000", "00000001"] {
            fs::write(from.path().join("wal").join(segment), segment).expect("a segment");
        }
        link_log(from.path(), to.path()).expect("a copy");
        let links = |segment: &str| {
            let path = to.path().join("wal").join(segment);
            assert_eq!(fs::read_to_string(&path).expect("a segment"), segment);
            fs::metadata(path).expect("a segment").nlink()
        };
        assert_eq!((links("00000000"), links("00000001")), (2, 1));
    }
}
