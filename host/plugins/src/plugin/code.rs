//! Machine code of plugins, compiled in a child process and cached in the data directory.
//!
//! Compiling a large plugin needs hundreds of megabytes. A child process returns this memory when
//! it ends, has its own memory limit, runs at low priority, and cannot crash the server. The child
//! is this program, run as `tidepool plugin compile`. It ends when its standard input is closed,
//! that is, when the parent process ends.
//!
//! ```text
//! <data>/plugin-cache/<sha256 of the .wasm, runtime's version and settings>.code
//!   ┌─────────────────────────┬──────────────────────────────┐
//!   │ sha256 of the rest (32) │ machine code                 │
//!   └─────────────────────────┴──────────────────────────────┘
//! ```
//!
//! # Safety of cached code
//!
//! `Component::deserialize` trusts its input to be output of `Engine::precompile_component`. The
//! bytes come from a file that tidepool wrote to a directory to which only its user may write.
//! Owner and mode of the directory are checked. The checksum over all bytes is checked after they
//! are read and before they are used. A user who can write there could as well replace the data or
//! this program. The runtime refuses code of another version or configuration.

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

/// Directory of the cache, in the data directory.
const CACHE: &str = "plugin-cache";

/// Maximum size of a plugin's file in bytes: an interpreter with its libraries has about 40 MB.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// Longest duration of a compilation.
const COMPILE_TIME: Duration = Duration::from_secs(600);

/// Interval at which the compiler's process is polled.
const COMPILE_LOOK: Duration = Duration::from_millis(20);

/// Signs of memory exhaustion in the compiler's output: Rust's message, and the messages of the
/// operating system for mappings and for threads.
const OUT_OF_MEMORY: [&str; 3] =
    ["memory allocation of", "Cannot allocate memory", "Resource temporarily unavailable"];

/// Exit code of a compiler that refuses its input: `EX_DATAERR` of sysexits.h.
pub const UNCOMPILABLE: i32 = 65;

const CHECKSUM_BYTES: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// A file could not be read or written.
    #[error("could not {action} {}: {source}", path.display())]
    File {
        /// Operation that failed, as a verb for the message.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The file is larger than any plugin may be.
    #[error("it has more than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("it is not a WebAssembly component: {0}")]
    NoComponent(String),
    #[error("it could not be compiled: {0}")]
    Uncompilable(String),
    /// The compiler exceeded its memory limit of this many bytes.
    #[error(
        "it could not be compiled: compiling takes more than {0} bytes of memory \
         (--plugins-compiler-memory-limit)"
    )]
    CompilerMemory(u64),
    #[error("it could not be compiled: compiling takes more than {} s", .0.as_secs())]
    CompilerTime(Duration),
    /// The compiler failed for a reason that may be temporary.
    #[error("it could not be compiled: {0}")]
    Compiler(String),
    /// The plugin was replaced or removed before it was compiled.
    #[error("it was replaced before it was compiled")]
    Cancelled,
    /// Other users may write to the cache's directory.
    #[error(
        "{} must be a directory that only this user can write to, because it holds machine code; \
         check its owner and run chmod 700 on it",
        .0.display()
    )]
    Untrusted(PathBuf),
}

impl CodeError {
    /// Returns whether a retry with the same file would fail with the same error.
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

/// Flag that cancels a compilation. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Runnable machine code, and its file in the cache.
pub struct Code {
    pub component: Component,
    pub file: PathBuf,
}

/// Cache of machine code in the data directory.
#[derive(Clone, Debug)]
pub struct CodeCache {
    directory: PathBuf,
    compiler_bytes_max: u64,
}

impl CodeCache {
    /// Creates the cache of a data directory. A compiler may use `compiler_bytes_max` of memory.
    pub fn of(data_dir: &Path, compiler_bytes_max: u64) -> CodeCache {
        CodeCache { directory: data_dir.join(CACHE), compiler_bytes_max }
    }

    /// Returns the cached machine code of a plugin's bytes; `None` if it is not cached.
    pub fn find(&self, engine: &Engine, wasm: &[u8]) -> Result<Option<Code>, CodeError> {
        check_component(wasm)?;
        self.prepare()?;
        let file = self.name(engine, wasm);
        // The name contains the plugin's hash, so the file is not that of another plugin.
        let Some(code) = read_code(&file) else { return Ok(None) };
        match deserialize(engine, &code) {
            Ok(component) => Ok(Some(Code { component, file })),
            Err(error) => {
                tracing::warn!(file = %file.display(), "compiled code could not be loaded; compiling it again: {error:#}");
                Ok(None)
            }
        }
    }

    /// Returns the machine code of a plugin's bytes, and compiles it if it is not cached. Blocks
    /// until then. Must not be called concurrently.
    pub fn load(&self, engine: &Engine, wasm: &[u8], cancel: &Cancel) -> Result<Code, CodeError> {
        if let Some(found) = self.find(engine, wasm)? {
            return Ok(found);
        }
        let file = self.name(engine, wasm);
        // The compiler reads a copy, because the plugin's file may be replaced after it was hashed.
        let source = self.directory.join("compiled.wasm");
        let compiled = write_file(&source, wasm)
            .and_then(|()| compile(&source, &file, self.compiler_bytes_max, cancel));
        // A file that remains is overwritten by the next compilation.
        let _ = fs::remove_file(&source);
        compiled?;
        let code = read_code(&file)
            .ok_or_else(|| CodeError::Compiler("the compiler wrote no machine code".to_owned()))?;
        let component = deserialize(engine, &code)
            .map_err(|error| CodeError::Compiler(format!("{error:#}")))?;
        Ok(Code { component, file })
    }

    /// Deletes all files of the cache except `kept`. Must not run during a compilation.
    pub fn keep_only(&self, kept: &[&Path]) {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        for file in files.map(|file| file.path()).filter(|path| !kept.contains(&path.as_path())) {
            // A file that cannot be deleted now is deleted the next time.
            let _ = fs::remove_file(file);
        }
    }

    fn name(&self, engine: &Engine, wasm: &[u8]) -> PathBuf {
        let mut context = Context::new(&SHA256);
        // Part of the name, so that plugins are compiled again after an upgrade of the runtime.
        context.update(&settings_hash(engine).to_le_bytes());
        context.update(wasm);
        let mut name = String::with_capacity(2 * CHECKSUM_BYTES + 5);
        for byte in context.finish().as_ref() {
            name.push_str(&format!("{byte:02x}"));
        }
        self.directory.join(name + ".code")
    }

    /// Creates the directory, or checks that only this user may write to it.
    fn prepare(&self) -> Result<(), CodeError> {
        let at = |action| file_error(action, &self.directory);
        // An existing directory keeps its mode, so owner and mode are always checked below.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        made.map_err(at("make"))?;
        // Symbolic links are not followed, because another user may own the target.
        let found = fs::symlink_metadata(&self.directory).map_err(at("read the metadata of"))?;
        let is_own = found.uid() == rustix::process::geteuid().as_raw();
        let is_closed = found.permissions().mode() & 0o022 == 0;
        match found.is_dir() && is_own && is_closed {
            true => Ok(()),
            false => Err(CodeError::Untrusted(self.directory.clone())),
        }
    }
}

/// Compiles a file in this process. The child process runs this.
pub fn compile_file(engine: &Engine, source: &Path, output: &Path) -> Result<(), CodeError> {
    let wasm = read_plugin(source)?;
    let code = engine
        .precompile_component(&wasm)
        .map_err(|error| CodeError::Uncompilable(format!("{error:#}")))?;
    let checksum = digest(&SHA256, &code);
    // After the rename the file is complete, even if this process is killed.
    let partial = output.with_extension("partial");
    write_file(&partial, &[checksum.as_ref(), &code].concat())?;
    fs::rename(&partial, output).map_err(file_error("rename", &partial))
}

/// Reads a plugin's file, up to the maximum size.
pub fn read_plugin(path: &Path) -> Result<Vec<u8>, CodeError> {
    let mut bytes = Vec::new();
    // Opening a FIFO or a device would block, or reading would never end.
    let file = open_regular(path).map_err(file_error("open", path))?;
    // Reads one byte more, to detect a file that is larger than the maximum.
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(file_error("read", path))?;
    if bytes.len() as u64 > FILE_BYTES_MAX { Err(CodeError::TooLarge) } else { Ok(bytes) }
}

/// Refuses bytes that are not a component, before a compiler is started.
pub fn check_component(wasm: &[u8]) -> Result<(), CodeError> {
    let wrong = |what: &str| Err(CodeError::NoComponent(what.to_owned()));
    match wasm {
        // Version 0x0d of layer 1 is a component; version 1 of layer 0 is a core module.
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => wrong(
            "it is a core module; build it for wasm32-wasip2, or make a component of it with \
             `wasm-tools component new`",
        ),
        _ => wrong("it does not begin with the header of a component"),
    }
}

/// Returns a hash of the runtime's version and configuration, on which machine code depends.
fn settings_hash(engine: &Engine) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

/// Reads machine code from a file, if its checksum matches.
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
    // SAFETY: the module's documentation states why these bytes are trusted.
    unsafe { Component::deserialize(engine, code) }
}

/// Runs the compiler's process and waits for its end.
fn compile(source: &Path, output: &Path, bytes_max: u64, cancel: &Cancel) -> Result<(), CodeError> {
    let failed = |what: String| CodeError::Compiler(what);
    let program = std::env::current_exe().map_err(file_error("find", Path::new("tidepool")))?;
    let mut child = Command::new(program)
        .args(["plugin", "compile", "--memory-limit", &bytes_max.to_string()])
        .args([source, output])
        // Kept open until the child has ended: when it is closed, the child ends as well.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("the compiler could not be started: {error}")))?;
    let mut said = child.stderr.take();
    // Read on another thread, because the child blocks when the pipe is full.
    let reading = std::thread::spawn(move || {
        let mut words = Vec::new();
        if let Some(said) = &mut said {
            // If the output cannot be read, only the message is lost.
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
        // Fails only if the child has already ended.
        let _ = child.kill();
        let _ = child.wait();
        return Err(given_up);
    };
    let words = reading.join().unwrap_or_default();
    if status.success() {
        return Ok(());
    }
    // Without the program's name, which the enclosing message does not need.
    let words = words.trim_start_matches("tidepool: ").to_owned();
    Err(match status.code() {
        // A failed allocation aborts without an exit code, so the message is checked first.
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
