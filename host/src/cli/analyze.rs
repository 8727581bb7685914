//! `tidepool tsdb analyze`: the contents of a block, as `promtool tsdb analyze` shows them. Entries
//! with equal numbers are sorted by name.

use super::dump::{Selector, selector};
use super::workspace::report_damaged;
use super::{CliError, DATA_DIR_DEFAULT, Progress, Verdict, Workspace, units};
use clap::Args;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use tidepool_runtime::{
    AnalysisOptions, AnalysisReport, BlockInfo, BlockState, Occurrence, Ranked,
};
use tidepool_settings::duration::bytes;

#[derive(Debug, Clone, Args)]
pub struct AnalyzeArgs {
    /// The data directory: tidepool's or Prometheus'
    #[arg(value_name = "DIR", default_value = DATA_DIR_DEFAULT)]
    data_dir: PathBuf,

    /// The block to analyze; the newest without it
    #[arg(value_name = "BLOCK")]
    block: Option<String>,

    /// How many items each list shows
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: u32,

    /// Also show how chunks are filled
    #[arg(long)]
    extended: bool,

    /// Series selector such as 'up{job="node"}': look at these series only
    #[arg(long = "match", value_name = "SELECTOR", value_parser = selector)]
    selector: Option<Selector>,

    /// Memory of the engine instance, which holds 12 bytes a series
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes)]
    memory_limit: u64,
}

pub fn run(args: &AnalyzeArgs) -> Result<Verdict, CliError> {
    let workspace = Workspace::look(&args.data_dir, args.memory_limit)?;
    let mut instance = workspace.inspector()?;
    let blocks = instance.blocks()?;
    let damaged = report_damaged(&blocks);
    let sound = blocks.iter().filter_map(|block| match block {
        BlockState::Sound(info) => Some(info),
        BlockState::Damaged(_) => None,
    });
    let chosen = match &args.block {
        // ULIDs begin with the time of creation, so the largest ULID is that of the newest block.
        None => sound.max_by(|a, b| a.id.cmp(&b.id)),
        Some(id) => sound.into_iter().find(|info| info.id == *id),
    };
    let Some(info) = chosen else {
        let dir = args.data_dir.clone();
        return Err(CliError::NoBlock { dir, block: args.block.clone() });
    };
    let options = AnalysisOptions {
        matchers: args.selector.as_deref().map(<[_]>::to_vec).unwrap_or_default(),
        items_max: args.limit,
        chunks: args.extended,
    };
    let analysis = instance.analyze(&info.id, &options)?;
    let progress = Progress::count(format!("block {}", info.id), 0);
    let report = loop {
        let step = instance.analyze_next(analysis)?;
        progress.set(step.done, step.total);
        if let Some(report) = step.report {
            break report;
        }
    };
    // The bar is removed before the report is printed.
    drop(progress);
    let text = text(info, &report, args.selector.is_some());
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    Ok(if damaged { Verdict::Damaged } else { Verdict::Fine })
}

fn text(info: &BlockInfo, report: &AnalysisReport, is_selected: bool) -> String {
    let duration = units::duration(info.max_time_ms.saturating_sub(info.min_time_ms));
    let mut text = format!(
        "Block ID: {}\nDuration: {duration}\nTotal Series: {}\nLabel names: {}\n",
        info.id, info.series, report.label_names
    );
    // Writing to a string cannot fail, here and below.
    if is_selected {
        let _ = writeln!(text, "Matched series: {}", report.series);
    }
    let _ = writeln!(text, "Postings (unique label pairs): {}", report.label_pairs);
    let _ = writeln!(text, "Postings entries (total label pairs): {}", report.label_pair_entries);
    for (title, list) in [
        ("Label pairs most involved in churning", &report.pairs_by_churn),
        ("Label names most involved in churning", &report.names_by_churn),
        ("Most common label pairs", &report.pairs_by_series),
        ("Label names with highest cumulative label value length", &report.names_by_value_bytes),
        ("Highest cardinality labels", &report.names_by_values),
        ("Highest cardinality metric names", &report.metrics_by_series),
    ] {
        let _ = writeln!(text, "\n{title}:");
        for Ranked { name, number } in list {
            let _ = writeln!(text, "{number} {name}");
        }
    }
    if let Some(chunks) = &report.chunks {
        text.push_str("\nCompaction analysis:\n\n");
        // Each list of a kind has every chunk once, so any of them shows the number of chunks.
        let count = |list: &[Occurrence]| list.iter().map(|entry| entry.times).sum::<u64>();
        let total = count(&chunks.float_samples) + count(&chunks.histogram_samples);
        for (title, list) in [
            ("samples per float chunk", &chunks.float_samples),
            ("bytes per float chunk", &chunks.float_bytes),
            ("samples per histogram chunk", &chunks.histogram_samples),
            ("bytes per histogram chunk", &chunks.histogram_bytes),
            ("buckets per histogram chunk", &chunks.histogram_buckets),
        ] {
            put_histogram(&mut text, title, list, total);
        }
    }
    text
}

/// Formats a histogram in about ten buckets, as upstream does.
fn put_histogram(text: &mut String, title: &str, list: &[Occurrence], total: u64) {
    let (Some(min), Some(max)) = (list.first(), list.last()) else {
        let _ = writeln!(text, "{title}: N/A\n");
        return;
    };
    let (min, max) = (min.number, max.number);
    // As in upstream, the step is a power of ten, up to 100,000.
    let mut step = 10;
    while step < (max - min) / 10 && step <= 10_000 {
        step *= 10;
    }
    let (start, end) = (min - min % step, max - max % step + step);
    let mut buckets = vec![0u64; ((end - start) / step + 1) as usize];
    // Sums have 128 bits, because sizes times counts of many chunks may overflow 64 bits.
    let (mut sum, mut count) = (0u128, 0u128);
    for Occurrence { number, times } in list {
        buckets[((number - start) / step) as usize] += times;
        sum += u128::from(*number) * u128::from(*times);
        count += u128::from(*times);
    }
    let _ = writeln!(text, "{title} (min/avg/max): {min}/{}/{max}", sum / count.max(1));
    let width = |number: u64| number.to_string().len();
    let (left, right) = (width(end), width(end + step));
    let most = width(buckets.iter().copied().max().unwrap_or(0));
    for (number, times) in buckets.iter().enumerate() {
        let from = number as u64 * step + start + 1;
        let to = (number as u64 + 1) * step + start;
        let bar = "#".repeat((100 * times / total.max(1)) as usize);
        let _ = writeln!(text, "[{from:left$}, {to:right$}]: {times:most$} {bar}");
    }
    text.push('\n');
}
