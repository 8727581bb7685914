//! Starts a real Alertmanager that notifies a webhook of the test, and runs amtool.

use crate::http::{Client, HttpError};
use crate::peers::{MissingPeer, built};
use crate::process::{Launch, ProcessError, Server, free_address};
use crate::promtool::Output;
use serde_json::Value;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NAME: &str = "alertmanager";
const AMTOOL: &str = "amtool";

/// Settings of an Alertmanager with data, log and configuration in one directory.
#[derive(Clone, Debug)]
pub struct Config {
    directory: PathBuf,
    address: SocketAddr,
    webhook: String,
}

/// Reason why Alertmanager or amtool returned no result.
#[derive(Debug, thiserror::Error)]
pub enum AlertmanagerError {
    #[error(transparent)]
    Missing(#[from] MissingPeer),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("its API gave no answer")]
    Http(#[from] HttpError),
    #[error("its API did not answer with JSON")]
    Answer(#[from] serde_json::Error),
    /// amtool could not be run, or the configuration could not be written.
    #[error("it did not run")]
    Run(#[from] io::Error),
}

impl Config {
    /// Prepares an Alertmanager on a free address that notifies this URL.
    pub fn new(directory: &Path, webhook: &str) -> Result<Config, AlertmanagerError> {
        std::fs::create_dir_all(directory)?;
        let (directory, address) = (directory.to_path_buf(), free_address()?);
        Ok(Config { directory, address, webhook: webhook.to_owned() })
    }

    /// Returns the same settings with other data, as of a new Alertmanager at the same address.
    pub fn in_directory(self, directory: &Path) -> Result<Config, AlertmanagerError> {
        std::fs::create_dir_all(directory)?;
        Ok(Config { directory: directory.to_path_buf(), ..self })
    }

    /// Returns the address on which it listens while it runs.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts it, with what it knew before. It groups alerts by their name, waits a second for
    /// others of a group, and then sends news each 100 ms.
    pub fn start(&self) -> Result<Server, AlertmanagerError> {
        let file = self.directory.join("alertmanager.yml");
        std::fs::write(&file, self.yaml())?;
        let launch = Launch {
            name: NAME,
            program: built(NAME)?,
            arguments: vec![
                joined("--config.file=", &file),
                joined("--storage.path=", &self.directory.join("data")),
                format!("--web.listen-address={}", self.address).into(),
                // No cluster: it would look for an address that is not of loopback.
                "--cluster.listen-address=".into(),
            ],
            address: self.address,
            ready_path: "/-/ready",
            log_path: self.directory.join("alertmanager.log"),
        };
        Ok(launch.start()?)
    }

    fn yaml(&self) -> String {
        format!(
            "route:\n  receiver: hook\n  group_by: [alertname]\n  group_wait: 1s\n  \
             group_interval: 100ms\n  repeat_interval: 1h\nreceivers:\n- name: hook\n  \
             webhook_configs:\n  - url: '{}'\n    send_resolved: true\n",
            self.webhook
        )
    }
}

/// Returns the alerts that an Alertmanager shows: those that have not ended.
pub fn alerts(server: &Server) -> Result<Vec<Value>, AlertmanagerError> {
    let answer = Client::default().get(&format!("{}/api/v2/alerts", server.url()))?;
    Ok(serde_json::from_slice(&answer.body)?)
}

/// Runs amtool on the Alertmanager, or what is like one, of this URL. Files of a user do not
/// concern it.
pub fn amtool(url: &str, arguments: &[&str]) -> Result<Output, AlertmanagerError> {
    let mut command = Command::new(built(AMTOOL)?);
    command.arg(format!("--alertmanager.url={url}")).args(arguments);
    // It reads its settings below HOME, prints times of the zone, and calls the user the author.
    command.env_clear().env("HOME", "/").env("TZ", "UTC").env("USER", "tests");
    Ok(command.stdin(Stdio::null()).output()?.into())
}

fn joined(flag: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(flag);
    argument.push(path);
    argument
}
