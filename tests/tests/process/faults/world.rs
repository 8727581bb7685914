//! A world: one data directory on a disk with faults, a node that runs on it repeatedly with other
//! flags, and the model that determines the expected answers.

use super::clock::JumpingClock;
use super::flags::{Flags, Synced};
use super::model::{Model, Tick, View};
use super::values::{Live, Source};
use std::error::Error;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;
use tempfile::TempDir;
use tidepool_tests::cli;
use tidepool_tests::disk_faults::DiskFaults;
use tidepool_tests::fake_clock;
use tidepool_tests::preload::{self, Variables};
use tidepool_tests::process::{ProcessError, READY_TIMEOUT, Server};
use tidepool_tests::series::Random;
use tidepool_tests::tidepool::{Config, READY_PATH, WalSync};
use tidepool_tests::wait::chain;

/// Result of an action; the error describes a fault.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Time of the first samples: days before the clock of the tests.
const BEGIN_MS: i64 = 1_772_000_280_000;
/// Timeout for the end of a node that gives no answer.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two looks whether a node is ready; short, because there are many starts.
const READY_PAUSE: Duration = Duration::from_millis(5);
/// Log messages about a fault of the program itself.
const PANICS: [&str; 3] = ["panicked", "wasm trap", "engine failed"];
/// Maximum number of steps in a message.
const STEPS_MAX: usize = 12;
/// Maximum characters of the log's end in a message.
const LOG_CHARS: usize = 3_000;

/// The node's directory, with the state of the test.
pub struct World {
    pub seed: u64,
    pub random: Random,
    pub directory: TempDir,
    pub faults: DiskFaults,
    /// Without faults, for programs beside the node, whose calls are counted.
    pub beside: DiskFaults,
    /// The clock of this world, unless it is that of all tests.
    pub clock: Option<JumpingClock>,
    pub model: Model,
    /// Flags of the present life.
    pub flags: Flags,
    pub life: usize,
    life_began: Tick,
    pub server: Option<Server>,
    /// Whether the node was killed at a call and has ended.
    pub is_killed: bool,
    /// Number of programs killed before the present start.
    kills: u32,
    /// Whether calls fail at present.
    pub has_errors: bool,
    /// Whether calls failed in this world: writes may then have been applied in part.
    pub had_errors: bool,
    pub steps: Vec<String>,
    pub source: Source,
    pub live: Vec<Live>,
    pub now_ms: i64,
    pub newest_ms: i64,
    pub exemplars: u64,
    pub snapshot: Option<Snapshot>,
}

/// Way in which a node ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// By a clean stop, with SIGTERM.
    Stop,
    Kill,
}

/// A snapshot that the node acknowledged.
pub struct Snapshot {
    pub name: String,
    pub begun: Tick,
    pub ended: Tick,
}

impl World {
    /// Makes a world before its first life. With `journalled`, all changes are recorded.
    pub fn new(seed: u64, journalled: bool) -> Outcome<World> {
        let mut random = Random::new(seed, 0);
        let directory = tempfile::tempdir()?;
        let path = directory.path();
        let faults = DiskFaults::new(&path.join("data"), path, random.next_u64())?;
        let faults = match journalled {
            true => faults.journalled(&path.join("journal")),
            false => faults,
        };
        let beside = no_faults(path)?;
        let mut source = Source::new(seed);
        let series = random.pick(&[3, 8, 8, 20]);
        let live = (0..series).map(|_| source.series(&mut random)).collect();
        let begin_ms = BEGIN_MS + random.below(100) as i64 * 10_000;
        Ok(World {
            seed,
            directory,
            model: Model::beside(faults.journal().map(PathBuf::from)),
            faults,
            beside,
            clock: None,
            flags: Flags::random(&mut random, Synced::ByChance),
            random,
            life: 0,
            life_began: 0,
            server: None,
            is_killed: false,
            kills: 0,
            has_errors: false,
            had_errors: false,
            steps: Vec::new(),
            source,
            live,
            now_ms: begin_ms,
            newest_ms: begin_ms,
            exemplars: 0,
            snapshot: None,
        })
    }

    /// Makes a world that continues after a power cut, in the folder `data` of this directory; all
    /// changes are recorded.
    pub fn after_a_cut(&self, directory: TempDir, view: View, seed: u64) -> Outcome<World> {
        let path = directory.path();
        let faults = DiskFaults::new(&path.join("data"), path, seed)?;
        let faults = faults.journalled(&path.join("journal"));
        let beside = no_faults(path)?;
        Ok(World {
            seed: self.seed,
            random: Random::new(seed, 0),
            model: self.model.after_a_cut(view, faults.journal().map(PathBuf::from)),
            directory,
            faults,
            beside,
            clock: None,
            flags: self.flags.clone(),
            life: self.life,
            life_began: 0,
            server: None,
            is_killed: false,
            kills: 0,
            has_errors: false,
            had_errors: self.had_errors,
            steps: Vec::new(),
            source: self.source.clone(),
            live: self.live.clone(),
            now_ms: self.now_ms,
            newest_ms: self.newest_ms,
            exemplars: self.exemplars,
            snapshot: None,
        })
    }

    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Begins the next life, with other flags; the node is not started yet.
    pub fn begin_life(&mut self, synced: Synced) -> Outcome {
        self.life += 1;
        self.life_began = self.model.tick();
        self.flags = Flags::random(&mut self.random, synced);
        self.faults.refuse_links(self.flags.link_error)?;
        self.beside.refuse_links(self.flags.link_error)?;
        self.steps.clear();
        Ok(())
    }

    /// Starts the node and waits until it is ready.
    pub fn start(&mut self) -> Outcome {
        self.spawn()?;
        self.wait_ready(READY_TIMEOUT)?;
        Ok(())
    }

    /// Starts the node without waiting.
    pub fn spawn(&mut self) -> Outcome {
        self.move_clock()?;
        self.kills = self.faults.kills()?;
        self.is_killed = false;
        let starter = preload::starter(self.variables_with(&self.faults)?);
        let config = Config::new(self.directory.path()).started_by(starter);
        self.server = Some(self.flags.apply(config).launch()?.spawn()?);
        Ok(())
    }

    /// Returns the variables with which programs meet these faults.
    pub fn variables_with(&self, faults: &DiskFaults) -> Outcome<Variables> {
        let clock = self.clock.as_ref().map(|it| it.clock.variables()).transpose()?;
        Ok(preload::joined(clock.into_iter().chain([faults.variables()])))
    }

    /// Waits for a node that was started.
    pub fn wait_ready(&mut self, timeout: Duration) -> Result<(), ProcessError> {
        self.running().wait_ready_within(READY_PATH, timeout, READY_PAUSE)
    }

    /// Returns the running node.
    ///
    /// # Panics
    ///
    /// If the node was not started, which is a fault of the test.
    pub fn running(&mut self) -> &mut Server {
        self.server.as_mut().expect("the node was started")
    }

    pub fn url(&mut self) -> String {
        self.running().url()
    }

    /// Handles a request without an answer, which is right only if the node was killed at a call.
    pub fn no_answer(&mut self, error: &dyn Error) -> Outcome {
        let Ok(status) = self.running().wait_end(END_TIMEOUT) else {
            return Err(format!("the node runs, but: {}", chain(error)).into());
        };
        self.is_killed = self.was_killed(status)?;
        match self.is_killed {
            true => Ok(()),
            false => Err(format!("the node ended by itself with {status}").into()),
        }
    }

    /// Returns whether the status is that of a node that was killed at a call.
    pub fn was_killed(&self, status: ExitStatus) -> Outcome<bool> {
        Ok(status.signal() == Some(9) && self.faults.kills()? > self.kills)
    }

    /// Ends the node, unless it has ended; returns whether it stopped cleanly.
    pub fn end(&mut self, how: End) -> Outcome<bool> {
        let Some(server) = self.server.take() else { return Ok(false) };
        let process_id = server.process_id();
        let is_clean = if self.is_killed {
            false
        } else {
            let status = match how {
                End::Stop => server.terminate()?.status,
                End::Kill => server.kill()?.status,
            };
            let is_told = matches!(how, End::Kill) && status.signal() == Some(9);
            let is_expected = is_told || self.was_killed(status)?;
            let is_excused = self.has_errors && status.code().is_some();
            if !status.success() && !is_expected && !is_excused {
                return Err(format!("the node ended with {status}").into());
            }
            status.success()
        };
        if !is_clean && matches!(self.flags.wal_sync, WalSync::Batch) {
            // Samples acknowledged in this life may have been in memory alone.
            self.model.forget_since(self.life_began);
        }
        if self.clock.is_some() {
            fake_clock::remove_leftovers(process_id);
        }
        self.faults.clear()?;
        self.has_errors = false;
        self.check_log()?;
        Ok(is_clean)
    }

    /// Checks that the program did not report a failure of its own.
    fn check_log(&self) -> Outcome {
        let log = self.log();
        match log.lines().find(|line| PANICS.iter().any(|word| line.contains(word))) {
            Some(line) => Err(format!("the log says: {line}").into()),
            None => Ok(()),
        }
    }

    fn log(&self) -> String {
        let bytes = std::fs::read(self.directory.path().join("tidepool.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the tick at the beginning of the present life.
    pub fn life_began(&self) -> Tick {
        self.life_began
    }

    /// Describes the state of the world for a failure.
    pub fn describe(&self, error: &dyn Error) -> String {
        let World { seed, life, flags, steps, .. } = self;
        let steps = &steps[steps.len().saturating_sub(STEPS_MAX)..];
        let (what, steps, log) = (chain(error), steps.join(", "), self.log());
        let log = end_of(&log);
        let clock = if self.clock.is_some() { ", with a clock that jumps" } else { "" };
        format!(
            "seed {seed}, life {life} ({flags}{clock}): {what}\nafter {steps}\nthe log ends:\n{log}"
        )
    }
}

/// Prepares a disk without faults, for programs beside a node.
fn no_faults(directory: &Path) -> Outcome<DiskFaults> {
    let scratch = directory.join("beside");
    std::fs::create_dir(&scratch)?;
    Ok(DiskFaults::new(&directory.join("data"), &scratch, 0)?)
}

/// Checks that `tidepool tsdb verify` finds nothing wrong. No node may run.
pub fn verify(data_dir: &Path) -> Outcome {
    let output = cli::run(tidepool_tests::arguments!["verify", data_dir], "");
    match output.code {
        Some(0) => Ok(()),
        code => {
            let text = format!("{}{}", output.stdout, output.stderr);
            Err(format!("verify ends with {code:?}: {}", end_of(&text)).into())
        }
    }
}

fn end_of(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(LOG_CHARS))..]
}
