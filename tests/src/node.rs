//! One data directory in which Prometheus and tidepool work in turn, and the samples that either of
//! them acknowledged.
//!
//! The functions here are assertions: they panic if a server fails.

use crate::admin::Admin;
use crate::arguments;
use crate::checksum::{Checksum, assert_same, differences};
use crate::cli;
use crate::data_dir;
use crate::peers::Release;
use crate::process::{Ending, ProcessError, Server};
use crate::promtool::{self, clear_nan_bits, parse_dump};
use crate::remote_read::{Reader, everything};
use crate::remote_write::{Version, Writer};
use crate::series::{Row, Series};
use crate::wait::{self, chain};
use crate::{prometheus, tidepool};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const ROWS_PER_REQUEST: usize = 2_000;
/// Pause between two requests to a Prometheus.
const PAUSE: Duration = Duration::from_millis(500);

/// Server that works in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Prometheus(Release),
    Tidepool,
}

pub const TIDEPOOL: Owner = Owner::Tidepool;
pub const PROMETHEUS_2: Owner = Owner::Prometheus(Release::V2);
pub const PROMETHEUS_3: Owner = Owner::Prometheus(Release::V3);

/// Timeout for the end of a Prometheus compaction, in which samples may be hidden.
pub const COMPACTION_TIMEOUT: Duration = Duration::from_secs(60);

/// Way in which an owner's turn ends.
pub type End = fn(Server) -> Result<Ending, ProcessError>;
/// Ends the server by a clean stop.
pub const STOP: End = Server::terminate;
/// Kills the server without a warning.
pub const KILL: End = Server::kill;

/// A node with a data directory.
#[derive(Debug)]
pub struct Node {
    directory: TempDir,
    out_of_order_window: Option<String>,
    block_ms: i64,
    prometheus_flags: Vec<String>,
    tidepool_flags: Vec<String>,
    acknowledged: Vec<Series>,
}

impl Default for Node {
    fn default() -> Node {
        Node {
            directory: tempfile::tempdir().expect("a temporary directory"),
            out_of_order_window: None,
            block_ms: 2 * 3_600_000,
            prometheus_flags: Vec::new(),
            tidepool_flags: Vec::new(),
            acknowledged: Vec::new(),
        }
    }
}

impl Node {
    /// Accepts out-of-order samples up to this far behind the newest, such as `30m`.
    pub fn out_of_order_window(mut self, window: &str) -> Node {
        self.out_of_order_window = Some(window.to_string());
        self.tidepool_flag(&format!("--out-of-order-window={window}"))
    }

    /// Sets the shortest and the longest block in minutes, for Prometheus and tidepool alike.
    pub fn blocks(mut self, shortest: i64, longest: i64) -> Node {
        self.block_ms = shortest * 60_000;
        let (shortest, longest) = (format!("{shortest}m"), format!("{longest}m"));
        self.tidepool_flag(&format!("--block-duration={shortest}"))
            .tidepool_flag(&format!("--max-block-duration={longest}"))
            .prometheus_flag(&format!("--storage.tsdb.min-block-duration={shortest}"))
            .prometheus_flag(&format!("--storage.tsdb.max-block-duration={longest}"))
    }

    /// Makes tidepool write a log that Prometheus reads, also if tidepool comes first.
    pub fn prometheus_records(self) -> Node {
        self.tidepool_flag(tidepool::PROMETHEUS_RECORDS)
    }

    /// Adds a flag for Prometheus.
    pub fn prometheus_flag(mut self, flag: &str) -> Node {
        self.prometheus_flags.push(flag.to_string());
        self
    }

    /// Adds a flag for tidepool.
    pub fn tidepool_flag(mut self, flag: &str) -> Node {
        self.tidepool_flags.push(flag.to_string());
        self
    }

    /// Removes all flags, except those that are added later.
    pub fn without_flags(mut self) -> Node {
        self.prometheus_flags.clear();
        self.tidepool_flags.clear();
        self
    }

    /// Returns whether all owners accept out-of-order samples.
    pub fn takes_out_of_order(&self) -> bool {
        self.out_of_order_window.is_some()
    }

    /// Returns the span of a block before it is merged.
    pub fn block_ms(&self) -> i64 {
        self.block_ms
    }

    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Starts a server on the directory. No other may run.
    #[track_caller]
    pub fn start(&self, owner: Owner) -> Server {
        match owner {
            Owner::Tidepool => self.start_tidepool(Vec::new()).map_err(|e| chain(&e)),
            Owner::Prometheus(release) => {
                let config = prometheus::Config::new(release, self.directory.path())
                    .expect("the directory can be used")
                    .receiver();
                let config = match &self.out_of_order_window {
                    Some(window) => config.out_of_order_window(window),
                    None => config,
                };
                let flags = self.prometheus_flags.iter();
                flags.fold(config, |config, flag| config.flag(flag)).start().map_err(|e| chain(&e))
            }
        }
        .unwrap_or_else(|error| panic!("{owner:?}: {error}"))
    }

    /// Starts tidepool by a program that executes its last arguments, such as `env`.
    pub fn start_tidepool(&self, starter: Vec<OsString>) -> Result<Server, ProcessError> {
        let config = tidepool::Config::new(self.directory.path()).started_by(starter);
        self.tidepool_flags.iter().fold(config, |config, flag| config.flag(flag)).start()
    }

    /// Sends a request; returns whether there was an answer, which must acknowledge the request.
    #[track_caller]
    pub fn offer(&mut self, server: &Server, rows: &[Row<'_>]) -> bool {
        // Every Prometheus accepts 1.0.
        let Ok(response) = Writer::new(&server.url()).send(Version::V1, rows) else { return false };
        assert!(response.status / 100 == 2, "{}: {}", response.status, response.text());
        let series =
            |row: &Row<'_>| Series { labels: row.labels.clone(), samples: row.samples.to_vec() };
        self.acknowledged.extend(rows.iter().map(series));
        true
    }

    /// Sends rows, all of which must be acknowledged.
    #[track_caller]
    pub fn send(&mut self, server: &Server, rows: &[Row<'_>]) {
        for rows in rows.chunks(ROWS_PER_REQUEST) {
            assert!(self.offer(server, rows), "no answer; the log says:\n{}", server.log());
        }
    }

    /// Deletes the samples of a job's series between two times in milliseconds, both included.
    #[track_caller]
    pub fn delete(&mut self, server: &Server, job: &str, times_ms: RangeInclusive<i64>) {
        let selector = format!("{{job=\"{job}\"}}");
        Admin::new(&server.url()).delete(&[&selector], *times_ms.start(), *times_ms.end());
        for series in self.acknowledged.iter_mut().filter(|it| it.labels.value("job") == job) {
            series.samples.retain(|sample| !times_ms.contains(&sample.timestamp_ms));
        }
        self.acknowledged.retain(|series| !series.samples.is_empty());
    }

    /// Returns all samples that were acknowledged and not deleted since.
    pub fn acknowledged(&self) -> &[Series] {
        &self.acknowledged
    }

    /// Asserts that the server has exactly the samples that were acknowledged and not deleted
    /// since.
    ///
    /// Prometheus is asked repeatedly for a while: some releases break off or leave out samples
    /// that a compaction moves at this moment.
    #[track_caller]
    pub fn assert_holds(&self, server: &Server, when: &str) {
        // The other kind of answer loses the sign of zero in Prometheus, which also overflows at
        // the ends of time.
        let ask = || {
            let all = everything(i64::MIN / 2, i64::MAX / 2);
            let read = Reader::new(&server.url()).streamed(&[all]);
            read.map_err(|error| format!("{when}: {}\n{}", chain(&error), server.log()))
        };
        let timeout = match server.name() {
            tidepool::NAME => Duration::ZERO,
            _ => COMPACTION_TIMEOUT,
        };
        let mut last = Ok(Vec::new());
        let held = wait::until_every(PAUSE, "the samples", timeout, || {
            last = ask();
            let read = last.as_ref().ok()?;
            (Checksum::of(&read[0]) == Checksum::of(&self.acknowledged)).then_some(())
        });
        match (held, last) {
            (Ok(()), _) => {}
            (Err(_), Ok(read)) => panic!(
                "{when}: {}\nThe next read finds {:?}\n{}",
                differences(&self.acknowledged, &read[0]),
                ask().map(|read| Checksum::of(&read[0])),
                server.log()
            ),
            (Err(_), Err(error)) => panic!("{error}"),
        }
    }

    /// Asserts that promtool of a release finds exactly the acknowledged samples. No server may run
    /// on the directory.
    ///
    /// promtool takes the end of the last block for the beginning of the log, also if Prometheus
    /// has cut that block from out-of-order samples of the head's own time (2.42 and 3.15; servers
    /// look at its hint). The time of Prometheus' compaction decides whether there is such a block.
    /// If so, promtool reads a copy that has all samples in blocks.
    #[track_caller]
    pub fn assert_promtool_agrees(&self, release: Release) {
        let copy = tempfile::tempdir().expect("a temporary directory");
        let mut read = self.data_dir();
        if is_log_hidden(&read) {
            let to = copy.path().join("data");
            data_dir::copy(&read, &to).expect("it is copied");
            cli::tsdb(arguments!["compact", "--head", &to]);
            read = to;
        }
        let dump = promtool::tsdb(release, "dump", &read, &[]);
        let dump = parse_dump(&dump).expect("a dump");
        let sent = clear_nan_bits(&self.acknowledged);
        assert_same(&format!("promtool of {release:?}"), &sent, &dump);
    }
}

/// Returns whether a block of out-of-order samples ends after all others.
fn is_log_hidden(data_dir: &Path) -> bool {
    let blocks = data_dir::blocks(data_dir).expect("blocks");
    let end_ms = |is_out_of_order: bool| {
        let some = blocks.iter().filter(|block| block.is_out_of_order == is_out_of_order);
        some.map(|block| block.end_ms).max()
    };
    end_ms(true) > end_ms(false)
}
