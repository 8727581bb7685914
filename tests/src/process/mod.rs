//! A server process from start to end, on a free loopback port.
//!
//! [`Launch`] describes the process to start; [`Server`] is the running process: ready when
//! [`Launch::start`] returns, killed when dropped. Its output goes to a file, which errors quote.

mod address;
mod usage;

pub use address::free_address;
pub use usage::{Usage, UsageError};

use crate::clock;
use crate::http::Client;
use crate::{upstream_race, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A server that is not ready after this time has failed.
pub const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two looks whether a server is ready.
const READY_PAUSE: Duration = Duration::from_millis(50);
/// A server that has not ended after this time has failed; the contract for tidepool is 10 s.
pub const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes of the log that an error quotes.
const LOG_QUOTE_BYTES_MAX: usize = 4_000;

/// Description of a process to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Name of the server in error messages.
    pub name: &'static str,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Address to listen on; port 0 for any with tidepool, which logs its address.
    pub address: SocketAddr,
    /// The page that answers 200 once the server is ready.
    pub ready_path: &'static str,
    /// File for the output, which is appended to.
    pub log_path: PathBuf,
}

/// A running server; killed when dropped.
#[derive(Debug)]
pub struct Server {
    name: &'static str,
    child: Child,
    address: SocketAddr,
    log_path: PathBuf,
}

/// Status and duration of a server's end.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    pub status: ExitStatus,
    /// Time from the signal to the end.
    pub took: Duration,
}

/// Reason why a server did not start or end.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The binary cannot be run.
    #[error("{program} cannot be started; was it built?")]
    Spawn {
        program: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The server ended before it was ready.
    #[error("{name} ended with {status} before it was ready; its log ends:\n{log}")]
    EndedEarly {
        name: &'static str,
        status: ExitStatus,
        /// The end of the server's log.
        log: String,
    },
    /// The server runs, but does not become ready, or does not end.
    #[error("{name}: {what} took more than {} s; its log ends:\n{log}", .timeout.as_secs())]
    TooSlow {
        name: &'static str,
        /// State that was not reached: ready or ended.
        what: &'static str,
        timeout: Duration,
        /// The end of the server's log.
        log: String,
    },
    /// A call to the operating system failed.
    #[error("{what}")]
    System {
        what: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl Launch {
    /// Starts the server and waits only until it logs its address.
    pub fn spawn(&self) -> Result<Server, ProcessError> {
        let log = File::options().create(true).append(true).open(&self.log_path);
        let log = log.map_err(system("opening the log file"))?;
        let log_start = log.metadata().map_err(system("reading the log file"))?.len();
        let errors = log.try_clone().map_err(system("opening the log file"))?;
        let child = clock::moved(&mut Command::new(&self.program))
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|source| ProcessError::Spawn { program: self.program.clone(), source })?;
        let (name, address, log_path) = (self.name, self.address, self.log_path.clone());
        let mut server = Server { name, child, address, log_path };
        if address.port() == 0 {
            server.wait_address(log_start)?;
        }
        Ok(server)
    }

    /// Starts the server and waits until it is ready.
    pub fn start(&self) -> Result<Server, ProcessError> {
        let mut server = self.spawn()?;
        server.wait_ready(self.ready_path)?;
        Ok(server)
    }
}

impl Server {
    /// Waits until the log has the address; a server that ends before keeps port 0.
    fn wait_address(&mut self, log_start: u64) -> Result<(), ProcessError> {
        let pause = Duration::from_millis(1);
        let told = wait::until_every(pause, "its address", READY_TIMEOUT, || {
            let log = std::fs::read(&self.log_path).unwrap_or_default();
            let log = log.get(log_start as usize..).unwrap_or_default();
            let address = address::logged(&String::from_utf8_lossy(log));
            let mut has_ended = || matches!(self.child.try_wait(), Ok(Some(_)));
            match address {
                Some(address) => Some(address),
                None => has_ended().then_some(self.address),
            }
        });
        let (name, log) = (self.name, self.log_end());
        let what = "logging its address";
        self.address =
            told.map_err(|_| ProcessError::TooSlow { name, what, timeout: READY_TIMEOUT, log })?;
        Ok(())
    }

    /// Waits until the page answers 200.
    pub fn wait_ready(&mut self, path: &str) -> Result<(), ProcessError> {
        self.wait_ready_within(path, READY_TIMEOUT, READY_PAUSE)
    }

    /// Waits at most this long until the page answers 200, with this pause between requests.
    pub fn wait_ready_within(
        &mut self,
        path: &str,
        timeout: Duration,
        pause: Duration,
    ) -> Result<(), ProcessError> {
        let client = Client::default();
        let url = format!("{}{path}", self.url());
        let found =
            wait::until_every(pause, "readiness", timeout, || match self.child.try_wait() {
                Ok(Some(status)) => Some(Some(status)),
                _ => client.get(&url).ok().filter(|answer| answer.status == 200).map(|_| None),
            });
        let (name, log) = (self.name, self.log_end());
        match found {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(ProcessError::EndedEarly { name, status, log }),
            Err(_) => Err(ProcessError::TooSlow { name, what: "getting ready", timeout, log }),
        }
    }

    /// Returns the base address, such as `http://127.0.0.1:20001`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the name in error messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the path of the output file.
    pub fn log_path(&self) -> &Path {
        &self.log_path
    }

    /// Returns the whole log so far.
    pub fn log(&self) -> String {
        std::fs::read(&self.log_path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_else(|error| format!("(no log: {error})"))
    }

    /// Returns a metric without labels from `/metrics`, if it exists.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let page = Client::default().get(&format!("{}/metrics", self.url())).ok()?;
        let text = page.text();
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name)?.1.parse().ok()
    }

    /// Returns the usage of the process so far.
    pub fn usage(&self) -> Result<Usage, UsageError> {
        Usage::of(self.process_id())
    }

    /// Returns the anonymous memory in bytes; cheaper than [`Server::usage`].
    pub fn anonymous_memory(&self) -> Result<u64, UsageError> {
        usage::anonymous_memory(self.process_id())
    }

    /// Resets the peak memory to the current memory.
    pub fn reset_peak_memory(&self) -> Result<(), UsageError> {
        usage::reset_peak_memory(self.process_id())
    }

    /// Sends a signal and waits for the end.
    pub fn end_by(mut self, signal: Signal) -> Result<Ending, ProcessError> {
        let start = Instant::now();
        self.signal(signal)?;
        let timeout = END_TIMEOUT;
        let ended = wait::until("the end", timeout, || self.child.try_wait().ok().flatten());
        match ended {
            Ok(status) => Ok(Ending { status, took: start.elapsed() }),
            Err(_) => {
                let (name, log) = (self.name, self.log_end());
                Err(ProcessError::TooSlow { name, what: "ending", timeout, log })
            }
        }
    }

    /// Ends the server as an operator does: SIGTERM.
    pub fn terminate(self) -> Result<Ending, ProcessError> {
        self.end_by(Signal::TERM)
    }

    /// Ends the server as a power cut does, except for data that the kernel still holds: SIGKILL.
    pub fn kill(self) -> Result<Ending, ProcessError> {
        self.end_by(Signal::KILL)
    }

    /// Waits for an end that no signal requested.
    pub fn wait_end(&mut self, timeout: Duration) -> Result<ExitStatus, ProcessError> {
        let ended = wait::until("the end", timeout, || self.child.try_wait().ok().flatten());
        ended.map_err(|_| {
            let (name, log) = (self.name, self.log_end());
            ProcessError::TooSlow { name, what: "ending", timeout, log }
        })
    }

    /// Sends a signal and does not wait.
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        let pid = i32::try_from(self.process_id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the process id is not a number"));
        pid.and_then(|pid| kill_process(pid, signal).map_err(io::Error::from))
            .map_err(system("sending a signal"))
    }

    fn log_end(&self) -> String {
        let log = self.log();
        let start = log.ceil_char_boundary(log.len().saturating_sub(LOG_QUOTE_BYTES_MAX));
        log[start..].to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            upstream_race::note_log(&self.log());
        }
        // A panicking test must not leave a server behind, which may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> ProcessError {
    move |source| ProcessError::System { what, source }
}
