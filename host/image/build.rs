//! Builds the engine's component and compiles it to all kinds of machine code that the host
//! includes, so that `cargo run` needs no other step.

// The runtime's configuration, which must be the same here and in the host.
#[path = "../runtime/src/tuning.rs"]
mod tuning;

use object::build::elf::{Builder, SectionData};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use tuning::Code;

const TARGET: &str = "wasm32-wasip2";
/// Cargo profiles of the component: the first for nodes, the second for tests that do not measure
/// speed. The second builds in half the time.
const PROFILES: [&str; 2] = ["component", "component-quick"];
const PROFILE_VARIABLE: &str = "TIDEPOOL_COMPONENT_PROFILE";
/// Inputs of the component other than the engine's crates, relative to the workspace.
const INPUTS: [&str; 6] = [
    ".cargo/config.toml",
    "wit",
    "proto",
    "Cargo.toml",
    "Cargo.lock",
    "host/runtime/src/tuning.rs",
];
/// The highest compression level of Zstandard, because compression is done once per build.
const PACKING_LEVEL: i32 = 22;

/// `Send` and `Sync`, because the thread that compiles returns an error to the main thread.
type Fault = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Fault> {
    let out_dir = PathBuf::from(std::env::var("OUT_DIR")?);
    let workspace =
        Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    for input in INPUTS {
        println!("cargo::rerun-if-changed={}", workspace.join(input).display());
    }
    // Documents and fuzz targets do not change the component, so they are not watched.
    for crate_folder in crates_of(&workspace.join("engine"))? {
        for input in ["Cargo.toml", "build.rs", "src"] {
            let input = crate_folder.join(input);
            if input.exists() {
                println!("cargo::rerun-if-changed={}", input.display());
            }
        }
    }
    println!("cargo::rerun-if-env-changed={PROFILE_VARIABLE}");
    let component = build_component(&workspace, &out_dir, &profile()?)?;
    println!("cargo::metadata=component={}", component.display());
    // A host built for size includes one kind of machine code, which all instances use.
    println!("cargo::rustc-check-cfg=cfg(for_size)");
    let interruptible = out_dir.join("interruptible.cwasm");
    if is_for_size()? {
        println!("cargo::rustc-cfg=for_size");
        // Compressed to a third. Otherwise machine code is not compressed, and runs in place.
        let machine_code = precompile(&component, Code::Interruptible)?;
        std::fs::write(interruptible, zstd::encode_all(machine_code.as_slice(), PACKING_LEVEL)?)?;
        return Ok(());
    }
    let uninterruptible = out_dir.join("uninterruptible.cwasm");
    // In parallel, because each compilation needs a processor for half a minute.
    std::thread::scope(|threads| {
        let other = threads.spawn(|| precompile(&component, Code::Uninterruptible));
        std::fs::write(interruptible, precompile(&component, Code::Interruptible)?)?;
        let other = other.join().map_err(|_| "compiling the component to machine code panicked")?;
        Ok(std::fs::write(uninterruptible, other?)?)
    })
}

/// Returns a folder, and the folders in it that are crates of the same workspace.
fn crates_of(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut crates = vec![folder.to_path_buf()];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() && !path.ends_with("fuzz") {
            crates.push(path);
        }
    }
    Ok(crates)
}

fn profile() -> Result<String, String> {
    let chosen = std::env::var(PROFILE_VARIABLE).unwrap_or_else(|_| PROFILES[0].to_owned());
    match PROFILES.contains(&chosen.as_str()) {
        true => Ok(chosen),
        false => Err(format!("{PROFILE_VARIABLE}: expected one of {PROFILES:?}, got {chosen:?}")),
    }
}

fn build_component(workspace: &Path, out_dir: &Path, profile: &str) -> Result<PathBuf, Fault> {
    // A separate target folder, because the outer cargo has locked its own. All builds of the host
    // share it: OUT_DIR is <target>/<profile>/build/<package>/out.
    let target = out_dir.ancestors().nth(4).ok_or("OUT_DIR is not in a target folder")?;
    let is_for_size = is_for_size()?;
    let target_dir = target.join(if is_for_size { "engine-small" } else { "engine" });
    let mut cargo = Command::new(std::env::var("CARGO")?);
    cargo
        .current_dir(workspace)
        // The same arguments as the alias `build-component` in .cargo/config.toml.
        .args(["rustc", "--package=tidepool-engine", "--lib", "--crate-type=cdylib", "--locked"])
        .args([format!("--target={TARGET}"), format!("--profile={profile}")])
        .arg("--target-dir")
        .arg(&target_dir)
        // Flags that the outer build sets for the host's machine are invalid for WebAssembly.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_BUILD_TARGET");
    // A host built for size includes a component built for size, without function names.
    if is_for_size {
        cargo.env("CARGO_PROFILE_COMPONENT_OPT_LEVEL", "s");
        cargo.env("CARGO_PROFILE_COMPONENT_STRIP", "symbols");
    }
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("building the engine component failed: {status}").into());
    }
    let built = target_dir.join(TARGET).join(profile).join("tidepool_engine.wasm");
    let component = out_dir.join("tidepool_engine.wasm");
    std::fs::copy(&built, &component)?;
    Ok(component)
}

/// Features of all x86-64 processors of the last ten years: x86-64-v2 of the psABI. Without these
/// features, a vector shuffle is a function call. Others (AVX2, BMI) gave no measurable gain.
const X86_64_V2: [&str; 6] =
    ["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt", "has_cmpxchg16b"];

#[allow(unsafe_code)]
fn precompile(component: &Path, code: Code) -> Result<Vec<u8>, Fault> {
    let mut config = tuning::config(code);
    let target = std::env::var("TARGET")?;
    config.target(&target)?;
    if target.starts_with("x86_64") {
        for flag in X86_64_V2 {
            // SAFETY: the flag changes which code is generated, not its correctness; the runtime
            // refuses machine code that the processor cannot run.
            unsafe { config.cranelift_flag_enable(flag) };
        }
    }
    // Omits two tables that are an eighth of the file: offsets in the bytecode, and unwind
    // information for debuggers. Backtraces of traps name functions without these tables.
    config.generate_address_map(false).native_unwind_info(false);
    let engine = wasmtime::Engine::new(&config)?;
    let machine_code = engine.precompile_component(&std::fs::read(component)?)?;
    match cfg!(feature = "symbols") {
        true => Ok(machine_code),
        false => without_symbols(&machine_code),
    }
}

/// Removes symbols, which only profilers need: the runtime reads names from another section.
fn without_symbols(machine_code: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut file = Builder::read(machine_code)?;
    for symbol in &mut file.symbols {
        symbol.delete = true;
    }
    for section in &mut file.sections {
        section.delete = matches!(section.data, SectionData::Symbol | SectionData::String);
    }
    let mut stripped = Vec::new();
    file.write(&mut stripped)?;
    Ok(stripped)
}

fn is_for_size() -> Result<bool, std::env::VarError> {
    Ok(matches!(std::env::var("OPT_LEVEL")?.as_str(), "s" | "z"))
}
