//! Starts tidepool as a user would: the binary, a data directory, flags.
//!
//! The binary is the one that `TIDEPOOL_BIN` names, else the one that cargo built. [`Config`]
//! starts any number of servers one after the other on one data directory; [`Store`] is one server
//! on a directory of its own, for tests that need no more.

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
/// Has it write a log that Prometheus reads as well.
pub const PROMETHEUS_RECORDS: &str = "--wal-records=prometheus";
/// How errors call it.
pub const NAME: &str = "tidepool";
/// The page that says whether it is ready.
pub const READY_PATH: &str = "/-/ready";

/// How durable an acknowledged write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalSync {
    /// Synced before the answer.
    Always,
    /// Synced now and then.
    Interval,
    /// Left to the operating system.
    Off,
    /// Gathered in memory, written and synced now and then.
    Batch,
}

/// What to start on a data directory, which outlives the server.
#[derive(Clone, Debug)]
pub struct Config {
    data_dir: PathBuf,
    log_path: PathBuf,
    flags: Vec<OsString>,
    /// What starts it, with its arguments; nothing, if it is started by itself.
    starter: Vec<OsString>,
    keeps_address: bool,
    has_builtin_metrics: bool,
}

/// A running server and its directory, which goes with it.
#[derive(Debug)]
pub struct Store {
    /// The server; dropped before its directory.
    pub server: Server,
    /// What it was started from.
    pub config: Config,
    /// Its data and log.
    pub directory: TempDir,
}

/// Why a [`Store`] did not start.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No directory for its data.
    #[error("no temporary directory")]
    Directory(#[from] io::Error),
    /// It did not run.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl Store {
    /// Starts with the defaults.
    pub fn start() -> Result<Store, StoreError> {
        Store::start_with(|config| config)
    }

    /// Starts with other flags.
    pub fn start_with(configure: impl FnOnce(Config) -> Config) -> Result<Store, StoreError> {
        let directory = tempfile::tempdir()?;
        let config = configure(Config::new(directory.path()));
        let server = config.start()?;
        Ok(Store { server, config, directory })
    }

    /// A sender to it.
    pub fn writer(&self) -> Writer {
        Writer::new(&self.server.url())
    }

    /// A reader from it.
    pub fn reader(&self) -> Reader {
        Reader::new(&self.server.url())
    }

    /// A figure of `/metrics` without labels, if it is there.
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

    /// Kills the server, does something meanwhile, and starts another at the same address.
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
    /// The defaults, with the data in `data` and the log in `tidepool.log` of this directory.
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

    /// With the built-in jobs, which are on unless a flag says otherwise. All other tests look at
    /// what they wrote.
    pub fn with_builtin_metrics(self) -> Config {
        Config { has_builtin_metrics: true, ..self }
    }

    /// With a sync policy.
    pub fn wal_sync(self, policy: WalSync) -> Config {
        let word = match policy {
            WalSync::Always => "always",
            WalSync::Interval => "interval",
            WalSync::Off => "off",
            WalSync::Batch => "batch",
        };
        self.flag(&format!("--wal-sync={word}"))
    }

    /// With shorter blocks, such as `10m`, that are not merged.
    pub fn block_duration(self, duration: &str) -> Config {
        self.merged_block_duration(duration).flag(&format!("--max-block-duration={duration}"))
    }

    /// With shorter blocks, such as `10m`, that are merged as far as the retention allows.
    pub fn merged_block_duration(self, duration: &str) -> Config {
        self.flag(&format!("--block-duration={duration}"))
    }

    /// With a log that Prometheus reads as well, for its programs to be started on it.
    pub fn prometheus_records(self) -> Config {
        self.flag(PROMETHEUS_RECORDS)
    }

    /// With the data elsewhere; the log stays where it is.
    pub fn data_in(self, data_dir: &Path) -> Config {
        Config { data_dir: data_dir.to_path_buf(), ..self }
    }

    /// With any flag.
    pub fn flag(mut self, flag: &str) -> Config {
        self.flags.push(flag.into());
        self
    }

    /// Started by a program that executes its last arguments, such as `env`.
    pub fn started_by(mut self, starter: Vec<OsString>) -> Config {
        self.starter = starter;
        self
    }

    /// At an address that stays free while no server runs: for one that comes back there, and for
    /// one that does not log where it listens.
    pub fn keeps_address(self) -> Config {
        Config { keeps_address: true, ..self }
    }

    /// Where the data is.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// What would be started, on any port.
    pub fn launch(&self) -> Result<Launch, ProcessError> {
        Ok(self.launch_at(match self.keeps_address {
            true => free_address()?,
            false => (Ipv4Addr::LOCALHOST, 0).into(),
        }))
    }

    /// What would be started on this address.
    pub fn launch_at(&self, address: SocketAddr) -> Launch {
        let mut arguments: Vec<OsString> = vec!["serve".into(), "--data-dir".into()];
        arguments.push(self.data_dir.clone().into());
        arguments.extend(["--listen".into(), address.to_string().into()]);
        if !self.has_builtin_metrics {
            arguments.extend(["--no-host-metrics".into(), "--no-own-metrics".into()]);
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

    /// Starts it and waits until it is ready.
    pub fn start(&self) -> Result<Server, ProcessError> {
        self.launch()?.start()
    }
}

/// Runs it, with the clock of the tests.
pub fn command() -> Command {
    let mut command = Command::new(binary());
    clock::moved(&mut command);
    command
}

/// The binary under test: the one that `TIDEPOOL_BIN` names, else the one that cargo built beside
/// this program.
///
/// # Panics
///
/// If the latter is older than its sources.
pub fn binary() -> PathBuf {
    std::env::var_os(BINARY_VARIABLE).map_or_else(built::program, PathBuf::from)
}
