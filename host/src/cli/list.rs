//! `tidepool tsdb list`: the blocks of a data directory, as `promtool tsdb list` shows them.

use super::workspace::report_damaged;
use super::{CliError, DataDirArg, Verdict, Workspace, quarantine, units};
use clap::Args;
use std::io::Write as _;
use tidepool_disk::wal::{LogKind, wal_bytes};
use tidepool_runtime::{BlockInfo, BlockState};

/// Maximum memory in bytes for reading the indexes of blocks, one after the other.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

const COLUMNS: [&str; 8] = [
    "BLOCK ULID",
    "MIN TIME",
    "MAX TIME",
    "DURATION",
    "NUM SAMPLES",
    "NUM CHUNKS",
    "NUM SERIES",
    "SIZE",
];

/// Minimum width of a column; `COLUMN_GAP` is the space after its longest entry, in characters.
const COLUMN_MIN: usize = 13;
const COLUMN_GAP: usize = 2;

#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    #[command(flatten)]
    dir: DataDirArg,

    /// Print times and sizes for people instead of in milliseconds and bytes
    #[arg(short = 'r', long)]
    human_readable: bool,

    /// Also print what the logs of recent and of out-of-order samples take, on standard error
    #[arg(long)]
    wal: bool,
}

pub fn run(args: &ListArgs) -> Result<Verdict, CliError> {
    let workspace = Workspace::look(&args.dir.data_dir, MEMORY_BYTES_MAX)?;
    let blocks = workspace.inspector()?.blocks()?;
    let list = BlockList { workspace: &workspace, human_readable: args.human_readable };
    print_blocks(&list, &blocks, |_| true)?;
    let damaged = report_damaged(&blocks);
    quarantine::mention(&workspace.data);
    if args.wal {
        for (name, log) in [("wal", LogKind::InOrder), ("wbl", LogKind::OutOfOrder)] {
            let bytes = size(wal_bytes(&workspace.data, log)?, args.human_readable);
            let _ = writeln!(std::io::stderr(), "{name} {bytes}");
        }
    }
    Ok(if damaged { Verdict::Damaged } else { Verdict::Fine })
}

pub struct BlockList<'a> {
    pub workspace: &'a Workspace,
    pub human_readable: bool,
}

/// Prints the undamaged blocks for which `is_wanted` returns true.
pub fn print_blocks(
    list: &BlockList<'_>,
    blocks: &[BlockState],
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(), CliError> {
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    for block in blocks {
        if let BlockState::Sound(info) = block
            && is_wanted(&info.id)
        {
            let size_bytes = list.workspace.blocks.size_bytes(&info.id)?;
            rows.push(row(info, size_bytes, list.human_readable));
        }
    }
    let mut out = std::io::stdout().lock();
    out.write_all(table(&rows).as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)
}

fn row(info: &BlockInfo, size_bytes: u64, human_readable: bool) -> Vec<String> {
    let time = |timestamp_ms: i64| match human_readable {
        true => units::time(timestamp_ms),
        false => timestamp_ms.to_string(),
    };
    vec![
        info.id.clone(),
        time(info.min_time_ms),
        time(info.max_time_ms),
        units::duration(info.max_time_ms.saturating_sub(info.min_time_ms)),
        info.samples.to_string(),
        info.chunks.to_string(),
        info.series.to_string(),
        size(size_bytes, human_readable),
    ]
}

fn size(bytes: u64, human_readable: bool) -> String {
    if human_readable { units::bytes(bytes) } else { bytes.to_string() }
}

/// Formats rows in columns. All cells except the last are padded with spaces.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let longest = rows.iter().filter_map(|row| row.get(column)).map(String::len).max();
        (longest.unwrap_or(0) + COLUMN_GAP).max(COLUMN_MIN)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = if column + 1 == row.len() { 0 } else { widths[column] };
            text.push_str(&format!("{cell:width$}"));
        }
        text.push('\n');
    }
    text
}
