//! The lives of a node in a world: those that end at a call, and those on a disk that fails.

use super::flags::Synced;
use super::world::{End, Outcome, World, verify};
use std::time::Duration;
use tidepool_tests::disk_faults::{Errors, Kinds};
use tidepool_tests::process::{ProcessError, READY_TIMEOUT};
use tidepool_tests::tidepool::command;
use tidepool_tests::wait;

/// Number of steps in a life.
const STEPS: usize = 45;
/// Timeout of a start on a failing disk, after which the faults end.
const START_AMID_ERRORS: Duration = Duration::from_millis(500);
/// Timeout for a node to accept writes again once the faults have ended.
const WELL_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two writes to a node that refuses them.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Linux' error numbers of disks and file systems: EIO, ENOSPC, EDQUOT, EROFS, EACCES, EPERM,
/// EFBIG.
const ERRORS: [u32; 9] = [5, 5, 5, 28, 28, 122, 30, 13, 27];
/// ENOMEM and EMFILE, which opening a file may return.
const ERRORS_OF_OPEN: [u32; 2] = [12, 24];
/// EINTR, after which a program retries: if every call returned it, the retries would never end.
const INTERRUPTED: u32 = 4;
/// Groups of calls that fail together.
const FAILING: [Kinds; 14] = [
    Kinds::WRITE,
    Kinds::WRITE,
    Kinds::WRITE,
    Kinds::SYNC_FILE,
    Kinds::SYNC_FILE,
    Kinds::SYNC_DIRECTORY,
    Kinds::RENAME,
    Kinds::LINK,
    Kinds::UNLINK,
    Kinds::REMOVE_DIRECTORY,
    Kinds::MAKE_DIRECTORY,
    Kinds::CREATE,
    Kinds::TRUNCATE,
    Kinds::CHANGES,
];
/// Parts of paths to which errors are limited.
const PATH_PARTS: [&str; 10] =
    ["", "", "", "/wal/", "/wbl/", "/0", "tombstones", "meta.json", "checkpoint", "head_snapshot"];

impl World {
    /// Runs a life that ends at a random call, after starts that do.
    pub fn life_with_kills(&mut self) -> Outcome {
        self.begin_life(Synced::ByChance)?;
        while self.random.one_in(3) {
            self.start_that_is_killed()?;
        }
        self.start()?;
        self.check("at the start")?;
        self.shorten_writes()?;
        let calls = self.random.pick(&[80, 500, 3000]);
        self.kill_after(calls)?;
        for _ in 0..STEPS {
            if self.is_killed {
                break;
            }
            self.step()?;
        }
        // The kill may still come while the node stops.
        let how = self.random.pick(&[End::Stop, End::Stop, End::Kill]);
        let is_clean = self.end(how)?;
        // The next start truncates the torn record that a kill left.
        if is_clean && self.random.one_in(2) {
            verify(&self.data_dir())?;
        }
        if self.random.one_in(3) {
            self.two_programs(is_clean)?;
        }
        if self.random.one_in(3) {
            self.compact(|world| world.kill_after(100))?;
        }
        Ok(())
    }

    /// Runs a life on a disk that fails now and then, without faults at its end.
    pub fn life_with_errors(&mut self) -> Outcome {
        self.begin_life(Synced::ByChance)?;
        if self.random.one_in(3) {
            self.begin_errors()?;
            self.start_amid_errors()?;
        } else {
            self.start()?;
            self.check("at the start")?;
        }
        self.shorten_writes()?;
        let mut steps_left = 8;
        for _ in 0..STEPS {
            if self.has_errors {
                steps_left -= 1;
                if steps_left == 0 {
                    self.end_errors()?;
                }
            } else if self.random.one_in(6) {
                self.begin_errors()?;
                steps_left = self.random.pick(&[1, 2, 4, 8, 20]);
            }
            self.step()?;
        }
        if self.random.one_in(2) {
            self.end_errors()?;
            self.write_again()?;
            self.check("at the end")?;
        }
        let how = self.random.pick(&[End::Stop, End::Stop, End::Kill]);
        self.end(how)?;
        if self.random.one_in(6) {
            self.two_programs(false)?;
        }
        if self.random.one_in(3) {
            self.compact(World::begin_errors)?;
        }
        Ok(())
    }

    /// Runs a life whose changes are journalled; syncs may fail in it.
    pub fn life_with_a_journal(&mut self, synced: Synced) -> Outcome {
        self.begin_life(synced)?;
        self.start()?;
        if self.random.one_in(4) {
            let kinds = [Kinds::SYNC_FILE, Kinds::SYNC_DIRECTORY, Kinds::WRITE];
            let (kinds, per_mille) = (self.random.pick(&kinds), self.random.pick(&[5, 30]));
            self.fail(&Errors {
                kinds,
                per_mille,
                error_number: ERRORS[0],
                done_per_mille: 0,
                path_part: "",
            })?;
        } else if self.random.one_in(3) {
            self.kill_after(3000)?;
        }
        for _ in 0..STEPS {
            if self.is_killed {
                break;
            }
            self.step()?;
        }
        self.end_errors()?;
        self.end(End::Stop)?;
        Ok(())
    }

    /// Runs a short life after a power cut, whose start is journalled, too.
    pub fn life_after_a_cut(&mut self) -> Outcome {
        self.begin_life(Synced::Mostly)?;
        while self.random.one_in(5) {
            self.start_that_is_killed()?;
        }
        self.start()?;
        self.check("at the start after a power cut")?;
        for _ in 0..self.random.pick(&[0, 1, 4, 15]) {
            self.step()?;
        }
        let how = self.random.pick(&[End::Stop, End::Kill]);
        self.end(how)?;
        Ok(())
    }

    /// Kills a start at one of its calls, if it makes that many.
    fn start_that_is_killed(&mut self) -> Outcome {
        self.steps.push("a start that is killed".to_owned());
        self.kill_after(60)?;
        self.spawn()?;
        match self.wait_ready(READY_TIMEOUT) {
            Ok(()) => {}
            Err(ProcessError::EndedEarly { status, .. }) if self.was_killed(status)? => {
                self.is_killed = true;
            }
            Err(error) => return Err(error.into()),
        }
        self.end(End::Kill)?;
        Ok(())
    }

    /// Kills the next program at one of its first calls.
    fn kill_after(&mut self, calls_max: u64) -> Outcome {
        let (calls, tears) = (1 + self.random.below(calls_max), self.random.one_in(2));
        Ok(self.faults.kill_after(calls as u32, tears)?)
    }

    /// Makes some writes end early, in some lives.
    fn shorten_writes(&mut self) -> Outcome {
        if self.random.one_in(5) {
            self.faults.shorten_writes(300)?;
        }
        Ok(())
    }

    fn begin_errors(&mut self) -> Outcome {
        let random = &mut self.random;
        let mut errors = Errors {
            kinds: random.pick(&FAILING),
            per_mille: random.pick(&[30, 100, 300, 1000]),
            error_number: random.pick(&ERRORS),
            done_per_mille: random.pick(&[0, 0, 300]),
            path_part: random.pick(&PATH_PARTS),
        };
        match random.below(8) {
            0 => {
                errors.kinds = random.pick(&[Kinds::CREATE, Kinds::CREATE | Kinds::OPEN]);
                errors.error_number = random.pick(&ERRORS_OF_OPEN);
            }
            1 => {
                (errors.kinds, errors.per_mille) = (Kinds::WRITE, 300);
                errors.error_number = INTERRUPTED;
            }
            _ => {}
        }
        self.fail(&errors)
    }

    fn fail(&mut self, errors: &Errors<'_>) -> Outcome {
        self.steps.push(format!("{errors:?}"));
        (self.has_errors, self.had_errors) = (true, true);
        Ok(self.faults.fail(errors)?)
    }

    fn end_errors(&mut self) -> Outcome {
        self.steps.push("the disk is well".to_owned());
        self.has_errors = false;
        Ok(self.faults.clear()?)
    }

    /// Starts the node on a failing disk. It may give up with an error, and starts once the faults
    /// have ended.
    fn start_amid_errors(&mut self) -> Outcome {
        self.spawn()?;
        match self.wait_ready(START_AMID_ERRORS) {
            Ok(()) => return Ok(()),
            Err(ProcessError::TooSlow { .. }) => {
                self.end_errors()?;
                match self.wait_ready(READY_TIMEOUT) {
                    Ok(()) => return Ok(()),
                    // The process had met an error before.
                    Err(ProcessError::EndedEarly { status, .. }) if status.code().is_some() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(ProcessError::EndedEarly { status, .. }) if status.code().is_some() => {}
            Err(error) => return Err(error.into()),
        }
        self.server = None;
        self.end_errors()?;
        self.start()?;
        self.check("at the start after one that failed")
    }

    /// Checks that writes are accepted again once the faults have ended.
    fn write_again(&mut self) -> Outcome {
        let mut outcome = Ok(());
        let taken = wait::until_every(RETRY_PAUSE, "a write that is taken", WELL_TIMEOUT, || {
            match self.scrape_is_taken() {
                Ok(is_taken) => is_taken.then_some(()),
                Err(error) => {
                    outcome = Err(error);
                    Some(())
                }
            }
        });
        outcome?;
        Ok(taken?)
    }

    /// Compacts without a node, which must work unless this command meets `faults`.
    fn compact(&mut self, faults: fn(&mut World) -> Outcome) -> Outcome {
        let is_faulty = self.random.one_in(2);
        if is_faulty {
            faults(self)?;
        }
        let mut command = command();
        command.args(["tsdb", "compact"]).arg(self.data_dir());
        if self.random.one_in(2) {
            command.arg("--head");
        }
        self.steps.push(format!("compact, with faults: {is_faulty}"));
        let output = command.envs(self.variables_with(&self.faults)?).output()?;
        self.faults.clear()?;
        self.has_errors = false;
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.success() || is_faulty && !stderr.contains("panicked") {
            true => Ok(()),
            false => Err(format!("compact ends with {}: {stderr}", output.status).into()),
        }
    }
}
