//! Starts Thanos' components on a bucket that is a directory, and queries them.

use crate::http::Client;
use crate::peers::{MissingPeer, built};
use crate::process::{Launch, ProcessError, Server, free_address};
use crate::prometheus::percent_encode;
use crate::promtool::Output;
use crate::series::{Labels, Sample, Series};
use serde_json::Value;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A bucket, and a directory for the components' own files.
#[derive(Clone, Debug)]
pub struct Thanos {
    directory: PathBuf,
    config: PathBuf,
}

/// A running component with the address of its gRPC server.
#[derive(Debug)]
pub struct Component {
    pub server: Server,
    pub grpc: SocketAddr,
}

/// Reason why a component returned no result.
#[derive(Debug, thiserror::Error)]
pub enum ThanosError {
    #[error(transparent)]
    Missing(#[from] MissingPeer),
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// It could not be run, or its files could not be written.
    #[error("Thanos did not run")]
    Run(#[from] io::Error),
}

impl Thanos {
    /// Prepares components whose bucket is the directory `bucket`.
    pub fn new(directory: &Path, bucket: &Path) -> Result<Thanos, ThanosError> {
        std::fs::create_dir_all(directory)?;
        let config = directory.join("bucket.yml");
        let yaml = format!("type: FILESYSTEM\nconfig:\n  directory: {}\n", bucket.display());
        std::fs::write(&config, yaml)?;
        Ok(Thanos { directory: directory.to_path_buf(), config })
    }

    /// Starts the store gateway, which serves the blocks of the bucket.
    pub fn store(&self) -> Result<Component, ThanosError> {
        let data = self.directory.join("store");
        let arguments =
            [flag("--data-dir", &data), self.bucket(), "--sync-block-duration=1s".into()];
        self.component("thanos store", "store", arguments)
    }

    /// Starts the sidecar of a server, which serves its samples and uploads its blocks.
    pub fn sidecar(&self, url: &str, data_dir: &Path) -> Result<Component, ThanosError> {
        let url = format!("--prometheus.url={url}").into();
        let arguments = [url, flag("--tsdb.path", data_dir), self.bucket()];
        self.component("thanos sidecar", "sidecar", arguments)
    }

    /// Starts the querier over these components.
    pub fn query(&self, components: &[&Component]) -> Result<Component, ThanosError> {
        let endpoint = |component: &&Component| format!("--endpoint={}", component.grpc).into();
        self.component("thanos query", "query", components.iter().map(endpoint))
    }

    /// Compacts the bucket once, and ends.
    pub fn compact(&self, more: &[&str]) -> Result<Output, ThanosError> {
        let data = self.directory.join("compact");
        let address = free_address()?;
        let mut arguments: Vec<OsString> = vec![
            "compact".into(),
            flag("--data-dir", &data),
            self.bucket(),
            "--consistency-delay=0s".into(),
            "--delete-delay=0s".into(),
            format!("--http-address={address}").into(),
        ];
        arguments.extend(more.iter().map(OsString::from));
        run(arguments)
    }

    /// Runs `thanos tools bucket COMMAND …` and returns its output.
    pub fn tool(&self, command: &str, more: &[&str]) -> Result<Output, ThanosError> {
        let mut arguments: Vec<OsString> =
            vec!["tools".into(), "bucket".into(), command.into(), self.bucket()];
        arguments.extend(more.iter().map(OsString::from));
        run(arguments)
    }

    fn bucket(&self) -> OsString {
        flag("--objstore.config-file", &self.config)
    }

    fn component(
        &self,
        name: &'static str,
        command: &str,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Component, ThanosError> {
        let (address, grpc) = (free_address()?, free_address()?);
        let mut all: Vec<OsString> = vec![
            command.into(),
            format!("--http-address={address}").into(),
            format!("--grpc-address={grpc}").into(),
        ];
        all.extend(arguments);
        let launch = Launch {
            name,
            program: built("thanos")?,
            arguments: all,
            address,
            ready_path: "/-/ready",
            log_path: self.directory.join(format!("{command}.log")),
        };
        Ok(Component { server: launch.start()?, grpc })
    }
}

impl Component {
    /// Returns all samples that a querier finds for a selector in the hours before `end_ms`, in
    /// label order, without stale markers, which PromQL leaves out.
    pub fn samples(&self, selector: &str, end_ms: i64, hours: u32) -> Result<Vec<Series>, String> {
        let promql = percent_encode(&format!("{selector}[{hours}h]"));
        let time = format!("{}.{:03}", end_ms.div_euclid(1000), end_ms.rem_euclid(1000));
        let url = format!(
            "{}/api/v1/query?query={promql}&time={time}&dedup=false&partial_response=false",
            self.server.url()
        );
        let answer = Client::default().get(&url).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let body: Value = serde_json::from_str(&text).map_err(|_| text.clone())?;
        let result = body["data"]["result"].as_array().filter(|_| answer.status == 200);
        let series = result.ok_or_else(|| text.clone())?.iter().map(series);
        let mut series: Vec<Series> = series.collect::<Option<_>>().ok_or(text)?;
        series.sort_by(|a, b| a.labels.cmp(&b.labels));
        Ok(series)
    }
}

fn series(answer: &Value) -> Option<Series> {
    let labels = answer["metric"].as_object()?.iter();
    let labels = labels.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let sample = |pair: &Value| {
        let timestamp_ms = (pair[0].as_f64()? * 1000.0).round() as i64;
        Some(Sample { timestamp_ms, value: pair[1].as_str()?.parse().ok()? })
    };
    let samples = answer["values"].as_array()?.iter().map(sample);
    Some(Series {
        labels: Labels::from_pairs(labels.collect::<Option<Vec<_>>>()?),
        samples: samples.collect::<Option<_>>()?,
    })
}

fn run(arguments: Vec<OsString>) -> Result<Output, ThanosError> {
    Ok(Command::new(built("thanos")?).args(arguments).output()?.into())
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push("=");
    flag.push(path);
    flag
}
