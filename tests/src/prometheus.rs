//! Starts a real Prometheus with a configuration of its own, and queries it.

use crate::http::{Client, HttpError};
use crate::peers::{MissingPeer, Release};
use crate::process::{Launch, ProcessError, Server, free_address};
use crate::remote_write::Version;
use crate::{remote_read, remote_write};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Name of the older release in errors.
pub const NAME_V2: &str = "Prometheus 2.x";
/// Name of the newer release in errors.
pub const NAME_V3: &str = "Prometheus 3.x";

/// Flag that sets the data directory.
const SERVER_PATH: &str = "--storage.tsdb.path=";
const AGENT_PATH: &str = "--storage.agent.path=";

/// Settings of a Prometheus with data, log and configuration in one directory.
#[derive(Clone, Debug)]
pub struct Config {
    release: Release,
    directory: PathBuf,
    address: SocketAddr,
    scrape: String,
    otlp: String,
    remote_write: String,
    remote_read: String,
    external_labels: String,
    rules: String,
    storage: String,
    is_agent: bool,
    flags: Vec<OsString>,
}

/// Reason why Prometheus did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Missing(#[from] MissingPeer),
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Its configuration could not be written.
    #[error("its configuration could not be written")]
    Configuration(#[from] io::Error),
}

/// Reason why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error("the query got no answer")]
    Http(#[from] HttpError),
    /// The answer is an error, has another shape, or carries a warning: for Prometheus, a failed
    /// remote read is only a warning.
    #[error("the query was answered with {answer}")]
    Answer {
        /// Body of the answer as text.
        answer: String,
    },
}

/// The answer to an instant query: a series' labels (as JSON text) and its value, as Prometheus
/// prints it.
pub type Vector = BTreeMap<String, String>;

impl Config {
    /// Starts without scrapes and remote writes.
    pub fn new(release: Release, directory: &Path) -> Result<Config, StartError> {
        std::fs::create_dir_all(directory)?;
        Ok(Config {
            release,
            directory: directory.to_path_buf(),
            address: free_address()?,
            scrape: String::new(),
            otlp: String::new(),
            remote_write: String::new(),
            remote_read: String::new(),
            external_labels: String::new(),
            rules: String::new(),
            storage: String::new(),
            is_agent: false,
            flags: Vec::new(),
        })
    }

    /// Returns the address on which it will listen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the directory of its blocks and write-ahead log.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Scrapes a target every second.
    pub fn scrape(mut self, job: &str, target: SocketAddr) -> Config {
        // Writing to a string does not fail, here and below.
        let _ = write!(
            self.scrape,
            "\n  - job_name: {job}\n    static_configs:\n      - targets: ['{target}']"
        );
        self
    }

    /// Scrapes a target with `honor_labels` and `honor_timestamps`.
    pub fn scrape_honestly(mut self, job: &str, target: SocketAddr) -> Config {
        self = self.scrape(job, target);
        self.scrape += "\n    honor_labels: true\n    honor_timestamps: true";
        self
    }

    /// Accepts OTLP, with these lines of configuration.
    pub fn otlp(mut self, lines: &str) -> Config {
        self.otlp = lines.to_string();
        self.flag("--web.enable-otlp-receiver")
    }

    /// Writes to the server at this base address; 1.0 sends metadata every five seconds.
    pub fn remote_write(mut self, base_url: &str, version: Version) -> Config {
        let path = remote_write::PATH;
        let _ = write!(self.remote_write, "\n  - url: {base_url}{path}");
        if version == Version::V2 {
            let message = "io.prometheus.write.v2.Request";
            let _ = write!(self.remote_write, "\n    protobuf_message: {message}");
        } else {
            // The default interval is one minute.
            let _ = write!(self.remote_write, "\n    metadata_config:\n      send_interval: 5s");
        }
        self
    }

    /// Reads from the server at this base address, even data that its own storage could have.
    pub fn remote_read(mut self, base_url: &str) -> Config {
        let path = remote_read::PATH;
        let _ = write!(
            self.remote_read,
            "\n  - url: {base_url}{path}\n    read_recent: true\n    remote_timeout: 30s"
        );
        self
    }

    /// Adds lines of YAML to the remote write added last, such as credentials.
    pub fn remote_write_with(mut self, base_url: &str, version: Version, lines: &str) -> Config {
        self = self.remote_write(base_url, version);
        self.remote_write += lines;
        self
    }

    /// Adds lines of YAML to the remote read added last.
    pub fn remote_read_with(mut self, base_url: &str, lines: &str) -> Config {
        self = self.remote_read(base_url);
        self.remote_read += lines;
        self
    }

    /// Adds external labels, which distinguish this server from others.
    pub fn external_labels(mut self, labels: &[(&str, &str)]) -> Config {
        for (name, value) in labels {
            let _ = write!(self.external_labels, "\n    {name}: {value:?}");
        }
        self
    }

    /// Evaluates the rules of a file.
    pub fn rule_file(mut self, path: &Path) -> Config {
        let _ = write!(self.rules, "\n  - {:?}", path.display().to_string());
        self
    }

    /// Accepts out-of-order samples up to this far, such as `2h`, behind the newest.
    pub fn out_of_order_window(mut self, window: &str) -> Config {
        self.storage = format!("\n  tsdb:\n    out_of_order_time_window: {window}");
        self
    }

    /// Accepts remote writes of other servers.
    pub fn receiver(self) -> Config {
        self.flag("--web.enable-remote-write-receiver")
    }

    /// Runs as an agent, which only scrapes and writes elsewhere: no queries, no blocks.
    pub fn agent(mut self) -> Config {
        self.is_agent = true;
        match self.release {
            Release::V2 => self.flag("--enable-feature=agent"),
            Release::V3 => self.flag("--agent"),
        }
    }

    pub fn flag(mut self, flag: &str) -> Config {
        self.flags.push(flag.into());
        self
    }

    pub fn start(&self) -> Result<Server, StartError> {
        Ok(self.launch()?.start()?)
    }

    /// Returns the launch, after writing the configuration.
    pub fn launch(&self) -> Result<Launch, StartError> {
        let file = self.directory.join("prometheus.yml");
        std::fs::write(&file, self.yaml())?;
        let mut arguments: Vec<OsString> = vec![
            joined("--config.file=", &file),
            joined(if self.is_agent { AGENT_PATH } else { SERVER_PATH }, &self.data_dir()),
            format!("--web.listen-address={}", self.address).into(),
        ];
        arguments.extend(self.flags.iter().cloned());
        Ok(Launch {
            name: match self.release {
                Release::V2 => NAME_V2,
                Release::V3 => NAME_V3,
            },
            program: self.release.prometheus()?,
            arguments,
            address: self.address,
            ready_path: "/-/ready",
            log_path: self.directory.join("prometheus.log"),
        })
    }

    fn yaml(&self) -> String {
        let mut yaml = "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\n".to_string();
        if !self.external_labels.is_empty() {
            let _ = writeln!(yaml, "  external_labels:{}", self.external_labels);
        }
        for (key, list) in [
            ("rule_files", &self.rules),
            ("scrape_configs", &self.scrape),
            ("remote_write", &self.remote_write),
            ("remote_read", &self.remote_read),
            ("storage", &self.storage),
            ("otlp", &self.otlp),
        ] {
            if !list.is_empty() {
                let _ = writeln!(yaml, "{key}:{list}");
            }
        }
        yaml
    }
}

/// The answer to an instant query whose series may be histograms: labels and value as JSON text.
pub type Answer = BTreeMap<String, String>;

/// Sends an instant query in PromQL, whose answer has floats.
pub fn query(server: &Server, promql: &str, time_ms: i64) -> Result<Vector, QueryError> {
    let body = ask(server, promql, time_ms)?;
    let pair = |series: &Value| Some(series["value"][1].as_str()?.to_string());
    vector(&body, pair).ok_or_else(|| answer_error(&body))
}

/// Sends an instant query in PromQL, whose answer may have histograms. Warnings, which histograms
/// may cause, are part of the answer.
pub fn values(server: &Server, promql: &str, time_ms: i64) -> Result<Answer, QueryError> {
    let body = ask(server, promql, time_ms)?;
    let pair = |series: &Value| {
        Some([&series["value"][1], &series["histogram"][1]].map(Value::to_string).concat())
    };
    let mut answer: Value = serde_json::from_slice(&body).map_err(|_| answer_error(&body))?;
    let mut notes = BTreeMap::new();
    for kind in ["warnings", "infos"] {
        let list = answer[kind].take();
        let texts = list.as_array().into_iter().flatten().map(Value::to_string);
        let mut texts: Vec<String> = texts.collect();
        texts.sort();
        notes.insert(kind.to_string(), texts.concat());
    }
    let values = vector(answer.to_string().as_bytes(), pair).ok_or_else(|| answer_error(&body))?;
    notes.extend(values);
    Ok(notes)
}

fn answer_error(body: &[u8]) -> QueryError {
    QueryError::Answer { answer: String::from_utf8_lossy(body).into_owned() }
}

fn ask(server: &Server, promql: &str, time_ms: i64) -> Result<Vec<u8>, HttpError> {
    let url = format!("{}/api/v1/query", server.url());
    let time = format!("{}.{:03}", time_ms.div_euclid(1000), time_ms.rem_euclid(1000));
    let form = format!("query={}&time={time}", percent_encode(promql));
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    Ok(Client::default().post(&url, &headers, form.as_bytes())?.body)
}

fn vector(body: &[u8], value: impl Fn(&Value) -> Option<String>) -> Option<Vector> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let clean = answer["status"] == "success" && answer["warnings"].is_null();
    let result = answer["data"]["result"].as_array().filter(|_| clean)?;
    let pair = |series: &Value| Some((series["metric"].to_string(), value(series)?));
    result.iter().map(pair).collect()
}

/// Encodes a text as the value of a parameter.
pub fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn joined(flag: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(flag);
    argument.push(path);
    argument
}
