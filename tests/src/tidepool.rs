//! Starts tidepool as a user does: the binary, a data directory, flags.
//!
//! `TIDEPOOL_BIN` names the binary; by default it is the one that cargo built. [`Config`] starts
//! any number of servers one after the other on one data directory; [`Store`] is one server on a
//! directory of its own, for tests that need no more.

use crate::built;
use crate::clock;
use crate::process::{Ending, Launch, ProcessError, Server, free_address};
use crate::remote_read::Reader;
use crate::remote_write::Writer;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The variable that names another binary.
pub const BINARY_VARIABLE: &str = "TIDEPOOL_BIN";
/// Makes tidepool write a log that Prometheus reads as well.
pub const PROMETHEUS_RECORDS: &str = "--wal-records=prometheus";
/// Name of the server in error messages.
pub const NAME: &str = "tidepool";
/// The page that reports whether the server is ready.
pub const READY_PATH: &str = "/-/ready";

/// Sync policy of acknowledged writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalSync {
    /// Synced before the response is sent.
    Always,
    /// Synced at intervals after the response.
    Interval,
    /// Left to the operating system.
    Off,
    /// Gathered in memory, then written and synced at intervals.
    Batch,
}

/// Settings of servers on one data directory, which outlives them.
#[derive(Clone, Debug)]
pub struct Config {
    data_dir: PathBuf,
    log_path: PathBuf,
    flags: Vec<OsString>,
    /// Program that starts the server, with its arguments; empty to start the server itself.
    starter: Vec<OsString>,
    keeps_address: bool,
    has_builtin_metrics: bool,
}

/// A running server and its directory, which is removed with it.
#[derive(Debug)]
pub struct Store {
    /// The server; dropped before its directory.
    pub server: Server,
    /// Settings with which the server was started.
    pub config: Config,
    /// Directory of data and log.
    pub directory: TempDir,
}

/// Reason why a [`Store`] did not start.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory for its data could not be made.
    #[error("no temporary directory")]
    Directory(#[from] io::Error),
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl Store {
    pub fn start() -> Result<Store, StoreError> {
        Store::start_with(|config| config)
    }

    /// Starts a server with further flags.
    pub fn start_with(configure: impl FnOnce(Config) -> Config) -> Result<Store, StoreError> {
        let directory = tempfile::tempdir()?;
        let config = configure(Config::new(directory.path()));
        let server = config.start()?;
        Ok(Store { server, config, directory })
    }

    /// Returns a sender to the server.
    pub fn writer(&self) -> Writer {
        Writer::new(&self.server.url())
    }

    /// Returns a reader from the server.
    pub fn reader(&self) -> Reader {
        Reader::new(&self.server.url())
    }

    /// Returns a metric without labels from `/metrics`, if it exists.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.server.metric(name)
    }

    /// Ends the server by a function such as [`Server::kill`] and starts another on its data.
    pub fn restart(
        self,
        end: impl FnOnce(Server) -> Result<Ending, ProcessError>,
    ) -> Result<Store, StoreError> {
        let Store { server, config, directory } = self;
        end(server)?;
        let server = config.start()?;
        Ok(Store { server, config, directory })
    }

    /// Kills the server, calls a function, and starts another server at the same address.
    ///
    /// # Panics
    ///
    /// If it was not started with [`Config::keeps_address`]: another program might take its port.
    pub fn outage<T>(self, meanwhile: impl FnOnce() -> T) -> Result<(Store, T), StoreError> {
        assert!(self.config.keeps_address, "a server that comes back needs an address to keep");
        let launch = self.config.launch_at(self.server.address());
        let Store { server, config, directory } = self;
        server.kill()?;
        let done = meanwhile();
        let server = launch.start()?;
        Ok((Store { server, config, directory }, done))
    }
}

impl Config {
    /// Returns the defaults, with the data in `data` and the log in `tidepool.log` of this
    /// directory.
    pub fn new(directory: &Path) -> Config {
        Config {
            data_dir: directory.join("data"),
            log_path: directory.join("tidepool.log"),
            flags: Vec::new(),
            starter: Vec::new(),
            keeps_address: false,
            has_builtin_metrics: false,
        }
    }

    /// Enables the built-in jobs, which are on by default in tidepool. All other tests check only
    /// the samples they wrote.
    pub fn with_builtin_metrics(self) -> Config {
        Config { has_builtin_metrics: true, ..self }
    }

    /// Sets the sync policy of the WAL.
    pub fn wal_sync(self, policy: WalSync) -> Config {
        let word = match policy {
            WalSync::Always => "always",
            WalSync::Interval => "interval",
            WalSync::Off => "off",
            WalSync::Batch => "batch",
        };
        self.flag(&format!("--wal-sync={word}"))
    }

    /// Sets shorter blocks, such as `10m`, that are not merged.
    pub fn block_duration(self, duration: &str) -> Config {
        self.merged_block_duration(duration).flag(&format!("--max-block-duration={duration}"))
    }

    /// Sets shorter blocks, such as `10m`, that are merged as far as the retention allows.
    pub fn merged_block_duration(self, duration: &str) -> Config {
        self.flag(&format!("--block-duration={duration}"))
    }

    /// Makes tidepool write a log that Prometheus reads as well, for its programs to be started on.
    pub fn prometheus_records(self) -> Config {
        self.flag(PROMETHEUS_RECORDS)
    }

    /// Moves the data to another directory; the log stays.
    pub fn data_in(self, data_dir: &Path) -> Config {
        Config { data_dir: data_dir.to_path_buf(), ..self }
    }

    pub fn flag(mut self, flag: &str) -> Config {
        self.flags.push(flag.into());
        self
    }

    /// Starts the server by a program that executes its last arguments, such as `env`.
    pub fn started_by(mut self, starter: Vec<OsString>) -> Config {
        self.starter = starter;
        self
    }

    /// Uses an address that stays free while no server runs: for a server that returns there, or
    /// that does not log its address.
    pub fn keeps_address(self) -> Config {
        Config { keeps_address: true, ..self }
    }

    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Returns the launch of a server on any port.
    pub fn launch(&self) -> Result<Launch, ProcessError> {
        Ok(self.launch_at(match self.keeps_address {
            true => free_address()?,
            false => (Ipv4Addr::LOCALHOST, 0).into(),
        }))
    }

    /// Returns the launch of a server on this address.
    pub fn launch_at(&self, address: SocketAddr) -> Launch {
        let mut arguments: Vec<OsString> = vec!["serve".into(), "--data-dir".into()];
        arguments.push(self.data_dir.clone().into());
        arguments.extend(["--listen".into(), address.to_string().into()]);
        if !self.has_builtin_metrics {
            arguments.extend(["--no-host-metrics".into(), "--no-own-metrics".into()]);
            arguments.push("--no-default-rules".into());
        }
        arguments.extend(self.flags.iter().cloned());
        let mut program = binary();
        if let Some((starter, rest)) = self.starter.split_first() {
            let before = rest.iter().cloned().chain([program.into()]);
            arguments.splice(..0, before);
            program = starter.into();
        }
        Launch {
            name: NAME,
            program,
            arguments,
            address,
            ready_path: READY_PATH,
            log_path: self.log_path.clone(),
        }
    }

    /// Starts a server and waits until it is ready.
    pub fn start(&self) -> Result<Server, ProcessError> {
        self.launch()?.start()
    }
}

/// Returns a command for the binary, with the clock of the tests.
pub fn command() -> Command {
    let mut command = Command::new(binary());
    clock::moved(&mut command);
    command
}

/// Returns the binary under test: the one that `TIDEPOOL_BIN` names, else the one that cargo built
/// beside this program.
///
/// # Panics
///
/// If the latter is older than its sources.
/// If the latter is older than its sources.
pub fn binary() -> PathBuf {
    std::env::var_os(BINARY_VARIABLE).map_or_else(built::program, PathBuf::from)
}
