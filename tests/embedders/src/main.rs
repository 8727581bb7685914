//! Measures the cost of the engine for each kind of embedder, with the same work for all.
//!
//! `tests/embedders/run` builds the inputs and calls this program, which prints a table and writes
//! it into `engine/docs/embedding.md`. Each embedder runs in a process of its own that prints its
//! [`Figures`] as JSON; all must have read the same samples.

mod in_wasmtime;
mod native;
mod page;
mod sizes;
mod work;

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;
use std::process::Command;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Serialize, Deserialize)]
pub struct Figures {
    /// Time from reading the component's file to an open store, in milliseconds.
    load_ms: f64,
    /// The same time with machine code from a cache or compiled ahead of time.
    reload_ms: Option<f64>,
    append_seconds: f64,
    append_cpu_seconds: f64,
    select_seconds: f64,
    select_cpu_seconds: f64,
    samples: u64,
    /// Sum of all values read.
    sum: f64,
}

/// An embedder and the command that starts it.
struct Embedder {
    name: &'static str,
    storage: &'static str,
    command: Vec<String>,
}

fn embedders(workspace: &Path) -> Outcome<Vec<Embedder>> {
    let text = |path: &Path| path.display().to_string();
    let myself = text(&std::env::current_exe()?);
    let embedder = |name, storage, command: &[&str]| Embedder {
        name,
        storage,
        command: command.iter().map(|word| word.to_string()).collect(),
    };
    let script = |file: &str| text(&workspace.join("js/dist/test/bench").join(file));
    let python = text(&tidepool_contract::target_dir().join("embed-python/bin/python"));
    let work = text(&workspace.join("tests/embedders/work.py"));
    Ok(vec![
        embedder("Rust, the engine linked in", "memory", &[&myself, "native"]),
        embedder("Rust, wasmtime", "memory", &[&myself, "wasmtime"]),
        embedder("Node", "memory", &["node", &script("embedder_node.js"), "memory"]),
        embedder("Node", "directory", &["node", &script("embedder_node.js"), "directory"]),
        embedder("Chromium, in the page", "memory", &["node", &script("embedder_browser.js")]),
        embedder("Python, wasmtime", "directory", &[&python, &work]),
    ])
}

fn measure(embedder: &Embedder) -> Outcome<Figures> {
    let [program, arguments @ ..] = &embedder.command[..] else { return Err("no command".into()) };
    let output = Command::new(program)
        .args(arguments)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let printed = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        return Err(format!("{} failed: {}: {printed}", embedder.name, output.status).into());
    }
    // Node's test runner, which the browser's helpers use, prints lines of its own.
    let figures = printed.lines().find(|line| line.starts_with('{'));
    Ok(serde_json::from_str(figures.ok_or("no figures were printed")?)?)
}

fn main() -> Outcome<()> {
    let figures = match std::env::args().nth(1).as_deref() {
        Some("native") => native::measure()?,
        Some("wasmtime") => in_wasmtime::measure()?,
        Some(_) => return Err("usage: tidepool-embedders [native | wasmtime]".into()),
        None => return all(),
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

fn all() -> Outcome<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let mut measured = Vec::new();
    for embedder in embedders(&workspace)? {
        eprintln!("{}, {} …", embedder.name, embedder.storage);
        let figures = measure(&embedder)?;
        if figures.samples != work::SAMPLES as u64 || figures.sum != work::sum() {
            return Err(format!(
                "{} read {} samples that add up to {}, not {} and {}",
                embedder.name,
                figures.samples,
                figures.sum,
                work::SAMPLES,
                work::sum()
            )
            .into());
        }
        measured.push((embedder, figures));
    }
    let text = page::text(&workspace, &measured, &sizes::measure(&workspace)?)?;
    println!("{text}");
    page::write(&workspace, &text)
}
