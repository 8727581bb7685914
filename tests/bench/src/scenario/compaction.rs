//! Merging of blocks by a command of each server on the same blocks: `tidepool tsdb compact`, and
//! upstream's compactor as a program of its own, so that no other work counts. VictoriaMetrics
//! merges all the time, so only its size in the end is reported.

use super::super::command_cost::{self, CommandCost};
use super::super::contender::Contender;
use super::super::outcome::Outcome;
use super::super::trial::Trial;
use super::super::{BenchError, Context};
use super::megabytes;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::made;
use tidepool_tests::peers::Release;
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::series::{Dataset, Row, Shape};
use tidepool_tests::wait;
use tidepool_tests::{data_dir, tidepool, victoria_metrics};

const HOUR_MS: i64 = 3_600_000;
const BLOCK_MS: i64 = 2 * HOUR_MS;
/// Longest range that both merge to when blocks may span 36 h, a tenth of 15 days.
const MERGED_MS: i64 = 18 * HOUR_MS;
const LONGEST_MS: i64 = 36 * HOUR_MS;
const NEWER_BLOCKS: i64 = 2;
const INTERVAL_MS: i64 = 15_000;
const INTERVAL_QUICK_MS: i64 = 600_000;
/// Number of series in a request that has all samples of a block.
const SERIES_PER_REQUEST: usize = 50;
const VISIBLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Measures one whole range and two blocks more: the newest is not merged, and a block that ends a
/// moment before its range, as upstream's writer leaves it, is merged once another block begins
/// after it.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let interval_ms = context.sized(INTERVAL_MS as usize, INTERVAL_QUICK_MS as usize) as i64;
    let newer_ms = NEWER_BLOCKS * BLOCK_MS;
    let end_ms = (now_ms() - newer_ms) / MERGED_MS * MERGED_MS + newer_ms;
    let start_ms = end_ms - newer_ms - MERGED_MS;
    let scrapes = ((end_ms - start_ms) / interval_ms) as usize;
    let shape = Shape { scrapes, start_ms, ..context.shape(10_000, 1, interval_ms) };
    let samples = (shape.series * scrapes) as u64;

    let blocks = tempfile::tempdir_in(&context.directory)?;
    made::write_blocks(blocks.path(), &shape, BLOCK_MS)?;
    for &contender in &context.servers {
        let kept_bytes = match contender {
            Contender::Prometheus(Release::V2) | Contender::Vmagent => continue,
            Contender::VictoriaMetrics => victoria_metrics(context, &shape)?,
            Contender::Prometheus(Release::V3) | Contender::Tidepool => {
                let copy = tempfile::tempdir_in(&context.directory)?;
                data_dir::copy(blocks.path(), copy.path())?;
                let CommandCost { cost, peak_memory_bytes } =
                    command_cost::measure(&mut command(contender, copy.path())?)?;
                check(contender, copy.path(), samples)?;
                let per_million = cost.cpu_s_per_million(samples);
                let wall = cost.wall_s_per_million(samples);
                outcome.add_timed("compaction-cpu", contender, per_million, wall);
                outcome.add("compaction-memory", contender, megabytes(peak_memory_bytes));
                let blocks = data_dir::blocks(copy.path())?;
                blocks.iter().map(|block| data_dir::total_bytes(&block.path)).sum()
            }
        };
        outcome.add("kept", contender, kept_bytes as f64 / samples as f64);
    }
    Ok(outcome)
}

fn command(contender: Contender, data_dir: &Path) -> Result<Command, BenchError> {
    if contender != Contender::Tidepool {
        return command_cost::upstream_compact(data_dir, LONGEST_MS);
    }
    let mut command = tidepool::command();
    command.args(["tsdb", "compact"]).arg(data_dir).arg("--max-block-duration=36h");
    Ok(command)
}

/// Checks that one merged block and the newer ones are left, with every sample.
fn check(contender: Contender, data_dir: &Path, samples: u64) -> Result<(), BenchError> {
    let blocks = data_dir::blocks(data_dir)?;
    let found = blocks.iter().map(|block| block.samples).sum();
    let spans: Vec<i64> =
        blocks.iter().map(|block| (block.end_ms - block.min_ms) / HOUR_MS).collect();
    if spans.len() != 1 + NEWER_BLOCKS as usize {
        let log = format!("{spans:?} are the hours of the blocks that are left");
        return Err(BenchError::Command { program: format!("compaction by {contender}"), log });
    }
    match found == samples {
        true => Ok(()),
        false => Err(BenchError::Incomplete { contender, sent: samples, found }),
    }
}

/// Takes the same samples, as fast as possible, and merges; returns the size of the directory.
fn victoria_metrics(context: &Context, shape: &Shape) -> Result<u64, BenchError> {
    let contender = Contender::VictoriaMetrics;
    let trial = Trial::start(context, contender)?;
    let data = Dataset::generate(*shape);
    let writer = Writer::new(&trial.server.url());
    let per_block = (BLOCK_MS / shape.interval_ms) as usize;
    for first in (0..shape.scrapes).step_by(per_block) {
        for series in data.series.chunks(SERIES_PER_REQUEST) {
            let rows: Vec<Row<'_>> = series
                .iter()
                .map(|series| {
                    let samples = &series.samples[first..(first + per_block).min(shape.scrapes)];
                    Row { labels: &series.labels, samples }
                })
                .collect();
            let answer = writer.send(Version::V1, &rows)?;
            if !answer.is_success() {
                let (status, body) = (answer.status, answer.text());
                return Err(super::super::load::SendError::Refused { status, body }.into());
            }
        }
    }
    let time_range_ms = data.time_range_ms().unwrap_or_default();
    contender.check(&trial.server, time_range_ms, data.sample_count())?;
    victoria_metrics::merge(&trial.server)?;
    trial.settle()?;
    // Merged parts are removed once no query holds them.
    let mut before = 0;
    wait::until_every(Duration::from_secs(1), "the merge", VISIBLE_TIMEOUT, || {
        let bytes = data_dir::total_bytes(&trial.data_dir());
        (std::mem::replace(&mut before, bytes) == bytes).then_some(())
    })?;
    let directory = trial.data_dir();
    trial.server.terminate()?;
    Ok(data_dir::total_bytes(&directory))
}
