//! Components as machine code, compiled once for all programs that test them: compiling takes
//! seconds, and each test is a process of its own.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use wasmtime::component::Component;
use wasmtime::error::Context;
use wasmtime::{Engine, Result};

/// Loads the component in a file. The machine code is stored beside the file, under a name with
/// hashes of the component's bytes and of the engine's configuration.
///
/// # Errors
///
/// If the file cannot be read, is no component, or its folder cannot be written to.
pub fn load(engine: &Engine, file: &Path) -> Result<Component> {
    let bytes = fs::read(file)?;
    let stem = file.file_stem().context("the path names no file")?.to_string_lossy();
    let kind = format!("{stem}-{:016x}", hash(&engine.precompile_compatibility_hash()));
    let lock = File::create(file.with_file_name(format!("{kind}.lock")))?;
    lock.lock()?;
    let compiled = file.with_file_name(format!("{kind}-{:016x}.cwasm", hash(&bytes)));
    if !compiled.exists() {
        let machine_code = engine.precompile_component(&bytes)?;
        remove_others(&compiled, &kind)?;
        let part = compiled.with_extension("part");
        fs::write(&part, machine_code)?;
        fs::rename(&part, &compiled)?;
    }
    deserialize(engine, &compiled)
}

/// Removes machine code of earlier builds of the component.
fn remove_others(compiled: &Path, kind: &str) -> Result<()> {
    let folder = compiled.parent().context("the path names no folder")?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&format!("{kind}-")) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[allow(unsafe_code)]
fn deserialize(engine: &Engine, compiled: &Path) -> Result<Component> {
    // SAFETY: `load` wrote the file, in a folder of cargo's.
    unsafe { Component::deserialize_file(engine, compiled) }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
