//! `stat` of procfs, which the collectors `cpu` and `stat` share: with many interrupts and
//! processors, the kernel needs more time for this file than for all other files.
//!
//! Source: `proc_stat(5)`. As in upstream, the values of missing lines are 0.

use crate::Paths;
use crate::error::{Malformed, Result};
use crate::read::Reader;

/// Number of times: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
pub(crate) const CPU_TIMES: usize = 10;
pub(crate) const IDLE: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct ProcStat {
    /// Processors in the order of the file, which is the order of their numbers.
    pub(crate) cpus: Vec<CpuTimes>,
    pub(crate) interrupts: u64,
    pub(crate) context_switches: u64,
    /// Unix time of the boot, in seconds.
    pub(crate) boot_time: u64,
    pub(crate) forks: u64,
    pub(crate) running: u64,
    pub(crate) blocked: u64,
}

/// Times of a processor in hundredths of a second (`USER_HZ` on all supported platforms).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    pub(crate) number: u32,
    pub(crate) ticks: [u64; CPU_TIMES],
}

/// The file's content, which is read at most once per round.
#[derive(Default)]
pub(crate) struct SharedStat {
    stat: ProcStat,
    is_fresh: bool,
}

impl SharedStat {
    /// Starts a round, in which the first read reads the file.
    pub(crate) fn reset(&mut self) {
        self.is_fresh = false;
    }

    pub(crate) fn read(&mut self, paths: &Paths, reader: &mut Reader) -> Result<&ProcStat> {
        if !self.is_fresh {
            let path = paths.procfs("stat");
            let text = reader.text(&path)?;
            parse(text, &mut self.stat).map_err(|error| error.of(&path))?;
            // Not set after an error, so that each collector reads again and reports the error.
            self.is_fresh = true;
        }
        Ok(&self.stat)
    }
}

fn parse(text: &str, stat: &mut ProcStat) -> std::result::Result<(), Malformed> {
    // The vector is moved out and back, so that its memory is reused.
    let mut cpus = std::mem::take(&mut stat.cpus);
    cpus.clear();
    *stat = ProcStat { cpus, ..ProcStat::default() };
    for (number, line) in text.lines().enumerate() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(key), Some(value)) = (fields.next(), fields.next()) else { continue };
        let malformed = |found: &str| Malformed::new(number, "a count", found);
        let count = || value.parse().map_err(|_| malformed(value));
        match key {
            "intr" => stat.interrupts = count()?,
            "ctxt" => stat.context_switches = count()?,
            "btime" => stat.boot_time = count()?,
            "processes" => stat.forks = count()?,
            "procs_running" => stat.running = count()?,
            "procs_blocked" => stat.blocked = count()?,
            _ => {
                // The line `cpu`, without a number, has the sums of all processors.
                let Some(cpu) = key.strip_prefix("cpu").filter(|cpu| !cpu.is_empty()) else {
                    continue;
                };
                let last = stat.cpus.last().map(|cpu| cpu.number);
                // Numbers must ascend, because the collector `cpu` searches by number.
                let cpu = cpu.parse().ok().filter(|cpu| last < Some(*cpu));
                let cpu = cpu
                    .ok_or_else(|| Malformed::new(number, "a processor's number, growing", key))?;
                let mut ticks = [count()?, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                // Older kernels have fewer times per processor.
                for (slot, field) in ticks[1..].iter_mut().zip(fields) {
                    *slot = field.parse().map_err(|_| malformed(field))?;
                }
                stat.cpus.push(CpuTimes { number: cpu, ticks });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> std::result::Result<ProcStat, String> {
        let mut stat = ProcStat::default();
        match parse(text, &mut stat) {
            Ok(()) => Ok(stat),
            Err(error) => Err(error.of(std::path::Path::new("stat")).to_string()),
        }
    }

    #[test]
    fn what_is_missing_is_0() {
        let stat = parsed("cpu  9 9\ncpu0 1 2 3\ncpu12 18446744073709551615\n\nnew 1\nctxt\n")
            .expect("parsed");
        let ticks = |first: [u64; 3]| {
            let mut ticks = [0; CPU_TIMES];
            ticks[..3].copy_from_slice(&first);
            ticks
        };
        let expected = [
            CpuTimes { number: 0, ticks: ticks([1, 2, 3]) },
            CpuTimes { number: 12, ticks: ticks([u64::MAX, 0, 0]) },
        ];
        assert_eq!(stat.cpus, expected);
        assert_eq!((stat.context_switches, stat.boot_time), (0, 0));
        assert!(parsed("").expect("parsed").cpus.is_empty());
    }

    #[test]
    fn what_is_no_count_is_named() {
        for (text, said) in [
            ("cpu0 1 -2\n", r#"stat:1: expected a count, found "-2""#),
            ("cpu0 1\nctxt 1.5\n", r#"stat:2: expected a count, found "1.5""#),
            ("cpux 1\n", r#"stat:1: expected a processor's number, growing, found "cpux""#),
            ("cpu0 1\ncpu0 1\n", r#"stat:2: expected a processor's number, growing, found "cpu0""#),
            ("intr 18446744073709551616\n", "expected a count"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.contains(said), "{error}");
        }
    }
}
