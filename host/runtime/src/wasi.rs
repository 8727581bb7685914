//! The WASI imports of the engine's component: only those that Rust's standard library needs. None
//! of these interfaces gives the component a clock, a file or a socket.

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::p2::bindings::{cli, random, sync};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi_io::bindings::wasi::io::error;

/// Selects the resource table, which contains streams and their errors.
struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// Adds these interfaces. The test `tests/wasm-run/tests/imports.rs` has the expected list.
pub fn add_to_linker<T: WasiView>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    error::add_to_linker::<T, HasTable>(linker, |state| state.ctx().table)?;
    sync::io::poll::add_to_linker::<T, HasTable>(linker, |state| state.ctx().table)?;
    sync::io::streams::add_to_linker::<T, HasTable>(linker, |state| state.ctx().table)?;
    cli::environment::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::exit::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::stdin::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::stdout::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::stderr::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_input::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_output::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_stdin::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_stdout::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_stderr::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    // The standard library seeds its hash maps from this interface.
    random::insecure_seed::add_to_linker::<T, WasiRandom>(linker, |state| state.ctx().ctx.random())
}
