//! The command that `wasmtime run --dir DIR tidepool-standalone.wasm …` runs.

use crate::Component;
use crate::bindings::tidepool::standalone::directory;
use crate::bindings::tidepool::tsdb::store::{
    self, Columns, CompactProgress, LabelLimits, Options, Role, Room, TextFormat,
};
use crate::bindings::tidepool::tsdb::types::{Label, TimeRange};
use crate::{lines, selector};
use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

const USAGE: &str = "\
A tidepool store in the first directory given.

usage: write               store the samples that standard input has, a line each as dump writes them
       dump [MATCHER]...   print samples of the series for which all matchers hold; without any, of
                           all series. A matcher is name=value, name!=value, name=~regex, name!~regex
       compact [--all]     cut and merge blocks as far as it is due; --all takes all there is for due
       stats               print a few figures";

const HOUR_MS: i64 = 60 * 60 * 1000;

/// Maximum number of bytes of one step of a replay, of a dump or of a query's output.
pub const STEP_BYTES: u32 = 1024 * 1024;

const ROWS_MAX: usize = 10_000;

pub type Outcome = Result<(), Box<dyn Error>>;

impl wasip2::exports::cli::run::Guest for Component {
    fn run() -> Result<(), ()> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let mut words = arguments.iter().map(String::as_str);
        let done = match words.next() {
            Some("write") if words.len() == 0 => in_store(write),
            Some("dump") => in_store(|| dump(words)),
            Some("compact") => match words.collect::<Vec<_>>()[..] {
                [] => in_store(|| compact(false)),
                ["--all"] => in_store(|| compact(true)),
                _ => Err(usage().into()),
            },
            Some("stats") if words.len() == 0 => in_store(stats),
            #[cfg(feature = "promql")]
            Some("query") => query(words),
            _ => Err(usage().into()),
        };
        done.map_err(|error| eprintln!("{error}"))
    }
}

fn usage() -> String {
    #[cfg(feature = "promql")]
    return format!("{USAGE}{}", crate::query::USAGE);
    #[cfg(not(feature = "promql"))]
    USAGE.into()
}

#[cfg(feature = "promql")]
fn query<'a>(mut words: impl Iterator<Item = &'a str>) -> Outcome {
    let expression = words.next().ok_or_else(usage)?;
    let times = crate::query::times(&words.collect::<Vec<_>>())?;
    in_store(|| crate::query::run(expression, times))
}

fn in_store(work: impl FnOnce() -> Outcome) -> Outcome {
    store::open(options())?;
    while !store::replay(STEP_BYTES)?.done {}
    let done = work();
    // Also done after failed work, because its earlier rows are in the log. Closing does not sync.
    let closed = store::close();
    let synced = directory::sync();
    done?;
    closed?;
    Ok(synced?)
}

/// Returns the same defaults as those of the program `tidepool`.
fn options() -> Options {
    // Random, so that senders cannot choose labels that collide in the table of series.
    let hash_seed = std::hash::RandomState::new();
    Options {
        role: Role::All,
        block_duration_ms: 2 * HOUR_MS,
        future_limit_ms: HOUR_MS / 6,
        out_of_order_window_ms: 2 * HOUR_MS,
        series_max: 0,
        exemplars_max: 100_000,
        memory_bytes_max: 0,
        label_limits: LabelLimits { labels_max: 128, name_bytes_max: 1024, value_bytes_max: 4096 },
        block_duration_max_ms: 0,
        retention_ms: 15 * 24 * HOUR_MS,
        retention_bytes: 0,
        hash_seed: std::hash::BuildHasher::hash_one(&hash_seed, 0),
    }
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn write() -> Outcome {
    let mut refs: HashMap<Vec<(String, String)>, u64> = HashMap::new();
    let mut rows = no_rows();
    let (mut written, mut refused) = (0, 0);
    let mut append = |rows: Columns| -> Outcome {
        let outcome = store::append(&rows, now_ms())?;
        // Refused rows are not an error, because all other rows of the append are stored.
        for refusal in &outcome.refusals {
            eprintln!("refused: {}, at {}", refusal.detail, refusal.timestamp_ms);
        }
        written += outcome.samples_written;
        refused += outcome.refused;
        Ok(())
    };
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let sample = lines::parse(&line).map_err(|why| format!("line {}: {why}", number + 1))?;
        let key = sample.labels.iter().map(|Label { name, value }| (name.clone(), value.clone()));
        // Each series is looked up once, because that call crosses a component boundary.
        let series_ref = match refs.entry(key.collect()) {
            std::collections::hash_map::Entry::Occupied(known) => *known.get(),
            std::collections::hash_map::Entry::Vacant(new) => {
                *new.insert(store::series_ref(&sample.labels)?)
            }
        };
        rows.series.push(series_ref);
        rows.timestamps_ms.push(sample.timestamp_ms);
        rows.values.push(sample.value);
        if rows.series.len() >= ROWS_MAX {
            append(std::mem::replace(&mut rows, no_rows()))?;
        }
    }
    append(rows)?;
    println!("{written} samples written, {refused} refused");
    Ok(())
}

fn no_rows() -> Columns {
    Columns { series: Vec::new(), timestamps_ms: Vec::new(), values: Vec::new() }
}

fn dump<'a>(matchers: impl Iterator<Item = &'a str>) -> Outcome {
    let selector = matchers.map(selector::parse).collect::<Result<Vec<_>, _>>()?;
    let all = TimeRange { start_ms: i64::MIN, end_ms: i64::MAX };
    let cursor = store::dump(&[selector], all, TextFormat::Dump)?;
    let mut out = std::io::stdout().lock();
    loop {
        let lines = cursor.next(STEP_BYTES)?;
        if lines.is_empty() {
            return Ok(out.flush()?);
        }
        out.write_all(&lines)?;
    }
}

fn compact(all: bool) -> Outcome {
    if all {
        store::cut_all()?;
    }
    loop {
        // Measured before each step, because a cut replaces a part of the log by a checkpoint.
        let other_bytes = directory::other_bytes()?;
        // Unlimited, because WASI reports neither free space nor free memory.
        let room = Room { free_bytes: u64::MAX, other_bytes, memory_bytes: u64::MAX };
        let CompactProgress { done, block, deleted, bad, unmerged } =
            store::compact(now_ms(), room)?;
        if let Some(block) = block {
            println!("{} made: level {}, {} samples", block.id, block.level, block.samples);
        }
        for block in deleted {
            println!("{} deleted: {:?}", block.id, block.reason);
        }
        for damage in bad.into_iter().chain(unmerged) {
            eprintln!("{} is left as it is: {}", damage.where_, damage.reason);
        }
        if done {
            return Ok(());
        }
    }
}

fn stats() -> Outcome {
    let figures = store::stats()?;
    println!("series in the head: {}", figures.head_series);
    println!("chunks in the head: {}", figures.head_chunks);
    println!("memory in use: {} bytes", figures.memory_used_bytes);
    Ok(())
}
