//! Scale by history: cost of writes and reads beside 1 to 30 days of blocks.
//!
//! Upstream's packages write a block for each day, once; each server gets the newest of them, with
//! merging turned off.

use super::super::load::Load;
use super::super::outcome::Outcome;
use super::super::trial::{Answer, Trial};
use super::super::{BenchError, Context};
use super::write::one_pod;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::made;
use tidepool_tests::process::READY_TIMEOUT;
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Dataset, Shape};

const DAY_MS: i64 = 24 * 3_600_000;
const DAYS: &[usize] = &[1, 3, 10, 30];
const DAYS_QUICK: &[usize] = &[1, 2];
const SERIES: usize = 1_000;
const INTERVAL_MS: i64 = 60_000;
const INTERVAL_QUICK_MS: i64 = 1_800_000;
const NARROW_READS: usize = 300;

/// Measures writes by 2.0, streamed reads of everything, and narrow reads of the newest day.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let all_days = if context.quick { DAYS_QUICK } else { DAYS };
    let most = all_days.iter().copied().max().unwrap_or(1) as i64;
    let interval_ms = context.sized(INTERVAL_MS as usize, INTERVAL_QUICK_MS as usize) as i64;
    let end_ms = (now_ms() - DAY_MS / 12) / DAY_MS * DAY_MS;
    let per_day = (DAY_MS / interval_ms) as usize;
    let newest = Shape {
        scrapes: per_day,
        start_ms: end_ms - DAY_MS,
        ..context.shape(SERIES, 1, interval_ms)
    };
    let history =
        Shape { scrapes: per_day * most as usize, start_ms: end_ms - most * DAY_MS, ..newest };
    let blocks = tempfile::tempdir_in(&context.directory)?;
    made::write_blocks(blocks.path(), &history, DAY_MS)?;
    let blocks = data_dir::blocks(blocks.path())?;

    for &days in all_days {
        let start_ms = end_ms - days as i64 * DAY_MS;
        let samples = (newest.series * per_day * days) as u64;
        let data = Dataset::generate(context.shape(10_000, 60, 15_000));
        let load = Load::encode(&data, Version::V2, 2_000, 2);
        let takers = context.servers.iter().filter(|contender| contender.takes(Version::V2));
        for &contender in takers {
            let copy = |data_dir: &std::path::Path| -> Result<(), BenchError> {
                for block in blocks.iter().rev().take(days) {
                    data_dir::copy(&block.path, &data_dir.join(&block.ulid))?;
                }
                Ok(())
            };
            let flags = contender.flags_of_days(2 * most as usize + 2);
            let (trial, start) = Trial::start_on(context, contender, &flags, copy, READY_TIMEOUT)?;
            let x = days as f64;
            outcome.point("days-start", contender, x, start.cost.wall.as_secs_f64());
            let resident_bytes = trial.settle()?.memory_bytes;
            outcome.point("days-memory", contender, x, super::megabytes(resident_bytes));
            let write = trial.write(&load)?;
            let per_million = write.cost.cpu_s_per_million(write.samples);
            outcome.point("days-write", contender, x, per_million);
            let everything = everything(start_ms, end_ms - 1);
            let read = trial.read(Answer::Streamed, &everything, (most as usize / days) as u32)?;
            outcome.point("days-read", contender, x, read.cost.cpu_s_per_million(samples));
            let times = context.sized(NARROW_READS, 2) as u32;
            let one_pod = one_pod(&Dataset::generate(newest));
            let narrow = trial.read(Answer::Streamed, &one_pod, times)?;
            outcome.point("days-narrow", contender, x, narrow.cost.cpu.as_secs_f64() * 1e3);
            contender.check(&trial.server, (start_ms, end_ms - 1), samples)?;
            trial.check(&load)?;
            trial.server.kill()?;
        }
    }
    Ok(outcome)
}
