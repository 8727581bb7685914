//! Second programs on a world's directory: beside its node, and two at once without one.

use super::world::{Outcome, World};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::time::Duration;
use tidepool_tests::histogram::Value;
use tidepool_tests::preload;
use tidepool_tests::process::ProcessError;
use tidepool_tests::tidepool::{Config, command};

/// Timeout for a second node to give up.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for the end of a node that has lost its lock.
const GONE_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of samples in an import.
const IMPORTED: i64 = 20;
/// Placeholders for the data directory, and for a file with samples.
const DIR: &str = "DIR";
const FILE: &str = "FILE";
/// Error of a command that needs a block, if there is none.
const NO_BLOCK: &str = "holds no block";

/// Message of a query while a node runs, which has samples in memory.
const NODE_RUNS: &str = "a server is running";

/// Error of an import of samples that are not older than all samples that are only in the logs.
const NOT_OLDER: &str = "is not before the oldest";

/// Commands that only read the directory.
const READING: [&[&str]; 8] = [
    &["tsdb", "verify", DIR],
    &["tsdb", "verify", DIR],
    &["tsdb", "list", "--wal", DIR],
    &["tsdb", "analyze", "--extended", DIR],
    &["tsdb", "dump", DIR],
    &["tsdb", "export", DIR],
    &["query", "instant", "--dir", DIR, "--time=1772000280", "count({__name__=~\".+\"})"],
    &["query", "series", "--dir", DIR, "--match={__name__=~\".+\"}"],
];
/// Commands that need exclusive use of the directory.
const OWNING: [&[&str]; 4] = [
    &["tsdb", "compact", DIR],
    &["tsdb", "compact", "--head", DIR],
    &["tsdb", "snapshot", DIR],
    &["tsdb", "import", "--format=prometheus", "--max-future=36500d", FILE, DIR],
];

impl World {
    /// Runs a second program beside the node: it reads or is refused, and changes nothing.
    pub fn second_program(&mut self) -> Outcome {
        // Changes by another program are not in the journal.
        if self.faults.journal().is_some() {
            return Ok(());
        }
        let changes = self.beside.calls()?;
        match self.random.below(6) {
            0 => self.second_node()?,
            1 => {
                let arguments = self.random.pick(&OWNING);
                fs::write(self.samples_file(), "")?;
                let output = self.begin_beside(arguments)?.wait_with_output()?;
                match output.status.success() {
                    true => self.took_over(&format!("{arguments:?}"))?,
                    false => said_why(arguments, &output)?,
                }
            }
            _ => {
                let arguments = self.random.pick(&READING);
                let output = self.begin_beside(arguments)?.wait_with_output()?;
                judge_reader(arguments, &output, !self.had_errors)?;
            }
        }
        match self.beside.calls()? - changes {
            0 => Ok(()),
            _ if self.is_killed => Ok(()),
            changes => Err(format!("a second program changed something: {changes} calls").into()),
        }
    }

    fn second_node(&mut self) -> Outcome {
        self.steps.push("a second node".to_owned());
        let variables = self.variables_with(&self.beside)?;
        let config = Config::new(&self.directory.path().join("beside"));
        let config = config.data_in(&self.data_dir()).started_by(preload::starter(variables));
        let mut server = self.flags.apply(config).launch()?.spawn()?;
        match server.wait_end(REFUSAL_TIMEOUT) {
            Ok(status) if status.code().is_some_and(|code| code != 0) => Ok(()),
            Ok(status) => Err(format!("a second node ended with {status}").into()),
            Err(error @ ProcessError::TooSlow { .. }) => {
                server.terminate()?;
                self.took_over(&format!("a second node: {error}"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Handles a second program that got the directory, which is right only if the node was killed.
    fn took_over(&mut self, what: &str) -> Outcome {
        match self.running().wait_end(GONE_TIMEOUT) {
            Ok(status) if self.was_killed(status)? => {
                self.is_killed = true;
                Ok(())
            }
            _ => Err(format!("it works beside a node: {what}").into()),
        }
    }

    /// Runs two programs at once on a directory without a node, one of which may change it.
    /// `is_well` says that no file in it is torn.
    pub fn two_programs(&mut self, is_well: bool) -> Outcome {
        self.move_clock()?;
        let owners = [self.random.pick(&OWNING), self.random.pick(&OWNING)];
        let reader = self.random.pick(&READING);
        let second = if self.random.one_in(2) { owners[1] } else { reader };
        let imported = self.write_samples()?;
        let first = self.begin_beside(owners[0])?;
        let other = self.begin_beside(second)?;
        let outputs = [first.wait_with_output()?, other.wait_with_output()?];
        let mut imports = 0;
        // One that works, or has a reason of its own not to.
        let mut has_owner = false;
        for (arguments, output) in [owners[0], second].into_iter().zip(&outputs) {
            if READING.contains(&arguments) {
                judge_reader(arguments, output, is_well)?;
                continue;
            }
            if !output.status.success() {
                said_why(arguments, output)?;
            }
            let stderr = String::from_utf8_lossy(&output.stderr);
            has_owner |= output.status.success() || stderr.contains(NOT_OLDER);
            imports += u32::from(output.status.success() && arguments.contains(&FILE));
        }
        self.model.end(imported, imports > 0, &[]);
        match has_owner {
            true => Ok(()),
            false => Err(format!("none works: {outputs:?}").into()),
        }
    }

    /// Writes a file with samples of a new series, between the others; returns their request.
    fn write_samples(&mut self) -> Outcome<usize> {
        let labels = self.source.float_series().labels;
        let mut text = String::new();
        let mut rows = Vec::new();
        let name = labels.value("__name__");
        let pairs = ["series", "group"].map(|name| format!("{name}={:?}", labels.value(name)));
        for number in 0..IMPORTED {
            let timestamp_ms = self.newest_ms - (IMPORTED - number) * 2_000;
            let value = self.source.float();
            writeln!(text, "{name}{{{}}} {value} {timestamp_ms}", pairs.join(","))?;
            rows.push((labels.clone(), timestamp_ms, Value::of_float(value)));
        }
        fs::write(self.samples_file(), text)?;
        Ok(self.model.begin(rows))
    }

    fn samples_file(&self) -> PathBuf {
        self.directory.path().join("samples")
    }

    /// Starts a command without faults of the disk.
    fn begin_beside(&mut self, arguments: &[&str]) -> Outcome<Child> {
        self.steps.push(arguments.join(" "));
        let mut command = command();
        for argument in arguments {
            match *argument {
                DIR => command.arg(self.data_dir()),
                FILE => command.arg(self.samples_file()),
                text => command.arg(text),
            };
        }
        command.envs(self.variables_with(&self.beside)?);
        Ok(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }
}

/// Checks that a failed command gives a reason.
fn said_why(arguments: &[&str], output: &Output) -> Outcome {
    let stderr = String::from_utf8_lossy(&output.stderr);
    match output.status.code().is_some() && !stderr.is_empty() && !stderr.contains("panicked") {
        true => Ok(()),
        false => Err(format!("{arguments:?} ends with {}: {stderr}", output.status).into()),
    }
}

/// Checks that a command that reads finds nothing wrong in an undamaged directory.
fn judge_reader(arguments: &[&str], output: &Output, is_well: bool) -> Outcome {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_refused = arguments[0] == "query" && stderr.contains(NODE_RUNS);
    let is_right = output.status.success() || !is_well || is_refused || stderr.contains(NO_BLOCK);
    if is_right && !stderr.contains("panicked") {
        return Ok(());
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    let end = &stdout[stdout.ceil_char_boundary(stdout.len().saturating_sub(500))..];
    Err(format!("{arguments:?} ends with {}: {stderr}{end}", output.status).into())
}
