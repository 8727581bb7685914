//! Builds the page in `js/ui` and writes a table of its files, and builds the viewer.
//!
//! | `TIDEPOOL_UI_DIR` | |
//! | --- | --- |
//! | not set | npm builds the page in this build's output folder. Without npm, or if npm fails, cargo warns and there is no page |
//! | a folder | the output of `node build.mjs` in this folder is used; the build fails if it is not a page |
//! | `off` | there is no page |
//!
//! Nothing is written to the source folders. npm installs packages again only if the lock file has
//! changed.

#[path = "build/viewer.rs"]
mod viewer;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const VARIABLE: &str = "TIDEPOOL_UI_DIR";
/// Inputs of the page, relative to `js/ui`.
const SOURCES: [&str; 6] =
    ["src", "build.mjs", "package.json", "package-lock.json", "tsconfig.json", ".npmrc"];
/// Timeout of a command, because npm waits long if there is no network.
const DEADLINE: Duration = Duration::from_secs(300);

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let out_dir = PathBuf::from(std::env::var("OUT_DIR")?);
    let js = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../js");
    let sources = js.join("ui");
    // The same layout as in the repository, because the viewer needs the neighbouring folders.
    let work = out_dir.join("js/ui");
    let mut is_built = false;
    let page = match std::env::var_os(VARIABLE) {
        Some(chosen) if chosen == "off" => Err(format!("{VARIABLE}=off when it was built")),
        Some(folder) => {
            let folder = fs::canonicalize(&folder)
                .map_err(|error| format!("{VARIABLE}: {}: {error}", folder.display()))?;
            println!("cargo::rerun-if-changed={}", folder.display());
            let files = files_of(&folder).map_err(|error| format!("{VARIABLE}: {error}"))?;
            Ok((folder, files))
        }
        None => {
            for source in SOURCES {
                println!("cargo::rerun-if-changed={}", sources.join(source).display());
            }
            let folder = out_dir.join("page");
            let built = build(&sources, &work, &folder).and_then(|()| files_of(&folder));
            is_built = built.is_ok();
            built.map(|files| (folder, files)).map_err(|error| {
                let reason = one_line(&error.to_string());
                println!("cargo::warning=there is no page for browsers: {reason}");
                println!("cargo::warning=the program serves a list of endpoints in its place; {VARIABLE}=off says that this is meant");
                reason
            })
        }
    };
    let viewer = viewer::document(&js, is_built.then_some(&*work))?;
    fs::write(out_dir.join("files.rs"), table(&page) + &viewer_text(&viewer))?;
    Ok(())
}

/// Builds the page with npm in the folder `work`, with output to the folder `page`.
fn build(sources: &Path, work: &Path, page: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(work)?;
    // The copy must not have sources that were deleted since the last build.
    remove(&work.join("src"))?;
    for source in SOURCES {
        copy(&sources.join(source), &work.join(source))?;
    }
    npm_ci(work, &["--omit=dev"])?;
    remove(page)?;
    run(Command::new("node").arg("build.mjs").arg(page).current_dir(work), "node build.mjs")
}

fn npm_ci(work: &Path, flags: &[&str]) -> Result<(), Box<dyn Error>> {
    let lock = fs::read(work.join("package-lock.json"))?;
    let installed = work.join("installed");
    if fs::read(&installed).ok().as_ref() != Some(&lock) {
        // Removed first, so that a failed installation is not taken for complete.
        remove(&installed)?;
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--fetch-retries=1", "--loglevel=error"])
            .args(flags);
        run(npm.current_dir(work), "npm ci")?;
        fs::write(&installed, lock)?;
    }
    Ok(())
}

/// Runs a command until it ends, or kills it at the deadline.
fn run(command: &mut Command, name: &str) -> Result<(), Box<dyn Error>> {
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| format!("{name} could not be started: {error}"))?;
    // Read on another thread, because the child would block if the pipe were full.
    let stderr = child.stderr.take();
    let reader = std::thread::spawn(move || stderr.map(io::read_to_string));
    let Some(status) = wait(&mut child)? else {
        // The thread is not joined, because processes of the child may keep the pipe open.
        return Err(format!("{name} took longer than {} s", DEADLINE.as_secs()).into());
    };
    let text = reader.join().ok().flatten().and_then(Result::ok).unwrap_or_default();
    if status.success() { Ok(()) } else { Err(format!("{name} failed ({status}): {text}").into()) }
}

/// Waits for a process and returns its status; `None` if it was killed at the deadline.
fn wait(child: &mut Child) -> io::Result<Option<std::process::ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > DEADLINE {
            child.kill()?;
            // Otherwise the killed process would remain as a zombie.
            child.wait()?;
            return Ok(None);
        }
        sleep(Duration::from_millis(50));
    }
}

/// Lists the compressed files of a page by their paths in the page, without `.gz`.
fn files_of(page: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = vec!["index.html".to_owned()];
    let assets = page.join("ui");
    let listed = fs::read_dir(&assets).map_err(|error| format!("{}: {error}", assets.display()))?;
    for entry in listed {
        let name = entry?.file_name().into_string().map_err(|_| "a name is no text")?;
        if let Some(name) = name.strip_suffix(".gz") {
            names.push(format!("ui/{name}"));
        }
    }
    names.sort();
    for name in &names {
        let file = page.join(format!("{name}.gz"));
        if !file.is_file() {
            return Err(format!("{} is missing", file.display()).into());
        }
    }
    Ok(names)
}

/// Returns the table of files as Rust source. If there is no page, the table has the reason.
fn table(page: &Result<(PathBuf, Vec<String>), String>) -> String {
    let (folder, files) = match page {
        Ok(page) => page,
        Err(reason) => {
            return format!(
                "static FILES: &[File] = &[];\nconst MISSING: Option<&str> = Some({reason:?});\n"
            );
        }
    };
    let mut text = "static FILES: &[File] = &[\n".to_owned();
    for name in files {
        let file = folder.join(format!("{name}.gz"));
        // An error is ignored, because `include_bytes!` reports it for the same file.
        let hash = fs::read(&file).map(|bytes| fnv(&bytes)).unwrap_or_default();
        let path = if name == "index.html" { "" } else { name };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "    File {{ path: {path:?}, content_type: {:?}, etag: \"\\\"{hash:016x}\\\"\", gzip: include_bytes!({file:?}) }},",
            content_type(name),
        );
    }
    text + "];\nconst MISSING: Option<&str> = None;\n"
}

fn viewer_text(viewer: &Result<PathBuf, String>) -> String {
    let viewer = match viewer {
        Ok(document) => format!("Ok(include_bytes!({document:?}))"),
        Err(reason) => format!("Err({reason:?})"),
    };
    format!("static VIEWER: Result<&[u8], &str> = {viewer};\n")
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}

/// Returns the 64-bit FNV-1a hash. No one forges the contents, so it need not be stronger.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let named = |error: io::Error| format!("{}: {error}", from.display());
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from).map_err(named)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else {
        fs::copy(from, to).map_err(named)?;
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn one_line(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").chars().take(400).collect()
}
