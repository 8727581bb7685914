//! `tidepool plugin run`: shows the effect of a plugin on a file of samples, as a diff.
//!
//! ```text
//! - http_requests_total{job="a",pod_uid="7"} 5 1700000000000     went in and did not come out
//! + http_requests_total{job="a"} 5 1700000000000                 came out and did not go in
//! ```
//!
//! A job gets the samples in a temporary store and runs once. Its webhook requests are printed
//! instead of sent.

use super::{Done, PluginArg, block_on};
use crate::cli::progress::{print_line, warn_line};
use crate::config::ConfigSource;
use tidepool_plugins::config::{PluginSettings, World};
use tidepool_plugins::{
    Post, PushRequest, TrialError, TrialPlugin, TrialStore, newest_ms_of, rows,
};
use tidepool_protocol::prom::rows::{Piece, ReceiverClosed, RequestWriter};
use tidepool_protocol::prom::{decompress, decompressed_len};
use tidepool_query::QueryConfig;
use tidepool_store::StoreConfig;

use clap::Args;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tidepool_exposition::Format;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_protocol::text::{ImportOptions, import};
use tidepool_remote_write::Fields;
use tidepool_runtime::RemoteWriteVersion;
use tidepool_telemetry::{self as telemetry, LogFormat};

/// Maximum size of a file of samples, decompressed, in bytes.
const BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    plugin: PluginArg,

    /// For transforms, observers and jobs, samples: a remote-write body (.pb, or .snappy if it is
    /// compressed), OpenMetrics (.om), or else Prometheus' text. For decoders, any body
    #[arg(value_name = "FILE")]
    samples: PathBuf,

    /// For decoders: the content type of the body
    #[arg(long, value_name = "TYPE", default_value = "")]
    content_type: String,

    /// For decoders: what the URL has behind the plugin's name
    #[arg(long, value_name = "PATH", default_value = "")]
    path: String,

    /// For decoders: what the URL has behind the question mark
    #[arg(long, value_name = "QUERY", default_value = "")]
    query: String,

    /// Time of samples that have none, in milliseconds; by default, now
    #[arg(long, value_name = "MS")]
    timestamp: Option<i64>,

    /// For jobs: the time for which it is scheduled, in milliseconds; by default the first minute
    /// that begins after all samples
    #[arg(long, value_name = "MS")]
    scheduled: Option<i64>,
}

/// Log filter: the output of the plugin, and warnings of all other parts.
const LOGGED: &str = "warn,tidepool_plugins=info";

/// Default schedule of a job; runs are at multiples of it.
const MINUTE_MS: i64 = 60_000;

/// Flags of a job's store: samples of any time are accepted and kept, nothing is synced.
const STORE_FLAGS: [&str; 5] = [
    "--max-future=36500d",
    "--out-of-order-window=36500d",
    "--retention-time=36500d",
    "--head-snapshot=false",
    "--wal-sync=off",
];

/// Remote-write bodies with their versions.
type Bodies = Vec<(RemoteWriteVersion, Vec<u8>)>;

pub fn run(args: &RunArgs) -> Done {
    telemetry::init(LogFormat::Text, LOGGED);
    let path = &args.samples;
    let bytes = std::fs::read(path)
        .map_err(|error| format!("could not read {}: {error}", path.display()))?;
    let (wasm, settings) = (args.plugin.wasm()?, args.plugin.settings()?);
    block_on(async {
        let (before, after, seconds) = args.tried(bytes, &wasm, settings).await?;
        show(&lines(&before)?, &lines(&after)?, seconds);
        Ok(())
    })?
}

impl RunArgs {
    /// Returns the bodies before and after the plugin, and the seconds spent in it.
    async fn tried(
        &self,
        bytes: Vec<u8>,
        wasm: &[u8],
        settings: PluginSettings,
    ) -> Result<(Bodies, Bodies, f64), String> {
        let failed = |error: TrialError| self.plugin.named(&error);
        let component = TrialPlugin::compile(wasm, settings).map_err(failed)?;
        if component.world() == World::Job {
            return self.tried_job(bytes, component).await;
        }
        let trial = component.start(None).await.map_err(failed)?;
        let (before, after) = match trial.world() {
            World::Transform => {
                let before = self.bodies(bytes)?;
                let mut after = Vec::new();
                for (version, body) in &before {
                    after.extend(trial.transform(*version, body.clone()).await.map_err(failed)?);
                }
                (before, after)
            }
            World::Decoder => {
                let decoded = trial.decode(self.push(bytes)).await.map_err(failed)?;
                for reason in &decoded.reasons {
                    warn_line(&format!("refused: {reason}"));
                }
                let body = decoded.body.map(|body| (RemoteWriteVersion::V2, body));
                (Vec::new(), body.into_iter().collect())
            }
            // Only observers get here, and they change nothing.
            World::Observer | World::Job => {
                let before = self.bodies(bytes)?;
                for (version, body) in &before {
                    trial.observe(*version, body).await.map_err(failed)?;
                }
                (before.clone(), before)
            }
        };
        show_posts(&trial.kept().posts);
        Ok((before, after, trial.seconds()))
    }

    /// Runs a job with the samples in a store. Its appends are added to the bodies after it.
    async fn tried_job(
        &self,
        bytes: Vec<u8>,
        component: TrialPlugin,
    ) -> Result<(Bodies, Bodies, f64), String> {
        let before = self.bodies(bytes)?;
        let scheduled_ms = match self.scheduled {
            Some(scheduled_ms) => scheduled_ms,
            None => after_all(&before)?,
        };
        let store = TrialStore::open(store_config).await.map_err(|error| error.to_string())?;
        let tried = self.run_job(&store, &before, component, scheduled_ms).await;
        // Closed before errors are returned, so that the directory is always removed.
        store.close();
        let (appended, seconds) = tried?;
        let after = before.iter().cloned().chain(appended).collect();
        Ok((before, after, seconds))
    }

    async fn run_job(
        &self,
        store: &TrialStore,
        before: &Bodies,
        component: TrialPlugin,
        scheduled_ms: i64,
    ) -> Result<(Bodies, f64), String> {
        let failed = |error: TrialError| self.plugin.named(&error);
        for (version, body) in before {
            let stored = store.append(*version, body.clone()).await;
            let stored = stored.map_err(|error| format!("the samples: {error}"))?;
            for refusal in stored.refusals {
                warn_line(&format!("refused: {}", refusal.detail));
            }
        }
        let trial = component.start(Some(store.handle())).await.map_err(failed)?;
        warn_line(&format!("runs as scheduled for {scheduled_ms}"));
        let run = trial.run_job(scheduled_ms).await;
        // Posts are printed before a failure is returned, because they help to explain it.
        let kept = trial.kept();
        show_posts(&kept.posts);
        run.map_err(failed)?;
        let appended = kept.appended.into_iter().map(|body| (RemoteWriteVersion::V2, body));
        Ok((appended.collect(), trial.seconds()))
    }

    fn push(&self, bytes: Vec<u8>) -> PushRequest {
        PushRequest {
            content_type: self.content_type.clone(),
            path: self.path.clone(),
            query: self.query.clone(),
            received_ms: self.timestamp.unwrap_or_else(system_now_ms),
            body: bytes.into(),
        }
    }

    /// Reads the file as remote-write bodies. Its extension shows the format.
    fn bodies(&self, bytes: Vec<u8>) -> Result<Bodies, String> {
        let path = self.samples.display();
        let wrong = |error: &dyn std::error::Error| format!("{path}: {error}");
        match self.samples.extension().and_then(|extension| extension.to_str()) {
            Some("snappy") => {
                let length = decompressed_len(&bytes, BYTES_MAX).map_err(|error| wrong(&error))?;
                let mut whole = vec![0; length];
                decompress(&bytes, &mut whole).map_err(|error| wrong(&error))?;
                Ok(vec![(version_of(&whole), whole)])
            }
            Some("pb") => Ok(vec![(version_of(&bytes), bytes)]),
            Some("om") => self.text(&bytes, Format::Openmetrics),
            _ => self.text(&bytes, Format::Prometheus),
        }
    }

    fn text(&self, bytes: &[u8], format: Format) -> Result<Bodies, String> {
        let timestamp_ms = self.timestamp.unwrap_or_else(system_now_ms);
        let options = ImportOptions { timestamp_ms, extra_labels: Vec::new() };
        let mut bodies = Vec::new();
        let mut writer = RequestWriter::new(|piece: Piece| {
            bodies.push((piece.version, piece.body));
            Ok(())
        });
        let gone = |gone: ReceiverClosed| gone.to_string();
        let imported = import(bytes, format, &options, &mut writer).map_err(gone)?;
        writer.finish().map_err(gone)?;
        drop(writer);
        match imported.refused {
            0 => Ok(bodies),
            _ => {
                let path = self.samples.display();
                Err(format!("{path} has wrong lines:\n{}", imported.errors.join("\n")))
            }
        }
    }
}

/// Returns the configuration of a job's store and its queries.
fn store_config(directory: &Path) -> Result<(StoreConfig, QueryConfig), String> {
    let mut data_dir = OsString::from("--data-dir=");
    data_dir.push(directory);
    let flags = STORE_FLAGS.map(OsString::from);
    let arguments = [OsString::from("tidepool"), data_dir].into_iter().chain(flags);
    let (config, _) = ConfigSource::new(arguments).serve().map_err(|error| error.to_string())?;
    Ok((config.store, config.queries))
}

/// Returns the version of a request: 2.0 has none of the field numbers of 1.0.
fn version_of(body: &[u8]) -> RemoteWriteVersion {
    let is_v1 = |number| matches!(number, 1 | 3);
    match Fields::new(body).map_while(Result::ok).any(|(number, _)| is_v1(number)) {
        true => RemoteWriteVersion::V1,
        false => RemoteWriteVersion::V2,
    }
}

/// Returns the start of the first minute that begins after all samples.
fn after_all(bodies: &Bodies) -> Result<i64, String> {
    let mut newest_ms = None;
    for (version, body) in bodies {
        let newest = newest_ms_of(*version, body).map_err(|error| error.to_string())?;
        newest_ms = newest_ms.max(newest);
    }
    let newest_ms = newest_ms.unwrap_or_else(system_now_ms);
    Ok(newest_ms.div_euclid(MINUTE_MS).saturating_add(1).saturating_mul(MINUTE_MS))
}

fn show_posts(posts: &[Post]) {
    for Post { url, content_type, body } in posts {
        let body = String::from_utf8_lossy(body);
        print_line(&format!("> POST {url} ({content_type})\n> {body}"));
    }
}

fn lines(bodies: &Bodies) -> Result<Vec<String>, String> {
    let rows = bodies.iter().map(|(version, body)| rows(*version, body));
    let rows: Result<Vec<Vec<String>>, _> = rows.collect();
    rows.map(|rows| rows.concat()).map_err(|error| error.to_string())
}

/// Prints removed and added rows, sorted by their texts, and then their numbers.
fn show(before: &[String], after: &[String], seconds: f64) {
    // Counts per text, because a row may occur several times.
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    before.iter().for_each(|line| counts.entry(line).or_default().0 += 1);
    after.iter().for_each(|line| counts.entry(line).or_default().1 += 1);
    let (mut gone, mut new, mut same) = (0, 0, 0);
    for (line, (before, after)) in counts {
        (before.min(after)..before).for_each(|_| print_line(&format!("- {line}")));
        (before.min(after)..after).for_each(|_| print_line(&format!("+ {line}")));
        gone += before.saturating_sub(after);
        new += after.saturating_sub(before);
        same += before.min(after);
    }
    warn_line(&format!(
        "{gone} rows gone, {new} new, {same} as they were; {seconds:.6} s in the plugin"
    ));
}
