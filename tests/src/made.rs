//! Data directories that upstream's own packages make (`tests/peers/tsdb`).

use crate::peers::{MissingPeer, built};
use crate::series::{Shape, fleet};
use std::fs;
use std::io::{self, BufWriter};
use std::path::Path;
use std::process::{Command, Stdio};

/// Reason why there is no directory.
#[derive(Debug, thiserror::Error)]
pub enum MadeError {
    /// Upstream's packages are not built.
    #[error(transparent)]
    Missing(#[from] MissingPeer),
    /// Upstream's program ended with an error.
    #[error("go-tsdb failed: {log}")]
    Failed {
        /// Standard error of upstream's program.
        log: String,
    },
    /// A file or pipe cannot be used.
    #[error("the data directory cannot be made")]
    Files(#[from] io::Error),
}

/// Writes the log that a killed server leaves.
pub fn write_log(data_dir: &Path, shape: &Shape) -> Result<(), MadeError> {
    fs::create_dir_all(data_dir)?;
    feed(upstream()?.arg("wal").arg(data_dir), shape)
}

/// Writes one block for each aligned span.
pub fn write_blocks(data_dir: &Path, shape: &Shape, span_ms: i64) -> Result<(), MadeError> {
    fs::create_dir_all(data_dir)?;
    feed(upstream()?.arg("blocks").arg(data_dir).arg(span_ms.to_string()), shape)
}

/// Returns the program that uses upstream's packages; its first argument is a command.
pub fn upstream() -> Result<Command, MissingPeer> {
    Ok(Command::new(built("go-tsdb")?))
}

/// Runs upstream's program with regular series as its input, scrape by scrape.
fn feed(command: &mut Command, shape: &Shape) -> Result<(), MadeError> {
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let written = match child.stdin.take() {
        Some(input) => write_series(BufWriter::with_capacity(1 << 20, input), shape),
        None => Err(io::Error::other("no pipe")),
    };
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(MadeError::Failed { log });
    }
    Ok(written?)
}

/// Writes series in the format that `tests/peers/tsdb` describes.
fn write_series(mut out: impl io::Write, shape: &Shape) -> io::Result<()> {
    let text = |out: &mut dyn io::Write, text: &str| -> io::Result<()> {
        out.write_all(&(text.len() as u32).to_le_bytes())?;
        out.write_all(text.as_bytes())
    };
    out.write_all(&(shape.series as u32).to_le_bytes())?;
    let mut values = Vec::with_capacity(shape.series);
    for index in 0..shape.series {
        let (labels, first) = fleet::start(shape, index);
        values.push(first);
        out.write_all(&(labels.pairs().len() as u32).to_le_bytes())?;
        for (name, value) in labels.pairs() {
            text(&mut out, name)?;
            text(&mut out, value)?;
        }
    }
    for scrape in 0..shape.scrapes as i64 {
        let time_ms = shape.start_ms + scrape * shape.interval_ms;
        out.write_all(&time_ms.to_le_bytes())?;
        for series in &mut values {
            out.write_all(&series.step().to_le_bytes())?;
        }
    }
    out.flush()
}
