//! Looks for the Rust target that the engine's component is built for. If it is missing and rustup
//! manages the toolchain, `rustup target add` adds it. Otherwise the build fails here, with the
//! command to run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const TARGET: &str = "wasm32-wasip2";
/// The value `no` forbids the build to install the target.
const ADD_VARIABLE: &str = "TIDEPOOL_ADD_TARGET";
/// Holds the toolchain's name; rustup's `cargo` sets this variable for all processes it starts.
const TOOLCHAIN_VARIABLE: &str = "RUSTUP_TOOLCHAIN";
/// Cargo's own variable: if it is true, the build must not use the network.
const OFFLINE_VARIABLE: &str = "CARGO_NET_OFFLINE";

fn main() -> ExitCode {
    match find_or_add() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn find_or_add() -> Result<(), String> {
    for variable in [ADD_VARIABLE, TOOLCHAIN_VARIABLE, OFFLINE_VARIABLE] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    let libraries = target_libraries()?;
    // If the target is removed, the next build looks again.
    println!("cargo::rerun-if-changed={}", libraries.display());
    if libraries.is_dir() {
        return Ok(());
    }
    let Ok(toolchain) = std::env::var(TOOLCHAIN_VARIABLE) else {
        return Err(format!(
            "the Rust target {TARGET} is not installed, and rustup does not manage this toolchain; \
             install rustup, or the standard library for {TARGET} from where {} comes",
            rustc().display()
        ));
    };
    // The toolchain is named, because rustup may choose another one in the folder of this crate.
    let command = ["rustup", "target", "add", TARGET, "--toolchain", &toolchain];
    let shown = command.join(" ");
    may_add().and_then(|()| add(&command)).map_err(|reason| {
        format!("the Rust target {TARGET} is not installed, and {reason}; run: {shown}")
    })?;
    // Cargo shows no other output of a build script that succeeds.
    println!("cargo::warning=added the Rust target {TARGET} ({shown})");
    match libraries.is_dir() {
        true => Ok(()),
        false => Err(format!("rustup added {TARGET}, but {} is missing", libraries.display())),
    }
}

fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Returns the directory of the target's standard library, which need not exist.
fn target_libraries() -> Result<PathBuf, String> {
    let rustc = rustc();
    let output = Command::new(&rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| format!("{}: {error}", rustc.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} does not know {TARGET}: {said}", rustc.display()));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

fn may_add() -> Result<(), String> {
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|set| set == value);
    if is(ADD_VARIABLE, "no") {
        return Err(format!("{ADD_VARIABLE}=no forbids to add it"));
    }
    if is(OFFLINE_VARIABLE, "true") || is(OFFLINE_VARIABLE, "1") {
        return Err(format!("{OFFLINE_VARIABLE} forbids to fetch it"));
    }
    Ok(())
}

fn add(command: &[&str]) -> Result<(), String> {
    let output = Command::new(command[0])
        .args(&command[1..])
        .output()
        .map_err(|error| format!("rustup could not be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find_map(|line| line.strip_prefix("error: "));
    Err(format!("rustup could not add it: {}", error.unwrap_or(said.trim())))
}
