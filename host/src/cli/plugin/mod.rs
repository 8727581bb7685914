//! `tidepool plugin`: creates, checks and tries plugins without a server.

mod check;
mod new;
mod run;

use crate::cli::progress::warn_line;
use clap::{Args, Subcommand};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidepool_plugins::config::{PluginSettings, World};
use tidepool_plugins::{CodeError, UNCOMPILABLE, compile_file, engine, read_plugin};

/// Commands about plugins.
#[derive(Debug, Clone, Args)]
pub struct PluginCommandArgs {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum PluginCommand {
    /// Begin a plugin in Rust: a folder that builds as it is
    New(new::NewArgs),
    /// Say whether a file is a plugin, of which world, and whether it takes its configuration
    Check(check::CheckArgs),
    /// Try a plugin on a file of samples, and show what it changes
    Run(run::RunArgs),
    /// Make machine code of a plugin: what the server starts for it
    #[command(hide = true)]
    Compile {
        /// A component.
        source: PathBuf,
        /// Where its machine code goes.
        output: PathBuf,
        /// Memory that this process may take.
        #[arg(long, value_name = "BYTES")]
        memory_limit: u64,
    },
}

/// A plugin and its settings.
#[derive(Debug, Clone, Args)]
struct PluginArg {
    /// The plugin: a .wasm file
    #[arg(value_name = "PLUGIN")]
    file: PathBuf,

    /// A file with the text that the plugin is configured with
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The world that it must be made for: transform, decoder, job or observer
    #[arg(long, value_name = "WORLD", value_parser = str::parse::<World>)]
    world: Option<World>,
}

/// Result of a command; the error is its message.
type Done = Result<(), String>;

impl PluginArg {
    fn wasm(&self) -> Result<Vec<u8>, String> {
        read_plugin(&self.file).map_err(|error| self.named(&error))
    }

    fn settings(&self) -> Result<PluginSettings, String> {
        let name = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let config = match &self.config {
            None => String::new(),
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("could not read {}: {error}", path.display()))?,
        };
        Ok(PluginSettings { config, world: self.world, ..PluginSettings::named(&name) })
    }

    fn named(&self, error: &dyn std::error::Error) -> String {
        format!("{}: {error}", self.file.display())
    }
}

pub fn run(args: PluginCommandArgs) -> ExitCode {
    let done = match args.command {
        PluginCommand::New(args) => new::run(&args),
        PluginCommand::Check(args) => check::run(&args),
        PluginCommand::Run(args) => run::run(&args),
        PluginCommand::Compile { source, output, memory_limit } => {
            return compile(&source, &output, memory_limit);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn Display) -> ExitCode {
    warn_line(&error.to_string());
    ExitCode::FAILURE
}

/// Compiles a plugin for the server that started this process. Ends when the server ends.
fn compile(source: &Path, output: &Path, bytes_max: u64) -> ExitCode {
    // On a machine with few processors, the server's ingestion must have priority.
    tidepool_lifecycle::priority::lower_priority();
    let waiting = std::thread::Builder::new().name("parent".into()).spawn(|| {
        // The server sends no input. The pipe is closed when the server ends, even by a crash.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(1);
    });
    if let Err(error) = waiting {
        return failed(&format!("no thread: {error}"));
    }
    let limit = Rlimit { current: Some(bytes_max), maximum: Some(bytes_max) };
    if let Err(error) = setrlimit(Resource::Data, limit) {
        return failed(&format!("the memory of the compiler could not be limited: {error}"));
    }
    let engine = match engine() {
        Ok(engine) => engine,
        Err(error) => return failed(&format!("{error:#}")),
    };
    match compile_file(&engine, source, output) {
        Ok(()) => ExitCode::SUCCESS,
        // A lasting failure has its own exit code, so that the server does not retry.
        Err(CodeError::Uncompilable(why)) => {
            failed(&why);
            ExitCode::from(UNCOMPILABLE as u8)
        }
        Err(error) => failed(&error),
    }
}

/// Runs plugin code, which is async because it may wait.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| format!("no async runtime: {error}"))?.block_on(work))
}
