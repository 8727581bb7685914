//! `tidepool tsdb verify`: checks every checksum and invariant of blocks and logs.
//!
//! Each finding is a line `FILE: byte OFFSET: what`. Each block and log ends with a summary.
//! Warnings are about unusual data that is not lost.

use super::progress::print_line;
use super::{CliError, DataDirArg, Progress, Verdict, Workspace, quarantine};
use clap::Args;
use std::path::Path;
use std::time::Duration;
use tidepool_disk::wal::{LogKind, LogPiece, LogReader};
use tidepool_runtime::{BlockState, CallError, Error, Log, Severity, StorageError};
use tidepool_settings::duration::bytes;

/// Size in bytes of the pieces in which a log is checked.
const LOG_BYTES: u32 = 1024 * 1024;

/// Wait before an incomplete end of a log is reported, because a server may be writing it.
const WRITER_PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    dir: DataDirArg,

    /// Memory of the engine instance that checks a block
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes)]
    memory_limit: u64,
}

#[derive(Default)]
struct Tally {
    errors: u64,
    warnings: u64,
}

impl Tally {
    fn add(&mut self, severity: Severity, place: &str, offset: Option<u64>, what: &str) -> String {
        let offset = offset.map(|offset| format!(" byte {offset}:")).unwrap_or_default();
        let word = match severity {
            Severity::Error => {
                self.errors += 1;
                ""
            }
            Severity::Warning => {
                self.warnings += 1;
                " warning:"
            }
        };
        format!("{place}:{word}{offset} {what}")
    }

    fn summary(&self, what: &str, found: &str) -> String {
        match (self.errors, self.warnings) {
            (0, 0) => format!("{what} ok: {found}"),
            (0, warnings) => format!("{what} ok: {found}; {warnings} warnings"),
            (errors, _) => format!("{what} DAMAGED: {errors} errors; {found} could be read"),
        }
    }
}

pub fn run(args: &VerifyArgs) -> Result<Verdict, CliError> {
    let workspace = Workspace::look(&args.dir.data_dir, args.memory_limit)?;
    let mut errors = 0;
    for name in workspace.blocks.incomplete()? {
        errors += 1;
        print_line(&format!(
            "{name}: a directory named like a block, without meta.json; nothing reads it"
        ));
    }
    for block in workspace.blocks.list()? {
        errors += verify_block(&workspace, &block)?;
    }
    errors += verify_logs(&workspace)?;
    quarantine::verify(&workspace.data)?;
    Ok(if errors == 0 { Verdict::Fine } else { Verdict::Damaged })
}

fn verify_block(workspace: &Workspace, block: &str) -> Result<u64, CliError> {
    let mut instance = workspace.inspector()?;
    let check = instance.verify(block)?;
    let progress = Progress::bytes(format!("block {block}"), 0);
    let mut tally = Tally::default();
    let is_gone = || -> Result<bool, CliError> {
        Ok(!workspace.blocks.list()?.iter().any(|listed| listed == block))
    };
    loop {
        let step = match instance.verify_next(check) {
            Err(CallError::Refused(Error::Storage(StorageError::NotFound(_)))) if is_gone()? => {
                return Ok(0);
            }
            step => step?,
        };
        // A server next to this command has removed the block, so its files are missing.
        if !step.findings.is_empty() && is_gone()? {
            return Ok(0);
        }
        progress.set(step.bytes_done, step.bytes_total);
        for finding in &step.findings {
            let place = format!("{block}/{}", finding.file);
            let offset = Some(finding.offset);
            progress.print(&tally.add(finding.severity, &place, offset, &finding.reason));
        }
        if step.done {
            let (series, chunks, samples) = (step.series, step.chunks, step.samples);
            let found = format!("{series} series, {chunks} chunks, {samples} samples");
            progress.print(&tally.summary(&format!("block {block}"), &found));
            return Ok(tally.errors);
        }
    }
}

fn verify_logs(workspace: &Workspace) -> Result<u64, CliError> {
    let mut instance = workspace.inspector()?;
    let ends = instance.blocks()?.into_iter().filter_map(|block| match block {
        BlockState::Sound(info) => Some(info.max_time_ms),
        BlockState::Damaged(_) => None,
    });
    let check = instance.verify_logs(ends.max().unwrap_or(i64::MIN))?;
    let mut reader = LogReader::open(&workspace.data)?;
    let progress = Progress::bytes("logs", 0);
    let mut tally = Tally::default();
    let root = workspace.data.path();
    for oddity in reader.oddities() {
        let place = shown(oddity.path(), root);
        progress.print(&tally.add(Severity::Error, &place, None, &oddity.to_string()));
    }
    while let Some(piece) = reader.next(LOG_BYTES) {
        let (done, total) = reader.progress();
        progress.set(done, total);
        let place = shown(&piece.path, root);
        for damaged in &piece.damaged {
            let what = format!("{} bytes cannot be read: {}", damaged.bytes, damaged.cause);
            progress.print(&tally.add(Severity::Error, &place, Some(damaged.offset), &what));
        }
        if let Some(what) = torn_tail(&piece) {
            let offset = piece.torn_tail.map(|tail| tail.offset);
            progress.print(&tally.add(Severity::Error, &place, offset, &what));
        }
        let (offsets, records): (Vec<u64>, Vec<Vec<u8>>) = piece.records.into_iter().unzip();
        let log = match piece.log {
            LogKind::InOrder => Log::InOrder,
            LogKind::OutOfOrder => Log::OutOfOrder,
        };
        for finding in instance.verify_records(check, log, &records)? {
            let offset = offsets.get(finding.position as usize).copied();
            progress.print(&tally.add(finding.severity, &place, offset, &finding.reason));
        }
    }
    let counts = instance.log_counts(check)?;
    if counts.lost_samples > 0 {
        let what = format!("{} samples without a series record", counts.lost_samples);
        progress.print(&tally.add(Severity::Error, "wal", None, &what));
    }
    let (records, series, samples) = (counts.records, counts.series, counts.samples);
    let found = format!("{records} records, {series} series, {samples} samples");
    progress.print(&tally.summary("logs", &found));
    Ok(tally.errors)
}

/// Returns why the end of the log cannot be read, unless a process is writing it now.
fn torn_tail(piece: &LogPiece) -> Option<String> {
    let tail = piece.torn_tail?;
    let state =
        || std::fs::metadata(&piece.path).and_then(|meta| Ok((meta.len(), meta.modified()?)));
    let before = state().ok();
    std::thread::sleep(WRITER_PAUSE);
    let seen_end = tail.offset + tail.bytes;
    // A server may be appending, so the end must stay the same during the pause.
    let is_written = state().ok() != before || before.is_some_and(|(len, _)| len != seen_end);
    (!is_written).then(|| {
        let (bytes, cause) = (tail.bytes, tail.cause);
        format!(
            "{bytes} bytes at the end cannot be read: {cause}; if a crash left them, the next \
             start cuts them off"
        )
    })
}

/// Returns a file's path relative to the data directory.
fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
