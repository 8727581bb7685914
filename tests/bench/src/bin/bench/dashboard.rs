//! `bench table dashboard`: latency of panels and of writes, each beside the other.

use clap::Args;
use std::time::Duration;
use tidepool_bench::dashboard::{self, Options, panels, table, verdict};
use tidepool_bench::{BenchError, Context, docs, outcome};

/// Sizes of a smoke test.
const QUICK: Options = Options {
    viewers: 2,
    panels: panels::PANELS_MAX,
    refresh_every: Duration::from_secs(1),
    write_rate: 2_000,
    phase_s: 2,
    phases: 1,
    series: 200,
    hours: 4,
    repeats: 1,
};

#[derive(Args)]
#[command(next_help_heading = "Options of `table dashboard`, with --series and --check")]
pub struct DashboardOptions {
    /// Who look at a dashboard at the same time.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    viewers: u32,
    /// Panels of a dashboard; the first ones, if fewer than all.
    #[arg(long, default_value_t = panels::PANELS_MAX as u32,
        value_parser = clap::value_parser!(u32).range(1..=panels::PANELS_MAX as i64))]
    panels: u32,
    /// Seconds from one refresh to the next.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    refresh_s: u64,
    /// Samples written in a second, each of another series.
    #[arg(long, default_value_t = 200_000)]
    write_rate: usize,
    /// Seconds of a phase of writes, alone or beside viewers.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=600))]
    phase_s: u32,
    /// Phases alone, and as many beside viewers.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    phases: u32,
    /// Hours that are stored before anything is measured; at least one, which panels show.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=168))]
    stored_hours: u32,
}

/// Prints the table and keeps it for `bench docs`. Returns whether all answers are right and, if
/// they are checked, all aims are reached.
pub fn measure(
    options: &DashboardOptions,
    series: usize,
    check: bool,
    context: &Context,
    rounds: usize,
) -> Result<bool, BenchError> {
    let options = match context.quick {
        true => QUICK,
        false => Options {
            viewers: options.viewers as usize,
            panels: options.panels as usize,
            refresh_every: Duration::from_secs(options.refresh_s),
            write_rate: options.write_rate,
            phase_s: options.phase_s as usize,
            phases: options.phases as usize * rounds,
            series,
            hours: options.stored_hours,
            repeats: 3,
        },
    };
    // The figures are of the commit that is checked out now.
    let commit = outcome::commit()?;
    let found = dashboard::run(context, &options)?;
    let text =
        format!("Commit {commit}. {}\n\n{}", docs::machine()?, table::text(&options, &found));
    print!("{text}");
    let is_right = found.differences.as_ref().is_none_or(Vec::is_empty);
    let aims = verdict::aims(&found);
    let is_reached = aims.iter().all(|aim| aim.is_reached == Some(true));
    if !is_right {
        eprintln!("bench: not every answer is Prometheus'");
    }
    if check && !is_reached {
        eprintln!("bench: not every aim is reached");
    }
    if commit.ends_with('+') {
        eprintln!("bench: not kept for `bench docs`: files differ from the commit");
    } else if is_right && found.differences.is_some() && !context.quick {
        docs::keep(docs::DASHBOARD, &text)?;
    }
    Ok(is_right && (is_reached || !check))
}
