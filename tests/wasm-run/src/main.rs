//! Runs a WASI command: `wasm-run FILE.wasm [ARGUMENT]...`
//!
//! The runner of `cargo test --target wasm32-wasip2`, so that the engine's tests run as wasm in the
//! runtime that tidepool embeds. The command gets the arguments, the environment, standard input
//! and output, and the current directory as `.`; no network. A directory that `WASM_RUN_READ_DIR`
//! names is there under its own path, to be read. The exit code is passed on. A trap
//! ends with the code of an aborted process, which test harnesses report as a failure.

use std::path::Path;
use std::process::ExitCode;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, ResourceType};
use wasmtime::error::Context;
use wasmtime::{Config, Engine, Store};
use wasmtime_wasi::p2::bindings::sync::Command;
use wasmtime_wasi::{FsPerms, I32Exit, ResourceTable, WasiCtx, WasiCtxView, WasiView};

/// Variable that names a directory which the command may read.
const READ_DIR: &str = "WASM_RUN_READ_DIR";

/// Exit code for the runner's own failures: a missing file, or no component.
const EXIT_FAILURE: u8 = 1;

/// Exit code for a trap, as shells report a process that aborted.
const EXIT_TRAP: u8 = 134;

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("wasm-run: {error:#}");
            ExitCode::from(EXIT_FAILURE)
        }
    }
}

/// Runs the command that the first argument names; its own arguments are the name and all that
/// follow.
fn run(arguments: &[String]) -> wasmtime::Result<u8> {
    let Some(file) = arguments.first() else {
        wasmtime::bail!("usage: wasm-run FILE.wasm [ARGUMENT]...")
    };
    let engine = Engine::new(&Config::new())?;
    let component =
        wasm_run::load(&engine, Path::new(file)).context(format!("cannot load {file}"))?;
    let mut linker = Linker::<State>::new(&engine);
    wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?;
    stub_imports(&mut linker, &component)?;

    let mut wasi = WasiCtx::builder();
    wasi.args(arguments)
        .inherit_env()
        // A failed assertion ends the process, and output captured by the harness would be lost.
        .env("RUST_TEST_NOCAPTURE", "1")
        .inherit_stdio()
        // Nothing else runs on this thread, so waiting may block it.
        .allow_blocking_current_thread(true)
        .preopened_dir(".", ".", FsPerms::ReadWrite)?;
    if let Ok(directory) = std::env::var(READ_DIR) {
        wasi.preopened_dir(&directory, &directory, FsPerms::ReadOnly)?;
    }
    let mut store = Store::new(&engine, State { wasi: wasi.build(), table: ResourceTable::new() });
    let command = Command::instantiate(&mut store, &component, &linker)?;
    match command.wasi_cli_run().call_run(&mut store) {
        Ok(Ok(())) => Ok(0),
        Ok(Err(())) => Ok(1),
        Err(error) => match error.downcast_ref::<I32Exit>() {
            // Keeps the low eight bits, as operating systems do.
            Some(exit) => Ok(exit.0 as u8),
            None => {
                eprintln!("wasm-run: {file} trapped: {error:?}");
                Ok(EXIT_TRAP)
            }
        },
    }
}

/// Defines every imported interface that is not WASI's by functions that trap and name themselves.
///
/// The engine's test program also contains its component face, whose imports no test calls: tests
/// bring storage of their own.
fn stub_imports(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    for (interface, import) in component.component_type().imports(&engine) {
        let ComponentItem::ComponentInstance(instance) = import.ty else { continue };
        if interface.starts_with("wasi:") {
            continue;
        }
        let mut stub = linker.instance(interface)?;
        for (name, export) in instance.exports(&engine) {
            match export.ty {
                ComponentItem::ComponentFunc(_) => {
                    let full_name = format!("{interface}#{name}");
                    stub.func_new(name, move |_, _, _, _| {
                        wasmtime::bail!(
                            "wasm-run answers nothing but WASI, and {full_name} was called"
                        )
                    })?;
                }
                ComponentItem::Resource(_) => {
                    stub.resource(name, ResourceType::host::<()>(), |_, _| Ok(()))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}
