//! A server process from start to end, on a free loopback port.
//!
//! [`Launch`] says what to start; [`Server`] is the running process: ready when [`Launch::start`]
//! returns, killed when dropped. What it logs goes to a file, which errors quote.

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
/// Pause between two looks at whether it is ready.
const READY_PAUSE: Duration = Duration::from_millis(50);
/// A server that has not ended after this time has failed; the contract for tidepool is 10 s.
pub const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of the log that an error quotes.
const LOG_QUOTE_BYTES_MAX: usize = 4_000;

/// What to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// How errors call it.
    pub name: &'static str,
    /// The binary.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it will listen; of tidepool, which logs it, port 0 for any.
    pub address: SocketAddr,
    /// The page that answers 200 when it is ready.
    pub ready_path: &'static str,
    /// Where its output goes; appended to.
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

/// How a server ended.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// Code or signal.
    pub status: ExitStatus,
    /// From the signal to the end.
    pub took: Duration,
}

/// Why a server did not start or end.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The binary cannot be run.
    #[error("{program} cannot be started; was it built?")]
    Spawn {
        /// The binary.
        program: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// It ended before it was ready.
    #[error("{name} ended with {status} before it was ready; its log ends:\n{log}")]
    EndedEarly {
        /// Which server.
        name: &'static str,
        /// How.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// It runs, but does not get ready, or does not end.
    #[error("{name}: {what} took more than {} s; its log ends:\n{log}", .timeout.as_secs())]
    TooSlow {
        /// Which server.
        name: &'static str,
        /// Getting ready or ending.
        what: &'static str,
        /// How long it was waited for.
        timeout: Duration,
        /// The end of its log.
        log: String,
    },
    /// A call to the operating system failed.
    #[error("{what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What happened.
        source: io::Error,
    },
}

impl Launch {
    /// Starts the server without waiting for more than the address that it listens at.
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
    /// Waits until its log says where it listens; one that ends before keeps port 0.
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

    /// Waits at most so long until the page answers 200, and looks after each such pause.
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

    /// The base of its addresses, such as `http://127.0.0.1:20001`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How errors call it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Where its output goes.
    pub fn log_path(&self) -> &Path {
        &self.log_path
    }

    /// All that it has logged.
    pub fn log(&self) -> String {
        std::fs::read(&self.log_path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_else(|error| format!("(no log: {error})"))
    }

    /// A figure of `/metrics` without labels, if it is there.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let page = Client::default().get(&format!("{}/metrics", self.url())).ok()?;
        let text = page.text();
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name)?.1.parse().ok()
    }

    /// What it has used so far.
    pub fn usage(&self) -> Result<Usage, UsageError> {
        Usage::of(self.process_id())
    }

    /// Its anonymous memory now, in bytes, for those who look often.
    pub fn anonymous_memory(&self) -> Result<u64, UsageError> {
        usage::anonymous_memory(self.process_id())
    }

    /// Sets its peak memory back to what it uses now.
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

    /// Ends it as an operator would: SIGTERM.
    pub fn terminate(self) -> Result<Ending, ProcessError> {
        self.end_by(Signal::TERM)
    }

    /// Ends it as a power cut would, save for what the kernel still holds: SIGKILL.
    pub fn kill(self) -> Result<Ending, ProcessError> {
        self.end_by(Signal::KILL)
    }

    /// Waits for an end that was not asked for.
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
        // A panicking test must not leave a server behind; it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> ProcessError {
    move |source| ProcessError::System { what, source }
}
