//! The servers' data: written once; each query starts from a copy.
//!
//! tidepool takes remote writes and makes two-hour blocks of them; a snapshot adds a block with the
//! rest of its head, up to three hours. tidepool and Prometheus each get a directory with these
//! blocks and nothing else. VictoriaMetrics takes the same requests and merges its parts.

use super::super::contender::Contender;
use super::super::load::{Load, SendError};
use super::super::{BenchError, Context};
use super::data::{self, Source};
use super::measure::{self, Cost};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tidepool_tests::admin::Admin;
use tidepool_tests::process::{Launch, Server};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Shape;
use tidepool_tests::{data_dir, victoria_metrics};

/// Number of series in a request.
const ROWS: usize = 1_000;
/// Number of connections to a server while it is filled.
const CONNECTIONS: usize = 2;
/// Flags while tidepool is filled; blocks are not merged further.
const FILL_FLAGS: [&str; 2] = ["--max-block-duration=2h", "--enable-admin-api"];

/// Directories with the same samples.
pub struct Stores {
    pub samples: u64,
    /// Size of the blocks of tidepool and Prometheus in bytes.
    pub block_bytes: u64,
    /// The time of instant queries, and the end of ranges.
    end_ms: i64,
    directories: Vec<(Contender, Directory)>,
    /// Holds the directory, which is removed when this is dropped.
    _whole: TempDir,
}

struct Directory {
    data_dir: PathBuf,
    launch: Launch,
}

impl Stores {
    /// Writes the series of a shape to the servers of a context.
    pub fn load(context: &Context, shape: Shape) -> Result<Stores, BenchError> {
        let whole = tempfile::tempdir_in(&context.directory)?;
        let of = |contender: Contender| -> Result<(PathBuf, Launch), BenchError> {
            let directory = whole.path().join(contender.to_string().replace(' ', "-"));
            fs::create_dir_all(&directory)?;
            let launch = contender.launch(&directory, &flags_of(context, contender))?;
            Ok((directory.join("data"), launch))
        };
        let filled = whole.path().join("filled");
        fs::create_dir_all(&filled)?;
        let first = Contender::Tidepool.launch(&filled, &FILL_FLAGS.map(str::to_owned))?;
        let blocks_of = first.start()?;
        let victoria = match context.servers.contains(&Contender::VictoriaMetrics) {
            true => Some(of(Contender::VictoriaMetrics)?.1.start()?),
            false => None,
        };
        let samples = send(shape, &blocks_of, victoria.as_ref())?;
        let blocks = snapshot(&blocks_of, &filled.join("data"))?;
        blocks_of.terminate()?;
        if let Some(server) = victoria {
            let time_range_ms = (shape.start_ms, data::end_ms(&shape) - 1);
            Contender::VictoriaMetrics.check(&server, time_range_ms, samples)?;
            victoria_metrics::merge(&server)?;
            server.terminate()?;
        }
        let found = data_dir::blocks(&blocks)?.iter().map(|block| block.samples).sum();
        if found != samples {
            let contender = Contender::Tidepool;
            return Err(BenchError::Incomplete { contender, sent: samples, found });
        }
        let mut directories = Vec::new();
        for &contender in &context.servers {
            let (data_dir, launch) = of(contender)?;
            if contender.is_like_prometheus() {
                for block in data_dir::blocks(&blocks)? {
                    data_dir::copy(&block.path, &data_dir.join(&block.ulid))?;
                }
            }
            directories.push((contender, Directory { data_dir, launch }));
        }
        let block_bytes = data_dir::total_bytes(&blocks);
        fs::remove_dir_all(&filled)?;
        let end_ms = data::end_ms(&shape);
        Ok(Stores { samples, block_bytes, end_ms, directories, _whole: whole })
    }

    /// Starts a server; `None` if it was not loaded.
    pub fn start(&self, contender: Contender) -> Result<Option<Server>, BenchError> {
        let own = self.directories.iter().find(|(who, _)| *who == contender);
        Ok(own.map(|(_, Directory { launch, .. })| launch.start()).transpose()?)
    }

    /// Starts a server and sends it one query, its first; kills it, so that it keeps no cache of
    /// the answer. Returns the answer's body, or the reason for its absence.
    pub fn ask(
        &self,
        context: &Context,
        contender: Contender,
        promql: &str,
        hours: Option<u32>,
    ) -> Result<Result<(Cost, Vec<u8>), String>, BenchError> {
        let own = self.directories.iter().find(|(who, _)| *who == contender);
        let Some((_, Directory { data_dir, launch })) = own else {
            return Ok(Err("it was not loaded".to_string()));
        };
        read_all(data_dir)?;
        let server = launch.start()?;
        let asked = measure::ask(&server, context.idle_window, promql, self.end_ms, hours)?;
        server.kill()?;
        Ok(asked)
    }
}

/// Returns flags with which a server leaves blocks as they are.
fn flags(contender: Contender) -> Vec<String> {
    let words: &[&str] = match contender {
        Contender::Tidepool => &["--max-block-duration=2h"],
        Contender::Prometheus(_) => {
            &["--storage.tsdb.min-block-duration=2h", "--storage.tsdb.max-block-duration=2h"]
        }
        Contender::VictoriaMetrics | Contender::Vmagent => &[],
    };
    words.iter().map(|word| word.to_string()).collect()
}

/// Returns these flags and those that every tidepool of a run gets.
pub fn flags_of(context: &Context, contender: Contender) -> Vec<String> {
    let mut flags = flags(contender);
    if contender == Contender::Tidepool {
        flags.extend(context.tidepool_flags.iter().cloned());
    }
    flags
}

/// Sends all samples to both servers; returns their number.
pub fn send(shape: Shape, first: &Server, second: Option<&Server>) -> Result<u64, BenchError> {
    let mut source = Source::new(shape);
    let mut samples = 0;
    // VictoriaMetrics accepts remote write 1.0 only, which costs more CPU.
    let version = if second.is_some() { Version::V1 } else { Version::V2 };
    while let Some(batch) = source.next_batch() {
        let load = Load::encode(batch, version, ROWS, CONNECTIONS);
        samples += load.samples;
        let urls = [Some(first), second].into_iter().flatten().map(Server::url);
        let urls: Vec<String> = urls.collect();
        std::thread::scope(|scope| {
            let sends: Vec<_> =
                urls.iter().map(|url| scope.spawn(|| load.send(url).map(|_| ()))).collect();
            let joined = sends.into_iter().map(|send| match send.join() {
                Ok(sent) => sent,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect::<Result<(), SendError>>()
        })?;
    }
    Ok(samples)
}

/// Makes a snapshot of a server and returns its directory.
fn snapshot(server: &Server, data_dir: &Path) -> Result<PathBuf, BenchError> {
    let response = Admin::new(&server.url()).post("snapshot", &[])?;
    let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    match answer["data"]["name"].as_str() {
        Some(name) if response.is_success() => Ok(data_dir.join("snapshots").join(name)),
        _ => {
            let program = format!("the snapshot of {}", server.name());
            Err(BenchError::Command { program, log: response.text() })
        }
    }
}

/// Reads all files below a directory, so that they are in the page cache.
fn read_all(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            read_all(&entry.path())?;
        } else if kind.is_file() {
            io::copy(&mut fs::File::open(entry.path())?, &mut io::sink())?;
        }
    }
    Ok(())
}
