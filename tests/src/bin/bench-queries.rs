//! Measures what queries in PromQL cost tidepool, Prometheus and VictoriaMetrics; see `--help`.

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use tidepool_tests::bench::contender::Contender;
use tidepool_tests::bench::queries::catalogue::{self, QUERIES, Query};
use tidepool_tests::bench::queries::{self, REFERENCE, table, verdict};
use tidepool_tests::bench::trial::IDLE_WINDOW;
use tidepool_tests::bench::{BenchError, Context, docs, outcome};
use tidepool_tests::victoria_metrics;
use tidepool_tests::wait::chain;

/// Stores the same samples in tidepool, Prometheus 3.x and VictoriaMetrics, asks each of them the
/// same queries, and prints for each query and server: CPU seconds until the server is idle again /
/// seconds until the end of the answer / peak of anonymous memory in MB of a million bytes (of
/// which the query's own). Each query is the first that a freshly started server is asked; its
/// files are in the page cache. Who begins changes from query to query. tidepool's answers have to
/// be Prometheus': the same series, the same times, and values that differ by a part of 1e-12 at
/// most; otherwise the exit code is 1.
///
/// There are two data sets: *long* with --series series over --hours hours, and *wide* with ten
/// times as many over one hour. Both have a sample every 15 s and end some minutes ago. tidepool
/// and Prometheus get the same two-hour blocks, VictoriaMetrics the same remote writes.
///
/// Build what it measures first: `cargo build --release` and `tests/peers/build`. TIDEPOOL_BIN
/// names another tidepool. Nothing else should run on the machine.
#[derive(Parser)]
struct Options {
    /// Which queries, such as --queries rate-8h,topk; all without it.
    #[arg(long, value_parser = catalogue::named, value_delimiter = ',', num_args = 1.., value_name = "NAME")]
    queries: Vec<Query>,
    /// Series of the data set *long*, rounded up to fifty.
    #[arg(long, default_value_t = 10_000)]
    series: usize,
    /// Hours of the data set *long*; ranges of queries that are longer are cut to it.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=720))]
    hours: u32,
    /// How often each server is asked each query, freshly started each time; the table has the most
    /// of each figure.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Decides the data.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A flag for `tidepool serve` when it is asked, such as
    /// --tidepool-flag=--query-memory-limit=64MiB; may be repeated.
    #[arg(long)]
    tidepool_flag: Vec<String>,
    /// Where the servers' data goes; some two GB.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    directory: PathBuf,
    /// Ends with exit code 1 unless every aim is reached: CPU at most half of Prometheus' in total
    /// and as geometric mean, memory at most 48 MB and no more than Prometheus' in each query.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match measure(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench-queries: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Whether all is as it should be.
fn measure(options: &Options) -> Result<bool, BenchError> {
    let mut servers = vec![Contender::Tidepool, REFERENCE];
    if victoria_metrics::is_installed() {
        servers.push(Contender::VictoriaMetrics);
    }
    let context = Context {
        servers,
        directory: options.directory.clone(),
        tidepool_flags: options.tidepool_flag.clone(),
        quick: false,
        idle_window: IDLE_WINDOW,
        seed: options.seed,
    };
    let chosen = if options.queries.is_empty() { &QUERIES } else { options.queries.as_slice() };
    let Options { series, hours, runs, .. } = *options;
    let (stored, rows) =
        queries::run(&context, &queries::Options { queries: chosen, series, hours, runs })?;
    println!("Commit {}. {}\n", outcome::commit()?, docs::machine()?);
    print!("{}", table::text(&context.servers, &stored, &rows));
    let is_right = verdict::are_right(&rows);
    let aims = verdict::aims(&rows);
    let is_reached = aims.iter().all(|aim| aim.is_reached == Some(true));
    if !is_right {
        eprintln!("bench-queries: not every answer is Prometheus'");
    }
    if options.check && !is_reached {
        eprintln!("bench-queries: not every aim is reached");
    }
    Ok(is_right && (is_reached || !options.check))
}
