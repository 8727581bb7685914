//! Scale by series: cost of a sample with 1k to 1M series, and cost of a new series.

use super::super::load::Load;
use super::super::outcome::Outcome;
use super::super::trial::{Answer, Trial};
use super::super::{BenchError, Context};
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Dataset;

const COUNTS: &[usize] = &[1_000, 10_000, 100_000, 1_000_000];
const COUNTS_QUICK: &[usize] = &[1_000, 10_000];
/// Number of samples after the first of each series.
const SAMPLES: usize = 4_000_000;
/// Short, so that the longest load fits in the head.
const INTERVAL_MS: i64 = 1_000;
/// Number of series after which reads end.
const SERIES_READ: usize = 1_000_000;
const READS_MAX: usize = 100;
/// Fewer new series take less CPU than can be measured.
const NEW_SERIES_MIN: usize = 10_000;
const ROWS_PER_REQUEST: usize = 1_000;

/// Measures remote write 2.0, and streamed reads of the newest sample of every series.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    for &count in if context.quick { COUNTS_QUICK } else { COUNTS } {
        let data = Dataset::generate(context.shape(count, 1 + SAMPLES / count, INTERVAL_MS));
        let load = Load::encode(&data, Version::V2, ROWS_PER_REQUEST, 2);
        drop(data);
        let x = count as f64;
        for &contender in context.servers.iter().filter(|contender| contender.takes(load.version)) {
            let trial = Trial::start(context, contender)?;
            let empty_bytes = trial.settle()?.memory_bytes;
            let first = trial.write_scrapes(&load, 0..1)?;
            if count >= NEW_SERIES_MIN {
                let new = first.cost.cpu_s_per_million(first.samples);
                outcome.point("series-new", contender, x, new);
            }
            let rest = trial.write_scrapes(&load, 1..load.scrape_count())?;
            outcome.point("series-write", contender, x, rest.cost.cpu_s_per_million(rest.samples));
            let added_bytes = rest.peak_memory_bytes.saturating_sub(empty_bytes);
            outcome.point("series-memory", contender, x, added_bytes as f64 / x);
            // Reads one chunk of each series, however many samples a series has.
            let (_, end_ms) = load.time_range_ms;
            let newest = everything(end_ms - INTERVAL_MS, end_ms);
            let times = (SERIES_READ / count).clamp(1, READS_MAX) as u32;
            let read = trial.read(Answer::Streamed, &newest, times)?;
            outcome.point("series-read", contender, x, read.cost.cpu.as_secs_f64() / (x / 1e6));
            trial.check(&load)?;
            trial.server.kill()?;
        }
    }
    Ok(outcome)
}
