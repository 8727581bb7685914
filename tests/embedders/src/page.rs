//! Writes the tables into the page about embedding.

use crate::sizes::Size;
use crate::work::{self, SAMPLES, SERIES, STEPS_A_CALL};
use crate::{Embedder, Figures, Outcome};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const PAGE: &str = "engine/docs/embedding.md";
const BEGIN: &str = "<!-- Written by `tests/embedders/run` from here … -->\n";
const END: &str = "<!-- … to here -->\n";

/// Returns the tables, with a line about the measured work.
pub fn text(workspace: &Path, measured: &[(Embedder, Figures)], sizes: &[Size]) -> Outcome<String> {
    let commit = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .current_dir(workspace)
        .output()?;
    let commit = String::from_utf8(commit.stdout)?;
    let cores = std::thread::available_parallelism()?;
    let mut text = format!(
        "Commit {}, {cores} cores of {}, {SERIES} series of {} samples, {} rows a call, the least \
         of {} runs. Every sample is read and its value added up.\n\n",
        commit.trim(),
        std::env::consts::ARCH,
        SAMPLES / SERIES,
        SERIES * STEPS_A_CALL,
        work::RUNS,
    );
    text += "| embedder | storage | append: CPU s per M samples | M samples a second | select: CPU \
             s per M samples | M samples a second | load, ms | again, ms |\n";
    text += "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    let millions = SAMPLES as f64 / 1e6;
    for (Embedder { name, storage, .. }, figures) in measured {
        let again = figures.reload_ms.map_or("".into(), |ms| format!("{ms:.0}"));
        writeln!(
            text,
            "| {name} | {storage} | {:.3} | {:.1} | {:.3} | {:.1} | {:.0} | {again} |",
            figures.append_cpu_seconds / millions,
            millions / figures.append_seconds,
            figures.select_cpu_seconds / millions,
            millions / figures.select_seconds,
            figures.load_ms,
        )?;
    }
    text += "\n| file | KB | gzip, KB |\n| --- | --- | --- |\n";
    for Size { what, bytes, gzip_bytes } in sizes {
        writeln!(text, "| {what} | {} | {} |", bytes / 1000, gzip_bytes / 1000)?;
    }
    Ok(text)
}

/// Replaces the text between the marks of the page.
pub fn write(workspace: &Path, text: &str) -> Outcome<()> {
    let path = workspace.join(PAGE);
    let page = std::fs::read_to_string(&path)?;
    let marks = || format!("{PAGE} has no marks between which to write");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(marks)?;
    let (_, after) = rest.split_once(END).ok_or_else(marks)?;
    Ok(std::fs::write(&path, format!("{before}{BEGIN}\n{text}\n{END}{after}"))?)
}
