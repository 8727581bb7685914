//! `bench table queries`: cost of queries in PromQL.

use clap::Args;
use tidepool_bench::queries::catalogue::{self, QUERIES, Query};
use tidepool_bench::queries::{self, table, verdict};
use tidepool_bench::{BenchError, Context, docs, outcome};

/// Series and hours of a smoke test.
const QUICK_SERIES_MAX: usize = 200;
const QUICK_HOURS_MAX: u32 = 4;

#[derive(Args)]
#[command(next_help_heading = "Options of `table queries`")]
pub struct QueryOptions {
    /// Which queries, such as --queries rate-8h,topk; all without it.
    #[arg(long, value_parser = catalogue::named, value_delimiter = ',', value_name = "NAME")]
    queries: Vec<Query>,
    /// Series of the data set *long*, rounded up to fifty; the data set *wide* has ten times as
    /// many.
    #[arg(long, default_value_t = 10_000)]
    pub series: usize,
    /// Hours of the data set *long*; ranges of queries that are longer are cut to it. The data set
    /// *wide* has one.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=720))]
    hours: u32,
    /// Ends with exit code 1 unless every aim is reached that the table of queries, or of the
    /// dashboard, lists.
    #[arg(long)]
    pub check: bool,
}

/// Prints the table of queries and keeps it for `bench docs`. Returns whether all answers are right
/// and, if they are checked, all aims are reached.
pub fn measure(
    options: &QueryOptions,
    context: &Context,
    rounds: usize,
) -> Result<bool, BenchError> {
    let QueryOptions { queries: named, series, hours, check } = options;
    let chosen = if named.is_empty() { &QUERIES } else { named.as_slice() };
    let (series, hours) = match context.quick {
        true => ((*series).min(QUICK_SERIES_MAX), (*hours).min(QUICK_HOURS_MAX)),
        false => (*series, *hours),
    };
    // The figures are of the commit that is checked out now.
    let commit = outcome::commit()?;
    let options = queries::Options { queries: chosen, series, hours, runs: rounds };
    let (stored, rows) = queries::run(context, &options)?;
    let asked = match rounds {
        1 => "Each server was asked each query once.".to_owned(),
        _ => format!(
            "Each server was asked each query {rounds} times; cells have the least times and \
             the most memory."
        ),
    };
    let origin = format!("{asked}\n\nCommit {commit}. {}", docs::machine()?);
    let text = format!("{origin}\n\n{}", table::text(&context.servers, &stored, &rows));
    print!("{text}");
    let is_right = verdict::are_right(&rows);
    let aims = verdict::aims(&rows);
    let is_reached = aims.iter().all(|aim| aim.is_reached == Some(true));
    if !is_right {
        eprintln!("bench: not every answer is Prometheus'");
    }
    if *check && !is_reached {
        eprintln!("bench: not every aim is reached");
    }
    if commit.ends_with('+') {
        eprintln!("bench: not kept for `bench docs`: files differ from the commit");
    } else if is_right && named.is_empty() && !context.quick {
        docs::keep(docs::QUERIES, &text)?;
        docs::keep_chart(docs::QUERIES, &table::chart(&rows))?;
    }
    Ok(is_right && (is_reached || !check))
}
