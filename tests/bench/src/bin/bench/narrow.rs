//! `bench table narrow`: cost of requests for few of many series.

use clap::Args;
use tidepool_bench::narrow::{self, table};
use tidepool_bench::{BenchError, Context, docs, outcome};

/// Sizes of a smoke test.
const QUICK: narrow::Options =
    narrow::Options { series: 1000, hours: 4, requests: 20, slow_requests: 4 };

#[derive(Args)]
#[command(next_help_heading = "Options of `table narrow`")]
pub struct NarrowOptions {
    /// Series of which few are asked for, rounded up to fifty.
    #[arg(long, default_value_t = 100_000)]
    narrow_series: usize,
    /// Hours that are in two-hour blocks.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=240))]
    narrow_hours: u32,
    /// Requests of each kind, one after the other.
    #[arg(long, default_value_t = 2000, value_parser = at_least_one)]
    requests: usize,
    /// Requests of each kind at 20 a second; none are sent for 0.
    #[arg(long, default_value_t = 100)]
    slow_requests: usize,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least 1".to_owned()),
        number => number.map_err(|error| error.to_string()),
    }
}

/// Prints the tables and keeps them for `bench docs`. Returns whether all answers are right and, if
/// they are checked, all aims are reached.
pub fn measure(
    options: &NarrowOptions,
    context: &Context,
    checks: bool,
) -> Result<bool, BenchError> {
    let NarrowOptions { narrow_series, narrow_hours, requests, slow_requests } = *options;
    let options = match context.quick {
        true => QUICK,
        false => {
            narrow::Options { series: narrow_series, hours: narrow_hours, requests, slow_requests }
        }
    };
    // The figures are of the commit that is checked out now.
    let commit = outcome::commit()?;
    let rows = narrow::run(context, options)?;
    let narrow::Options { series, hours, requests, slow_requests } = options;
    let size = format!(
        "{series} series, {hours} h of blocks; {requests} requests of each kind, {slow_requests} \
         at the slow rate"
    );
    let text = format!("{size}.\n\nCommit {commit}. {}\n{}", docs::machine()?, table::text(&rows));
    print!("{text}");
    let (is_right, is_reached) = (table::are_right(&rows), table::is_reached(&rows));
    if !is_right {
        eprintln!("bench: not every answer is Prometheus'");
    }
    if checks && !is_reached {
        eprintln!("bench: not every aim is reached");
    }
    if commit.ends_with('+') {
        eprintln!("bench: not kept for `bench docs`: files differ from the commit");
    } else if is_right && !context.quick {
        docs::keep(docs::NARROW, &text)?;
    }
    Ok(is_right && (is_reached || !checks))
}
