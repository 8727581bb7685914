//! Counts starts that failed to replay the log. The count is in the data directory, so it survives
//! restarts. A log that cannot be replayed must not keep a node from serving for good, and a good
//! log must not be given up because the node was killed or lost power during the replay.
//!
//! ```text
//! begin ──▶ replay ─┬─ ready ───────────────────────────────▶ count = 0
//!   │               ├─ the engine fails ─┬─ further than ever ▶ count = 1
//!   │               │                    └─ no further ──────▶ count + 1, durable
//!   │               ├─ the head has too little memory ───▶ serve the blocks; nothing is counted
//!   │               └─ stop, kill, power cut, storage that fails: nothing is counted
//!   ├─ the kernel killed the last start for want of memory, at the record of the last failure: count + 1
//!   ├─ such kills reach the limit: serve the blocks, count = 0
//!   └─ count is at the limit: quarantine the logs, count = 0
//! ```
//!
//! If memory is too short for a log, the log is intact, so it is not quarantined.

use super::{Shortage, StoreError};
use tidepool_disk::{DataDir, DiskError, FailedStarts, StartNote};
use tidepool_runtime::{CallError, Error};

/// Reason for which the head did not start.
pub(super) enum StartError {
    /// The store is being stopped.
    Stopped,
    /// Memory is too short for the log, which is not damaged.
    ShortOfMemory(Option<Shortage>),
    /// A retry would not help, and the log is not the cause.
    Hopeless(StoreError),
    /// A retry may help, and the log is not the cause.
    Passing(StoreError),
    /// The log could not be replayed this time, possibly because of its content.
    Failed {
        error: StoreError,
        /// Records that were replayed before the failure.
        records: u64,
    },
}

/// Counts of starts in a data directory.
pub(super) struct Starts {
    data: DataDir,
    /// Number of failures after which the logs are quarantined; 0 means never.
    failed_max: u32,
    /// Failures before the present start.
    failed: FailedStarts,
    /// The file with the progress of the present start.
    note: Option<StartNote>,
    /// Whether the previous start was ended by a kill or a power cut.
    was_cut_short: bool,
    /// Whether the last counted failure was a kill by the kernel, for lack of memory.
    was_killed: bool,
    machine: Option<Machine>,
}

/// Counts of the kernel, from which a start can tell how an earlier run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Machine {
    /// Identifier that changes with each boot.
    boot: String,
    /// Number of processes that the kernel killed for lack of memory since the boot.
    oom_kills: u64,
}

impl StartError {
    /// Classifies an error that occurred when opening the logs.
    pub fn opening(error: DiskError) -> StartError {
        match error.is_for_a_person() || error.is_no_space() {
            true => StartError::Hopeless(error.into()),
            false if error.is_shortage() => StartError::Passing(error.into()),
            false => StartError::Failed { error: error.into(), records: 0 },
        }
    }

    /// Classifies an error of a call of the engine that came after `records` records.
    pub fn replaying(error: CallError, records: u64) -> StartError {
        if matches!(error, CallError::Memory(_) | CallError::Refused(Error::ShortOfMemory(_))) {
            return StartError::ShortOfMemory(None);
        }
        // Errors of the storage do not depend on the log's content.
        let is_passing = matches!(&error, CallError::Refused(Error::Storage(_)));
        let error = StoreError::from(error).of_head();
        match is_passing {
            true => StartError::Passing(error),
            false => StartError::Failed { error, records },
        }
    }
}

impl Starts {
    pub fn new(data: DataDir, failed_max: u32) -> Starts {
        let failed = data.failed_starts().unwrap_or_else(|error| {
            tracing::warn!(%error, "could not read the count of failed starts");
            FailedStarts::default()
        });
        let mut starts = Starts {
            data,
            failed_max,
            failed,
            note: None,
            was_cut_short: false,
            was_killed: false,
            machine: Machine::look(),
        };
        starts.judge_last();
        starts
    }

    /// Begins a start. Returns an error if the logs must not be read.
    pub fn begin(&mut self) -> Result<(), StartError> {
        let FailedStarts { count: failed, .. } = self.failed;
        if failed > 0 {
            let failed_max = self.failed_max;
            tracing::warn!(failed, failed_max, "earlier starts failed during WAL replay");
        }
        if self.failed_max > 0 && failed >= self.failed_max {
            // The log does not cause kills by the kernel, so it is not quarantined.
            if self.was_killed {
                self.was_killed = false;
                self.set_failed(FailedStarts::default());
                return Err(StartError::ShortOfMemory(Some(Shortage::Machine { kills: failed })));
            }
            if self.set_logs_aside() {
                self.set_failed(FailedStarts::default());
            }
        }
        self.note = match self.data.begin_start() {
            Ok(note) => Some(note),
            Err(error) => {
                tracing::debug!(%error, "could not record the progress of the start");
                None
            }
        };
        Ok(())
    }

    /// Records how many records of the log are replayed.
    pub fn replayed(&self, records: u64) {
        if let (Some(note), Some(machine)) = (&self.note, &self.machine)
            && let Err(error) = note.say(&machine.note(records))
        {
            tracing::debug!(%error, "could not record the progress of the start");
        }
    }

    /// Returns whether earlier starts failed or were killed, and the logs are still the same.
    pub fn have_failed(&self) -> bool {
        self.failed.count > 0 || self.was_cut_short
    }

    /// Records a failure after this number of records.
    pub fn failed(&mut self, records: u64) {
        self.was_killed = false;
        let FailedStarts { count, records: furthest } = self.failed;
        self.set_failed(match furthest {
            // A replay that got further failed for another reason, so the count begins again.
            Some(furthest) if furthest < records => {
                FailedStarts { count: 1, records: Some(records) }
            }
            _ => FailedStarts {
                count: count.saturating_add(1),
                records: furthest.max(Some(records)),
            },
        });
        self.ended();
    }

    /// Records an end that is no sign of a fault in the log.
    pub fn ended(&mut self) {
        // Dropping the note removes its file; a remaining file is the sign of a kill.
        self.note = None;
        self.was_cut_short = false;
    }

    /// Records success, which resets the count.
    pub fn ready(&mut self) {
        self.ended();
        if self.failed.count > 0 {
            self.set_failed(FailedStarts::default());
        }
    }

    /// Finds out how the last start ended, if it neither succeeded nor ended by itself.
    fn judge_last(&mut self) {
        let Some(said) = self.data.unfinished_start() else { return };
        self.was_cut_short = true;
        let Some(machine) = &self.machine else { return };
        let Some(records) = machine.killed_at(&said) else {
            tracing::info!("the last start was killed from outside and does not count as failed");
            return;
        };
        let FailedStarts { count, records: furthest } = self.failed;
        tracing::warn!(
            records,
            "the kernel's OOM killer ended a process during the last WAL replay; the start counts \
             as failed if that happens again at the same record"
        );
        self.was_killed = true;
        // A kill at another record is caused by all data in memory, not by this record of the log.
        if furthest.is_none_or(|furthest| furthest < records) {
            self.set_failed(FailedStarts { count: 1, records: Some(records) });
        } else if furthest == Some(records) {
            self.set_failed(FailedStarts { count: count.saturating_add(1), ..self.failed });
        }
    }

    fn set_failed(&mut self, failed: FailedStarts) {
        self.failed = failed;
        self.data.set_failed_starts(failed).unwrap_or_else(|error| {
            let count = failed.count;
            tracing::warn!(%error, count, "could not write the count of failed starts");
        });
    }

    /// Quarantines the logs; returns whether the next replay will read other logs.
    fn set_logs_aside(&self) -> bool {
        let FailedStarts { count: failed, records } = self.failed;
        match self.data.set_logs_aside() {
            Ok(Some(kept)) => {
                tracing::error!(
                    path = %kept.display(), failed, records,
                    "WAL replay failed {failed} times in a row (see the last lines of each start): \
                     the WAL is quarantined, and the store starts with its blocks alone. What was \
                     in no block yet is missing now. To restore it, stop tidepool and run \
                     `tidepool tsdb restore {} {}`, with --memory-limit if it needs more",
                    kept.display(), self.data.path().display()
                );
                true
            }
            Ok(None) => {
                tracing::error!(failed, "starts fail although there is no WAL");
                true
            }
            Err(error) => {
                tracing::error!(
                    %error, failed, "WAL replay fails, and the WAL could not be quarantined"
                );
                false
            }
        }
    }
}

impl Machine {
    /// Reads the counts (proc(5): `/proc/sys/kernel/random/boot_id`, `/proc/vmstat`) if they exist.
    fn look() -> Option<Machine> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let vmstat = std::fs::read_to_string("/proc/vmstat").ok()?;
        let oom_kills = vmstat.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
        let (boot, oom_kills) = (boot.trim().to_owned(), oom_kills.trim().parse().ok()?);
        Some(Machine { boot, oom_kills })
    }

    /// Returns the text for the note of a start. Its length is constant.
    fn note(&self, records: u64) -> String {
        let Machine { boot, oom_kills } = self;
        format!("{boot} {oom_kills:020} {records:020}\n")
    }

    /// Returns the number of records that were replayed, if `said` is the note of a start and the
    /// kernel has killed a process since. Returns `None` without a sign of that.
    fn killed_at(&self, said: &str) -> Option<u64> {
        let mut words = said.split_whitespace();
        let (boot, oom_kills) = (words.next()?, words.next()?.parse().ok()?);
        let records = words.next()?.parse().ok()?;
        // The kernel counts since the boot, so counts of different boots cannot be compared.
        (boot == self.boot && self.oom_kills > oom_kills).then_some(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    /// Starts a process on a machine with `oom_kills` kills; returns whether it reads the logs.
    fn process_reading(
        data: &DataDir,
        boot: &str,
        oom_kills: u64,
    ) -> Result<(Starts, bool), DiskError> {
        let machine = Some(Machine { boot: boot.into(), oom_kills });
        let failed = data.failed_starts()?;
        let (data, note) = (data.clone(), None);
        let (was_cut_short, was_killed, failed_max) = (false, false, 3);
        let mut starts =
            Starts { data, failed_max, failed, note, was_cut_short, was_killed, machine };
        starts.judge_last();
        let reads = starts.begin().is_ok();
        Ok((starts, reads))
    }

    fn process(data: &DataDir, boot: &str, oom_kills: u64) -> Result<Starts, DiskError> {
        let (starts, reads) = process_reading(data, boot, oom_kills)?;
        assert!(reads);
        Ok(starts)
    }

    /// Leaves the data directory as a kill does.
    fn killed_after(starts: Starts, records: u64) {
        starts.replayed(records);
        let note = starts.data.path().join("starting");
        let left = std::fs::read(&note).expect("a start that is going on");
        drop(starts.note);
        std::fs::write(note, left).expect("a directory that can be written");
    }

    fn data_with_log(dir: &std::path::Path) -> Result<DataDir, DiskError> {
        let data = DataDir::open(dir)?;
        assert!(std::fs::write(data.wal_path().join("00000000"), b"log").is_ok());
        Ok(data)
    }

    #[test]
    fn only_the_engine_fails_at_the_log() -> TestResult {
        let dir = tempfile::tempdir()?;
        let data = data_with_log(dir.path())?;
        // Kills and power cuts, wherever they come.
        for (boot, records) in [("a", 7), ("a", 7), ("a", 7), ("b", 7), ("c", 7), ("c", 9)] {
            killed_after(process(&data, boot, 5)?, records);
            assert_eq!(data.failed_starts()?, FailedStarts::default());
        }
        // The engine gets further each time, then no further.
        for (records, count) in [(10, 1), (20, 1), (30, 1), (25, 2)] {
            let mut starts = process(&data, "c", 5)?;
            starts.failed(records);
            assert_eq!(data.failed_starts()?.count, count, "after {records} records");
        }
        // A kill in between changes nothing.
        killed_after(process(&data, "c", 5)?, 29);
        let expected = FailedStarts { count: 2, records: Some(30) };
        assert_eq!(data.failed_starts()?, expected);
        process(&data, "d", 0)?.failed(30);
        assert!(data.wal_path().join("00000000").exists());
        let mut starts = process(&data, "d", 0)?;
        assert!(!data.wal_path().join("00000000").exists());
        assert_eq!(data.failed_starts()?, FailedStarts::default());
        starts.ready();
        assert_eq!(data.unfinished_start(), None);
        Ok(())
    }

    #[test]
    fn a_start_that_gets_ready_clears_the_count() -> TestResult {
        let dir = tempfile::tempdir()?;
        let data = data_with_log(dir.path())?;
        for _ in 0..5 {
            let mut starts = process(&data, "a", 0)?;
            assert!(!starts.have_failed());
            starts.failed(3);
            assert!(starts.begin().is_ok());
            starts.failed(3);
            assert!(starts.begin().is_ok());
            assert!(starts.have_failed());
            starts.replayed(2);
            starts.ready();
        }
        assert!(data.wal_path().join("00000000").exists());
        Ok(())
    }

    /// With 0 the log is never quarantined.
    #[test]
    fn without_a_limit_it_tries_for_ever() -> TestResult {
        let dir = tempfile::tempdir()?;
        let data = data_with_log(dir.path())?;
        let mut starts = process(&data, "a", 0)?;
        starts.failed_max = 0;
        for _ in 0..9 {
            starts.failed(3);
            assert!(starts.begin().is_ok());
        }
        assert_eq!(data.failed_starts()?.count, 9);
        assert!(data.wal_path().join("00000000").exists());
        Ok(())
    }

    /// A log for which the head had too little memory was quarantined after three starts.
    #[test]
    fn shortage_of_memory_is_no_failure_of_the_log() {
        let memory = || CallError::Memory(tidepool_runtime::MemoryBound::Own);
        let refused = || CallError::Refused(Error::ShortOfMemory(1));
        for error in [memory(), refused()] {
            let start = StartError::replaying(error, 5);
            assert!(matches!(start, StartError::ShortOfMemory(None)));
        }
    }

    #[test]
    fn the_kernels_kills_count_at_the_same_record_alone() -> TestResult {
        let dir = tempfile::tempdir()?;
        let data = data_with_log(dir.path())?;
        // Where memory runs out changes with all that runs beside.
        for (oom_kills, records) in [(1, 70), (2, 30), (3, 50), (4, 60), (5, 20), (6, 40)] {
            killed_after(process(&data, "a", oom_kills)?, records);
            assert!(process(&data, "a", oom_kills + 1)?.failed.count <= 1);
        }
        // Again and again at one place; a power cut in between says nothing.
        for oom_kills in 10..13 {
            assert!(data.wal_path().join("00000000").exists());
            killed_after(process(&data, "a", oom_kills)?, 80);
        }
        killed_after(process(&data, "b", 0)?, 80);
        killed_after(process(&data, "b", 0)?, 80);
        assert_eq!(data.failed_starts()?, FailedStarts { count: 2, records: Some(80) });
        assert!(data.wal_path().join("00000000").exists());
        // Such a log was quarantined, although nothing is wrong with it.
        let (mut starts, reads) = process_reading(&data, "b", 1)?;
        assert!(!reads);
        starts.ready();
        assert!(data.wal_path().join("00000000").exists());
        assert_eq!(data.failed_starts()?, FailedStarts::default());
        drop(process(&data, "b", 1)?);
        Ok(())
    }

    #[test]
    fn what_somebody_else_wrote_says_nothing() {
        let machine = Machine { boot: "a".into(), oom_kills: 5 };
        let earlier = Machine { oom_kills: 4, ..machine.clone() };
        assert_eq!(machine.killed_at(&earlier.note(7)), Some(7));
        assert_eq!(earlier.note(0).len(), earlier.note(u64::MAX).len());
        for said in ["", "a", "a 4", "a x 7", "a 4 x", "b 4 7", "a 5 7"] {
            assert_eq!(machine.killed_at(said), None, "{said:?}");
        }
    }
}
