//! `tidepool tsdb dump` and `export`: write all samples as lines of text.

use super::workspace::report_damaged;
use super::{CliError, DataDirArg, Progress, Verdict, Workspace, quarantine};
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write};
use std::path::PathBuf;
use tidepool_protocol::prom::selector::{SelectorError, parse_selector};
use tidepool_runtime::{CallError, Matcher, TextFormat, TimeRange, in_words};
use tidepool_settings::duration::bytes;

/// Target size in bytes of the text that one call of the engine instance returns.
const TEXT_BYTES: u32 = 1024 * 1024;

/// How `dump` writes samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DumpFormat {
    /// Labels, value, milliseconds
    Prom,
    /// As `tidepool tsdb export`
    Openmetrics,
}

/// Which samples.
#[derive(Debug, Clone, Args)]
struct SelectionArgs {
    /// Series selector such as 'up{job="node"}'; may be given several times, for all that any of
    /// them selects. Without one: all series
    #[arg(long = "match", value_name = "SELECTOR", value_parser = selector)]
    selectors: Vec<Selector>,

    /// Oldest time to print, in milliseconds since the Unix epoch
    #[arg(long, value_name = "MS", default_value_t = i64::MIN, allow_negative_numbers = true, hide_default_value = true)]
    min_time: i64,

    /// Newest time to print, in milliseconds since the Unix epoch
    #[arg(long, value_name = "MS", default_value_t = i64::MAX, allow_negative_numbers = true, hide_default_value = true)]
    max_time: i64,

    /// Memory of the engine instance, which holds what is only in the logs
    #[arg(long, value_name = "BYTES", default_value = "3GiB", value_parser = bytes)]
    memory_limit: u64,
}

#[derive(Debug, Clone, Args)]
pub struct DumpArgs {
    #[command(flatten)]
    dir: DataDirArg,
    #[command(flatten)]
    selection: SelectionArgs,

    /// How samples are written
    #[arg(long, value_enum, default_value = "prom")]
    format: DumpFormat,
}

#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    dir: DataDirArg,
    #[command(flatten)]
    selection: SelectionArgs,

    /// File to write; standard output without it
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A parsed selector, in a type that clap can clone.
pub type Selector = std::sync::Arc<[Matcher]>;

/// Parses a selector for clap.
pub fn selector(text: &str) -> Result<Selector, SelectorError> {
    parse_selector(text).map(Into::into)
}

pub fn dump(args: &DumpArgs) -> Result<Verdict, CliError> {
    let out = BufWriter::new(std::io::stdout().lock());
    let format = match args.format {
        DumpFormat::Prom => TextFormat::Dump,
        DumpFormat::Openmetrics => TextFormat::OpenMetrics,
    };
    write(&args.dir, &args.selection, format, out, CliError::Output)
}

pub fn export(args: &ExportArgs) -> Result<Verdict, CliError> {
    let format = TextFormat::OpenMetrics;
    let Some(path) = &args.output else {
        let out = BufWriter::new(std::io::stdout().lock());
        return write(&args.dir, &args.selection, format, out, CliError::Output);
    };
    let file = File::create(path).map_err(CliError::file("create", path))?;
    let failed = |error| CliError::file("write to", path)(error);
    let verdict = write(&args.dir, &args.selection, format, BufWriter::new(&file), failed)?;
    // The file must survive a power cut after the command has succeeded.
    file.sync_all().map_err(failed)?;
    Ok(verdict)
}

fn write(
    dir: &DataDirArg,
    selection: &SelectionArgs,
    format: TextFormat,
    mut out: impl Write,
    failed: impl Fn(std::io::Error) -> CliError,
) -> Result<Verdict, CliError> {
    let workspace = Workspace::look(&dir.data_dir, selection.memory_limit)?;
    let mut damaged = report_damaged(&workspace.inspector()?.blocks()?);
    quarantine::mention(&workspace.data);
    let mut reader = workspace.reader()?;
    // One empty selector selects every series.
    let selectors: Vec<Vec<Matcher>> = match selection.selectors.as_slice() {
        [] => vec![Vec::new()],
        selectors => selectors.iter().map(|matchers| matchers.to_vec()).collect(),
    };
    let range = TimeRange { start_ms: selection.min_time, end_ms: selection.max_time };
    let cursor = reader.dump(&selectors, range, format)?;
    // On a terminal, the lines themselves show the progress and would mix with a bar.
    let progress = match std::io::stdout().is_terminal() {
        true => Progress::none(),
        false => Progress::spinner("writing samples"),
    };
    let mut written = 0u64;
    loop {
        match reader.next_lines(cursor, TEXT_BYTES) {
            Ok(lines) if lines.is_empty() => break,
            Ok(lines) => {
                out.write_all(&lines).map_err(&failed)?;
                written += lines.len() as u64;
                progress.say(format!("writing samples, {} MiB", written >> 20));
            }
            // The cursor is past the damaged chunk, so the remaining samples can be read.
            Err(CallError::Refused(damage)) => {
                damaged = true;
                progress.warn(&format!("left out: {}", in_words(&damage)));
            }
            Err(ended) => return Err(ended.into()),
        }
    }
    // OpenMetrics requires this last line. Without it, parsers take the text for truncated.
    if format == TextFormat::OpenMetrics {
        out.write_all(b"# EOF\n").map_err(&failed)?;
    }
    out.flush().map_err(&failed)?;
    Ok(if damaged { Verdict::Damaged } else { Verdict::Fine })
}
