//! Measures the latency of writes beside reads of the largest allowed size; see `--help`.

use clap::Parser;
use std::process::ExitCode;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::hostile::{
    Beside, Contents, HostileError, Kind, Memory, Phase, Writes, beside, filled,
};
use tidepool_tests::latency::median;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::chain;

/// Largest 99th percentile of writes beside reads, as a ratio to the quiet one, or that much above
/// it.
const RATIO_MAX: f64 = 1.2;
const MORE_MAX: Duration = Duration::from_millis(10);

/// Longest accepted latency of a write.
const WORST_MAX: Duration = Duration::from_millis(250);

/// Largest accepted growth of the head's memory by reads, as a part of its size.
const GROWTH_MAX: f64 = 0.1;

/// For each kind of read: starts a server, fills its head, and sends writes at a steady rate, in
/// turns quiet and beside readers that ask over and over. Prints the medians of the 99th
/// percentiles, the longest write, and the head's memory; fails if writes are delayed or memory is
/// kept.
///
/// Build what it measures first: `cargo build --release`. TIDEPOOL_BIN names another tidepool.
/// Nothing else should run on the machine.
#[derive(Parser)]
struct Options {
    /// Kinds of reads; all without one.
    #[arg(value_parser = kind)]
    kinds: Vec<Kind>,
    /// Series in the head.
    #[arg(long, default_value_t = 300_000)]
    series: usize,
    /// Exemplars in the head.
    #[arg(long, default_value_t = 100_000)]
    exemplars: usize,
    /// Metric families with metadata.
    #[arg(long, default_value_t = 100_000)]
    families: usize,
    /// Requests written in a second, each of a thousand samples.
    #[arg(long, default_value_t = 100)]
    writes: u32,
    /// How many read at the same time.
    #[arg(long, default_value_t = 2)]
    readers: usize,
    /// Quiet and loaded runs of each kind.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds of each.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// A flag for `tidepool serve`, such as --tidepool-flag=--wal-sync=always; may be repeated.
    #[arg(long)]
    tidepool_flag: Vec<String>,
}

fn kind(name: &str) -> Result<Kind, String> {
    let names = || Kind::ALL.map(Kind::name).join(", ");
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| format!("no such kind; there are {}", names()))
}

struct KindFigures {
    quiet: Vec<Phase>,
    loaded: Vec<Beside>,
    before: Memory,
    after: Memory,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match measure(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("bench-reads: writes were delayed, or memory was kept");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("bench-reads: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<bool, HostileError> {
    let kinds = if options.kinds.is_empty() { &Kind::ALL } else { options.kinds.as_slice() };
    println!(
        "| reads | p99 quiet, ms | p99 beside, ms | longest, ms | answered | refused | head in use, \
         MB | head, MB | resident, MB | |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    let alone = written_alone(options)?;
    show("none", &alone, "");
    let mut is_good = true;
    for kind in kinds {
        is_good &= report(*kind, &found(*kind, options)?, &alone);
    }
    Ok(is_good)
}

/// Measures the head's memory before and after the same writes without reads.
fn written_alone(options: &Options) -> Result<KindFigures, HostileError> {
    let (store, mut writes) = begun(options)?;
    let before = Memory::of(&store)?;
    let mut quiet = Vec::new();
    for _ in 0..2 * options.runs.max(1) {
        quiet.push(writes.send_for(options.time())?);
    }
    Ok(KindFigures { quiet, loaded: Vec::new(), before, after: Memory::of(&store)? })
}

fn found(kind: Kind, options: &Options) -> Result<KindFigures, HostileError> {
    let (store, mut writes) = begun(options)?;
    let before = Memory::of(&store)?;
    let (mut quiet, mut loaded) = (Vec::new(), Vec::new());
    let (contents, time) = (options.contents(), options.time());
    for _ in 0..options.runs.max(1) {
        quiet.push(writes.send_for(time)?);
        loaded.push(beside(&store, &mut writes, kind, contents, options.readers, time)?);
    }
    Ok(KindFigures { quiet, loaded, before, after: Memory::of(&store)? })
}

/// Starts a server with a full head, and a sender for it.
fn begun(options: &Options) -> Result<(Store, Writes), HostileError> {
    let start_ms = now_ms();
    let store = filled(&options.tidepool_flag, options.contents(), start_ms)?;
    // The next requests have later times than the exemplars' samples.
    let mut writes = Writes::new(&store.server.url(), start_ms + 1_000, options.writes);
    // The first writes create their series before the measurement begins.
    writes.send_for(options.time())?;
    Ok((store, writes))
}

impl Options {
    fn contents(&self) -> Contents {
        let Options { series, exemplars, families, .. } = *self;
        Contents { series, exemplars, families }
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.max(1))
    }
}

impl KindFigures {
    /// Returns the growth of one kind of memory in bytes.
    fn growth(&self, of: fn(&Memory) -> f64) -> f64 {
        of(&self.after) - of(&self.before)
    }
}

/// Prints a row; returns whether all bars are reached. The memory may grow by [`GROWTH_MAX`] more
/// than with the same writes alone.
fn report(kind: Kind, found: &KindFigures, alone: &KindFigures) -> bool {
    let KindFigures { quiet, loaded, before, .. } = found;
    let quiet_p99 = median(quiet.iter().map(|phase| phase.quantile(0.99)));
    let loaded_p99 = median(loaded.iter().map(|beside| beside.phase.quantile(0.99)));
    let worst = loaded.iter().map(|beside| beside.phase.quantile(1.0)).max().unwrap_or_default();
    let p99_max = quiet_p99.mul_f64(RATIO_MAX).max(quiet_p99 + MORE_MAX);
    let is_kept = [|memory: &Memory| memory.head_used, |memory: &Memory| memory.head]
        .into_iter()
        .any(|of| found.growth(of) - alone.growth(of) > GROWTH_MAX * of(before));
    let mut wrong = Vec::new();
    for (is_wrong, what) in [
        (loaded_p99 > p99_max, "p99"),
        (worst > WORST_MAX, "longest"),
        (is_kept, "memory"),
        (loaded.iter().all(|beside| beside.answered == 0), "no answer"),
    ] {
        wrong.extend(is_wrong.then_some(what));
    }
    let verdict =
        if wrong.is_empty() { "good".to_owned() } else { format!("BAD: {}", wrong.join(", ")) };
    show(kind.name(), found, &verdict);
    wrong.is_empty()
}

fn show(name: &str, found: &KindFigures, verdict: &str) {
    let KindFigures { quiet, loaded, before, after } = found;
    let p99 = |phases: &mut dyn Iterator<Item = &Phase>| median(phases.map(|p| p.quantile(0.99)));
    let phases = || loaded.iter().map(|beside| &beside.phase);
    let worst = phases().map(|phase| phase.quantile(1.0)).max().unwrap_or_default();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let mb = |bytes: f64| bytes / 1e6;
    println!(
        "| {name} | {:.2} | {:.2} | {:.1} | {} | {} | {:.0} to {:.0} | {:.0} to {:.0} | {:.0} to {:.0} | {verdict} |",
        ms(p99(&mut quiet.iter())),
        ms(p99(&mut phases())),
        ms(worst),
        loaded.iter().map(|beside| beside.answered).sum::<u64>(),
        loaded.iter().map(|beside| beside.refused).sum::<u64>(),
        mb(before.head_used),
        mb(after.head_used),
        mb(before.head),
        mb(after.head),
        mb(before.resident),
        mb(after.resident),
    );
}
