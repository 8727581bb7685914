//! Machine code of plugins: compiled in a process of its own, kept in the data directory.
//!
//! A compiler takes hundreds of megabytes for a large plugin; a child process gives them back, has
//! a limit of its own, runs at low priority, and can crash alone. It is this program, as `tidepool
//! plugin compile`. It ends when its standard input does, which is when the process that started it
//! is gone.
//!
//! ```text
//! <data>/plugin-cache/<sha256 of the .wasm, runtime's version and settings>.code
//!   ┌─────────────────────────┬──────────────────────────────┐
//!   │ sha256 of the rest (32) │ machine code                 │
//!   └─────────────────────────┴──────────────────────────────┘
//! ```
//!
//! # Safety, once
//!
//! `Component::deserialize` trusts its input to be what `Engine::precompile_component` made. These
//! bytes come from a file of ours in a directory that only this user may write to, which is
//! checked, as is the checksum over all of them, after they were read and before they are used. A
//! user who can write there can replace the data, too, or this program. The runtime itself refuses
//! code of another version or configuration.

use ring::digest::{Context, SHA256, digest};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_settings::file::open_regular;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Folder in the data directory.
const CACHE: &str = "plugin-cache";

/// Largest plugin: an interpreter with its libraries has some forty megabytes.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// How long a compiler may take.
const COMPILE_TIME: Duration = Duration::from_secs(600);

/// How often it is looked after.
const COMPILE_LOOK: Duration = Duration::from_millis(20);

/// What a compiler says that has no memory left: Rust's words, and the operating system's for what
/// it maps and for threads.
const OUT_OF_MEMORY: [&str; 3] =
    ["memory allocation of", "Cannot allocate memory", "Resource temporarily unavailable"];

/// The exit code of a compiler that refuses its input: `EX_DATAERR` of sysexits.h.
pub const UNCOMPILABLE: i32 = 65;

const CHECKSUM_BYTES: usize = 32;

/// Why there is no machine code.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// A file could not be read or written.
    #[error("could not {action} {}: {source}", path.display())]
    File {
        /// The operation.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Larger than any plugin.
    #[error("it has more than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// Not made by a compiler of components.
    #[error("it is not a WebAssembly component: {0}")]
    NoComponent(String),
    /// The compiler refuses it.
    #[error("it could not be compiled: {0}")]
    Uncompilable(String),
    /// The compiler needs more than it may have.
    #[error(
        "it could not be compiled: compiling takes more than {0} bytes of memory \
         (--plugins-compiler-memory-limit)"
    )]
    CompilerMemory(u64),
    /// The compiler takes longer than it may.
    #[error("it could not be compiled: compiling takes more than {} s", .0.as_secs())]
    CompilerTime(Duration),
    /// The compiler did not do its work, which it may do another time.
    #[error("it could not be compiled: {0}")]
    Compiler(String),
    /// The plugin is not wanted any more.
    #[error("it was replaced before it was compiled")]
    Cancelled,
    /// Others may write to the cache.
    #[error(
        "{} must be a directory that only this user can write to, because it holds machine code; \
         check its owner and run chmod 700 on it",
        .0.display()
    )]
    Untrusted(PathBuf),
}

impl CodeError {
    /// Whether the same file will fail in the same way another time.
    pub fn is_lasting(&self) -> bool {
        match self {
            CodeError::TooLarge
            | CodeError::NoComponent(_)
            | CodeError::Uncompilable(_)
            | CodeError::CompilerMemory(_)
            | CodeError::CompilerTime(_) => true,
            CodeError::File { .. }
            | CodeError::Compiler(_)
            | CodeError::Cancelled
            | CodeError::Untrusted(_) => false,
        }
    }
}

/// Cancels a compilation; clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels the compilation.
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether the compilation is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Machine code that runs, and the file where it is kept.
pub struct Code {
    /// Runs.
    pub component: Component,
    /// Where it is kept.
    pub file: PathBuf,
}

/// Where machine code is kept.
#[derive(Clone, Debug)]
pub struct CodeCache {
    directory: PathBuf,
    compiler_bytes_max: u64,
}

impl CodeCache {
    /// The one of a data directory. A compiler may take so many bytes of memory.
    pub fn of(data_dir: &Path, compiler_bytes_max: u64) -> CodeCache {
        CodeCache { directory: data_dir.join(CACHE), compiler_bytes_max }
    }

    /// The machine code of a plugin's bytes, if it is there.
    pub fn find(&self, engine: &Engine, wasm: &[u8]) -> Result<Option<Code>, CodeError> {
        check_component(wasm)?;
        self.prepare()?;
        let file = self.name(engine, wasm);
        let Some(code) = read_code(&file) else { return Ok(None) };
        match deserialize(engine, &code) {
            Ok(component) => Ok(Some(Code { component, file })),
            Err(error) => {
                tracing::warn!(file = %file.display(), "compiled code could not be loaded; compiling it again: {error:#}");
                Ok(None)
            }
        }
    }

    /// As [`CodeCache::find`], compiled if it has to be. Blocks until it is; for one caller at a
    /// time.
    pub fn load(&self, engine: &Engine, wasm: &[u8], cancel: &Cancel) -> Result<Code, CodeError> {
        if let Some(found) = self.find(engine, wasm)? {
            return Ok(found);
        }
        let file = self.name(engine, wasm);
        let source = self.directory.join("compiled.wasm");
        let compiled = write_file(&source, wasm)
            .and_then(|()| compile(&source, &file, self.compiler_bytes_max, cancel));
        // What is left of it is overwritten the next time.
        let _ = fs::remove_file(&source);
        compiled?;
        let code = read_code(&file)
            .ok_or_else(|| CodeError::Compiler("the compiler wrote no machine code".to_owned()))?;
        let component = deserialize(engine, &code)
            .map_err(|error| CodeError::Compiler(format!("{error:#}")))?;
        Ok(Code { component, file })
    }

    /// Drops all but these files. Not while something is compiled.
    pub fn keep_only(&self, kept: &[&Path]) {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        for file in files.map(|file| file.path()).filter(|path| !kept.contains(&path.as_path())) {
            // Another time will do.
            let _ = fs::remove_file(file);
        }
    }

    fn name(&self, engine: &Engine, wasm: &[u8]) -> PathBuf {
        let mut context = Context::new(&SHA256);
        context.update(&settings_hash(engine).to_le_bytes());
        context.update(wasm);
        let mut name = String::with_capacity(2 * CHECKSUM_BYTES + 5);
        for byte in context.finish().as_ref() {
            name.push_str(&format!("{byte:02x}"));
        }
        self.directory.join(name + ".code")
    }

    /// Makes the directory, or checks that it is for this user alone.
    fn prepare(&self) -> Result<(), CodeError> {
        let at = |action| file_error(action, &self.directory);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        made.map_err(at("make"))?;
        let found = fs::symlink_metadata(&self.directory).map_err(at("read the metadata of"))?;
        let is_own = found.uid() == rustix::process::geteuid().as_raw();
        let is_closed = found.permissions().mode() & 0o022 == 0;
        match found.is_dir() && is_own && is_closed {
            true => Ok(()),
            false => Err(CodeError::Untrusted(self.directory.clone())),
        }
    }
}

/// Compiles a file, in this process. Called by the child.
pub fn compile_file(engine: &Engine, source: &Path, output: &Path) -> Result<(), CodeError> {
    let wasm = read_plugin(source)?;
    let code = engine
        .precompile_component(&wasm)
        .map_err(|error| CodeError::Uncompilable(format!("{error:#}")))?;
    let checksum = digest(&SHA256, &code);
    let partial = output.with_extension("partial");
    write_file(&partial, &[checksum.as_ref(), &code].concat())?;
    fs::rename(&partial, output).map_err(file_error("rename", &partial))
}

/// Reads a plugin's file.
pub fn read_plugin(path: &Path) -> Result<Vec<u8>, CodeError> {
    let mut bytes = Vec::new();
    let file = open_regular(path).map_err(file_error("open", path))?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(file_error("read", path))?;
    if bytes.len() as u64 > FILE_BYTES_MAX { Err(CodeError::TooLarge) } else { Ok(bytes) }
}

/// Tells what is wrong before a compiler is started for it.
pub fn check_component(wasm: &[u8]) -> Result<(), CodeError> {
    let wrong = |what: &str| Err(CodeError::NoComponent(what.to_owned()));
    match wasm {
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => wrong(
            "it is a core module; build it for wasm32-wasip2, or make a component of it with \
             `wasm-tools component new`",
        ),
        _ => wrong("it does not begin with the header of a component"),
    }
}

/// What machine code depends on beside the plugin: version and configuration of the runtime.
fn settings_hash(engine: &Engine) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

/// Machine code of a file, if its checksum says that it is whole.
fn read_code(path: &Path) -> Option<Vec<u8>> {
    let mut code = fs::read(path).ok()?;
    let checksum = code.get(..CHECKSUM_BYTES)?;
    if digest(&SHA256, code.get(CHECKSUM_BYTES..)?).as_ref() != checksum {
        tracing::warn!(file = %path.display(), "compiled code is damaged; compiling it again");
        return None;
    }
    code.drain(..CHECKSUM_BYTES);
    Some(code)
}

#[allow(unsafe_code)]
fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: see above.
    unsafe { Component::deserialize(engine, code) }
}

/// Runs the compiler and waits for it.
fn compile(source: &Path, output: &Path, bytes_max: u64, cancel: &Cancel) -> Result<(), CodeError> {
    let failed = |what: String| CodeError::Compiler(what);
    let program = std::env::current_exe().map_err(file_error("find", Path::new("tidepool")))?;
    let mut child = Command::new(program)
        .args(["plugin", "compile", "--memory-limit", &bytes_max.to_string()])
        .args([source, output])
        // Held until the child is waited for: its end is the child's.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("the compiler could not be started: {error}")))?;
    let mut said = child.stderr.take();
    // Read beside it: a full pipe would stop it.
    let reading = std::thread::spawn(move || {
        let mut words = Vec::new();
        if let Some(said) = &mut said {
            // Output that cannot be read is left out.
            let _ = said.take(64 * 1024).read_to_end(&mut words);
        }
        String::from_utf8_lossy(&words).trim().to_owned()
    });
    let until = Instant::now() + COMPILE_TIME;
    let status = loop {
        let given_up = match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if cancel.is_cancelled() => CodeError::Cancelled,
            Ok(None) if Instant::now() >= until => CodeError::CompilerTime(COMPILE_TIME),
            Ok(None) => {
                std::thread::sleep(COMPILE_LOOK);
                continue;
            }
            Err(error) => failed(format!("the compiler could not be waited for: {error}")),
        };
        // It ends, or has ended.
        let _ = child.kill();
        let _ = child.wait();
        return Err(given_up);
    };
    let words = reading.join().unwrap_or_default();
    if status.success() {
        return Ok(());
    }
    let words = words.trim_start_matches("tidepool: ").to_owned();
    Err(match status.code() {
        _ if OUT_OF_MEMORY.iter().any(|sign| words.contains(sign)) => {
            CodeError::CompilerMemory(bytes_max)
        }
        Some(UNCOMPILABLE) => CodeError::Uncompilable(words),
        _ if words.is_empty() => failed(format!("the compiler ended with {status}")),
        _ => failed(words),
    })
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), CodeError> {
    let written = File::create(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(file_error("write", path))
}

fn file_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> CodeError {
    let path = path.to_owned();
    move |source| CodeError::File { action, path: path.clone(), source }
}
