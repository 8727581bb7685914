//! `tidepool plugin run`: what a plugin makes of a file, as a diff.
//!
//! ```text
//! - http_requests_total{job="a",pod_uid="7"} 5 1700000000000     went in and did not come out
//! + http_requests_total{job="a"} 5 1700000000000                 came out and did not go in
//! ```

use super::{Done, PluginArg, block_on};
use crate::plugin::config::World;
use crate::plugin::{PushRequest, Trial, TrialError, rows};
use crate::prom::fields::Fields;
use crate::prom::rows::{Gone, Piece, RequestWriter};
use crate::prom::{decompress, decompressed_len};
use crate::store::system_now_ms;
use crate::telemetry::{self, LogFormat};
use crate::text::{ImportOptions, TextFormat, import};
use crate::wasm::RemoteWriteVersion;
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Largest file of samples, decompressed.
const BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    plugin: PluginArg,

    /// For transforms and observers, samples: a remote-write body (.pb, or .snappy if it is
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
}

/// Remote-write bodies.
type Bodies = Vec<(RemoteWriteVersion, Vec<u8>)>;

pub fn run(args: &RunArgs) -> Done {
    telemetry::init(LogFormat::Text, "info");
    let path = &args.samples;
    let bytes = std::fs::read(path)
        .map_err(|error| format!("could not read {}: {error}", path.display()))?;
    let (wasm, settings) = (args.plugin.wasm()?, args.plugin.settings()?);
    block_on(async {
        let trial = Trial::start(&wasm, settings).await;
        let trial = trial.map_err(|error| args.plugin.named(&error))?;
        let failed = |error: TrialError| args.plugin.named(&error);
        let (before, after) = match trial.world() {
            World::Transform => {
                let before = args.bodies(bytes)?;
                let mut after = Vec::new();
                for (version, body) in &before {
                    after.extend(trial.transform(*version, body.clone()).await.map_err(failed)?);
                }
                (before, after)
            }
            World::Decoder => {
                let decoded = trial.decode(args.push(bytes)).await.map_err(failed)?;
                for reason in &decoded.reasons {
                    eprintln!("refused: {reason}");
                }
                let body = decoded.body.map(|body| (RemoteWriteVersion::V2, body));
                (Vec::new(), body.into_iter().collect())
            }
            World::Observer => {
                let before = args.bodies(bytes)?;
                for (version, body) in &before {
                    trial.observe(*version, body).await.map_err(failed)?;
                }
                (before.clone(), before)
            }
            World::Job => {
                return Err("a job works on a store: start tidepool with --plugins".to_owned());
            }
        };
        show(&lines(&before)?, &lines(&after)?, trial.seconds());
        Ok(())
    })?
}

impl RunArgs {
    fn push(&self, bytes: Vec<u8>) -> PushRequest {
        PushRequest {
            content_type: self.content_type.clone(),
            path: self.path.clone(),
            query: self.query.clone(),
            received_ms: self.timestamp.unwrap_or_else(system_now_ms),
            body: bytes.into(),
        }
    }

    /// The file as remote-write bodies.
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
            Some("om") => self.text(&bytes, TextFormat::Openmetrics),
            _ => self.text(&bytes, TextFormat::Prometheus),
        }
    }

    fn text(&self, bytes: &[u8], format: TextFormat) -> Result<Bodies, String> {
        let timestamp_ms = self.timestamp.unwrap_or_else(system_now_ms);
        let options = ImportOptions { timestamp_ms, extra_labels: Vec::new() };
        let mut bodies = Vec::new();
        let mut writer = RequestWriter::new(|piece: Piece| {
            bodies.push((piece.version, piece.body));
            Ok(())
        });
        let gone = |gone: Gone| gone.to_string();
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

/// A 2.0 request has none of the fields of a 1.0 request.
fn version_of(body: &[u8]) -> RemoteWriteVersion {
    let is_v1 = |number| matches!(number, 1 | 3);
    match Fields::new(body).map_while(Result::ok).any(|(number, _)| is_v1(number)) {
        true => RemoteWriteVersion::V1,
        false => RemoteWriteVersion::V2,
    }
}

fn lines(bodies: &Bodies) -> Result<Vec<String>, String> {
    let rows = bodies.iter().map(|(version, body)| rows(*version, body));
    let rows: Result<Vec<Vec<String>>, _> = rows.collect();
    rows.map(|rows| rows.concat()).map_err(|error| error.to_string())
}

/// Prints what went and what came, in order of the text, and then how much stayed.
fn show(before: &[String], after: &[String], seconds: f64) {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    before.iter().for_each(|line| counts.entry(line).or_default().0 += 1);
    after.iter().for_each(|line| counts.entry(line).or_default().1 += 1);
    let (mut gone, mut new, mut same) = (0, 0, 0);
    for (line, (before, after)) in counts {
        (before.min(after)..before).for_each(|_| println!("- {line}"));
        (before.min(after)..after).for_each(|_| println!("+ {line}"));
        gone += before.saturating_sub(after);
        new += after.saturating_sub(before);
        same += before.min(after);
    }
    eprintln!("{gone} rows gone, {new} new, {same} as they were; {seconds:.6} s in the plugin");
}
