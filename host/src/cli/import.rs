//! `tidepool tsdb import`: converts OpenMetrics or classic text to blocks.
//!
//! If the memory is too small for all samples, the text is read several times. Since a pipe can be
//! read only once, its text is first copied to a file next to the new blocks. All blocks become
//! visible together, after the last line was read.

use super::list::{BlockList, print_blocks};
use super::progress::warn_line;
use super::{CliError, Progress, Verdict, Workspace};
use tidepool_disk::{DataDir, Staging};
use tidepool_store::{BLOCK_AHEAD_MS_MAX, millis, random_seed};

use clap::{Args, ValueEnum};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidepool_exposition::{Item, ReadError, TextFormat, TextReader};
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::{INSTANCE_BYTES_MAX, ImporterHandle, Instance, Label, Rows};
use tidepool_settings::duration::{bytes, duration, duration_or_zero};

/// Number of rows that one call passes to the engine instance.
const ROWS_PER_CALL: usize = 16 * 1024;

/// Maximum number of series texts whose series numbers are remembered.
const SPELLINGS_MAX: usize = 500_000;

/// Bytes of text between two updates of the progress bar.
const BYTES_PER_LOOK: u64 = 4 * 1024 * 1024;

/// Memory of an engine instance in bytes, without samples and labels.
const INSTANCE_BYTES: u64 = 256 * 1024 * 1024;

/// Name of standard input on the command line.
const STDIN: &str = "-";

#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// The text to read; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The data directory; made if it is missing. No server may be running on it
    #[arg(value_name = "DIR", default_value = super::DATA_DIR_DEFAULT)]
    data_dir: PathBuf,

    /// Which format the text has. Every sample needs a time
    #[arg(long, value_enum, default_value = "openmetrics")]
    format: FormatArg,

    /// Span of one block
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = duration)]
    block_duration: Duration,

    /// How far ahead of this machine's clock a sample may be. Blocks from the future make retention
    /// drop all others, since it counts back from the newest
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = duration_or_zero)]
    max_future: Duration,

    /// Print times and sizes of the new blocks for people
    #[arg(short = 'r', long)]
    human_readable: bool,

    /// Do not print the new blocks
    #[arg(short = 'q', long)]
    quiet: bool,

    /// Memory for samples and labels; the text is read several times if all do not fit
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = bytes)]
    memory_limit: u64,
}

#[derive(Default)]
struct ScanResult {
    samples: u64,
    newest_ms: Option<i64>,
}

struct Pass<'a> {
    instance: &'a mut Instance,
    importer: ImporterHandle,
    /// Time in the ULIDs of new blocks, in milliseconds.
    block_ms: i64,
    /// Numbers of series by their text in the input.
    numbers: HashMap<Box<str>, u32>,
    rows: Rows,
}

/// Text to import, which may be read several times.
struct Source {
    /// Name of the text in errors.
    name: String,
    /// Input that can be read only once: standard input or a pipe.
    stream: Option<Box<dyn Read>>,
    path: PathBuf,
}

/// Which format a text has.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatArg {
    /// OpenMetrics; times in seconds
    Openmetrics,
    /// Prometheus' classic text format; times in milliseconds
    Prometheus,
}

impl From<FormatArg> for TextFormat {
    fn from(format: FormatArg) -> TextFormat {
        match format {
            FormatArg::Openmetrics => TextFormat::Openmetrics,
            FormatArg::Prometheus => TextFormat::Prometheus,
        }
    }
}

pub fn run(args: &ImportArgs) -> Result<Verdict, CliError> {
    let source = Source::open(&args.file)?;
    let rows_bytes = args.memory_limit.min((INSTANCE_BYTES_MAX - INSTANCE_BYTES) / 3);
    let new_dirs = new_dirs(&args.data_dir);
    let workspace = Workspace::create(&args.data_dir, rows_bytes * 3 + INSTANCE_BYTES)?;
    let done = import(args, source, &workspace, rows_bytes);
    let has_samples = matches!(done, Ok(1..));
    // An error in removing directories would hide the more useful error of the import.
    if !has_samples && !new_dirs.is_empty() && workspace.data.remove_if_empty().is_ok() {
        for parent in new_dirs.iter().skip(1) {
            if std::fs::remove_dir(parent).is_err() {
                break;
            }
        }
    }
    done.map(|_| Verdict::Fine)
}

/// Returns the directories that will be created for this path, innermost first.
fn new_dirs(path: &Path) -> Vec<PathBuf> {
    let is_new = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    path.ancestors().take_while(is_new).map(Path::to_path_buf).collect()
}

/// Imports the text, and returns the number of samples.
fn import(
    args: &ImportArgs,
    source: Source,
    workspace: &Workspace,
    rows_bytes: u64,
) -> Result<u64, CliError> {
    let staging = Staging::new(&workspace.data)?;
    let source = source.kept(&staging, &workspace.data)?;
    let mut instance = workspace.inspector_of(staging.blocks())?;
    let block_ms = new_block_ms(workspace)?;
    let importer = instance.import(millis(args.block_duration), rows_bytes, random_seed())?;
    let mut found;
    let mut passes = 0;
    loop {
        passes += 1;
        let pass = Pass {
            instance: &mut instance,
            importer,
            block_ms,
            numbers: HashMap::new(),
            rows: Rows { series: Vec::new(), timestamps_ms: Vec::new(), values: Vec::new() },
        };
        found = pass.read(&source, args.format.into(), passes)?;
        // Checked after the first pass, when all times are known, and before a block is visible.
        if passes == 1 {
            check_clock(&found, args.max_future)?;
            check_head(workspace, &found)?;
        }
        let progress = Progress::spinner("writing blocks");
        let again = loop {
            let step = instance.finish_import_pass(importer, block_ms)?;
            if step.done {
                break step.again;
            }
        };
        drop(progress);
        if !again {
            break;
        }
    }
    // All blocks become visible at once, so that a failed import leaves no blocks.
    let blocks = staging.publish()?;
    if !args.quiet && !blocks.is_empty() {
        let list = BlockList { workspace, human_readable: args.human_readable };
        print_blocks(&list, &workspace.inspector()?.blocks()?, |id| {
            blocks.iter().any(|b| b == id)
        })?;
    }
    if found.samples == 0 {
        warn_line(&format!("{} has no samples; nothing was imported", source.name));
    }
    Ok(found.samples)
}

/// Returns the time in the ULIDs of the new blocks. If two blocks have the same sample, the newer
/// block is used, so this time is later than that of all blocks, even if the clock was set back.
fn new_block_ms(workspace: &Workspace) -> Result<i64, CliError> {
    let now_ms = system_now_ms();
    let times_ms = workspace.blocks.times_ms()?.into_iter().map(|(_, time_ms)| time_ms);
    // A block dated further ahead was not made on this machine.
    let newest_ms = times_ms.filter(|time_ms| *time_ms <= now_ms + BLOCK_AHEAD_MS_MAX).max();
    Ok(newest_ms.map_or(now_ms, |newest_ms| now_ms.max(newest_ms + 1)))
}

/// Refuses samples far in the future, such as if a text with seconds has milliseconds.
fn check_clock(found: &ScanResult, max_future: Duration) -> Result<(), CliError> {
    let newest_allowed_ms = system_now_ms().saturating_add(millis(max_future));
    match found.newest_ms {
        // A block's end is one more than its newest time, and must not overflow.
        Some(newest_ms) if newest_ms > newest_allowed_ms.min(i64::MAX - 1) => {
            Err(CliError::ImportFromFuture { newest_ms })
        }
        _ => Ok(()),
    }
}

/// Refuses an import into the head's range: samples in the log would no longer be replayed.
fn check_head(workspace: &Workspace, found: &ScanResult) -> Result<(), CliError> {
    let Some(newest_ms) = found.newest_ms else { return Ok(()) };
    let head_ms = workspace.reader()?.stats()?.head_min_time_ms;
    match newest_ms >= head_ms {
        true => Err(CliError::ImportIntoHead { newest_ms, head_ms }),
        false => Ok(()),
    }
}

impl Source {
    /// Opens the text. Done before anything is created for the import.
    fn open(path: &Path) -> Result<Source, CliError> {
        if path.as_os_str() == STDIN {
            let stream: Box<dyn Read> = Box::new(std::io::stdin());
            let (name, path) = ("standard input".to_owned(), PathBuf::new());
            return Ok(Source { name, stream: Some(stream), path });
        }
        let file = File::open(path).map_err(CliError::file("open", path))?;
        let kind = file.metadata().map_err(CliError::file("read", path))?.file_type();
        if kind.is_dir() {
            let error = std::io::ErrorKind::IsADirectory.into();
            return Err(CliError::file("read", path)(error));
        }
        let stream = (!kind.is_file()).then(|| Box::new(file) as Box<dyn Read>);
        Ok(Source { name: path.display().to_string(), stream, path: path.to_path_buf() })
    }

    /// Copies a text that can be read only once to a file next to the new blocks.
    fn kept(self, staging: &Staging, data: &DataDir) -> Result<Source, CliError> {
        let Source { name, stream: Some(mut stream), .. } = self else { return Ok(self) };
        let path = staging.path().join("text");
        // Errors name the data directory, because the user does not know the temporary file.
        let action = "keep the text that is read in";
        let mut file = File::create(&path).map_err(CliError::file(action, data.path()))?;
        let _progress = Progress::spinner(format!("reading {name}"));
        std::io::copy(&mut stream, &mut file).map_err(CliError::file(action, data.path()))?;
        Ok(Source { name, stream: None, path })
    }
}

impl Pass<'_> {
    fn read(
        mut self,
        text: &Source,
        format: TextFormat,
        number: u32,
    ) -> Result<ScanResult, CliError> {
        let file = File::open(&text.path).map_err(CliError::file("open", &text.name))?;
        let total = file.metadata().map_err(CliError::file("read", &text.name))?.len();
        let progress = Progress::bytes(format!("reading, pass {number}"), total);
        let wrong = |source| CliError::Text { name: text.name.clone(), source };
        let refused = |error| wrong(ReadError::Parse(error));
        let mut reader = TextReader::new(BufReader::with_capacity(1 << 20, file), format);
        let mut found = ScanResult::default();
        let mut looked_at = 0;
        loop {
            let sample = match reader.next_item().map_err(wrong)? {
                None => break,
                Some(Item::Sample(sample)) => sample,
                Some(_) => continue,
            };
            let Some(timestamp_ms) = sample.timestamp_ms else {
                return Err(refused(reader.refused("the sample has no time")));
            };
            let value = sample.value;
            // Most lines have a known text, and then their labels need not be parsed.
            let series = match self.numbers.get(sample.series.text()) {
                Some(series) => *series,
                None => {
                    let spelling: Box<str> = sample.series.text().into();
                    match sample.series.labels() {
                        Ok(labels) => self.series(spelling, labels)?,
                        Err(error) => return Err(refused(reader.refused_labels(error))),
                    }
                }
            };
            found.samples += 1;
            found.newest_ms = found.newest_ms.max(Some(timestamp_ms));
            self.rows.series.push(series);
            self.rows.timestamps_ms.push(timestamp_ms);
            self.rows.values.push(value);
            if self.rows.series.len() >= ROWS_PER_CALL {
                self.send()?;
            }
            if reader.bytes() >= looked_at + BYTES_PER_LOOK {
                looked_at = reader.bytes();
                progress.set(looked_at, total);
            }
        }
        self.send()?;
        Ok(found)
    }

    fn series(
        &mut self,
        spelling: Box<str>,
        labels: Vec<(String, String)>,
    ) -> Result<u32, CliError> {
        let labels: Vec<Label> =
            labels.into_iter().map(|(name, value)| Label { name, value }).collect();
        let series = self.instance.import_series(self.importer, &labels)?;
        // Bounded, because one series may have many texts. A text that was removed costs one call.
        if self.numbers.len() >= SPELLINGS_MAX {
            self.numbers.clear();
        }
        self.numbers.insert(spelling, series);
        Ok(series)
    }

    fn send(&mut self) -> Result<(), CliError> {
        let step = self.instance.import_rows(self.importer, &self.rows, self.block_ms)?;
        // The instance has dropped its series to free memory, so the numbers are invalid.
        if step.series_dropped {
            self.numbers.clear();
        }
        self.rows.series.clear();
        self.rows.timestamps_ms.clear();
        self.rows.values.clear();
        Ok(())
    }
}
