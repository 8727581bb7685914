//! The engine's WebAssembly component, which the build script compiled ahead of time to machine
//! code for the target of the build (`wasmtime::Engine::precompile_component`).
//!
//! Invariant: made with the configuration of `runtime/src/tuning.rs`, without which the runtime
//! refuses it.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

/// Bytes aligned to the largest page size (64 KiB), so that machine code runs in place.
#[repr(C, align(65536))]
struct OnPages<B: ?Sized>(B);

static INTERRUPTIBLE_ON_PAGES: &OnPages<[u8]> =
    &OnPages(*include_bytes!(concat!(env!("OUT_DIR"), "/interruptible.cwasm")));

#[cfg(not(for_size))]
static UNINTERRUPTIBLE_ON_PAGES: &OnPages<[u8]> =
    &OnPages(*include_bytes!(concat!(env!("OUT_DIR"), "/uninterruptible.cwasm")));

/// Machine code whose calls end at a deadline.
pub static INTERRUPTIBLE: &[u8] = &INTERRUPTIBLE_ON_PAGES.0;

/// Machine code whose calls nothing ends. Programs built for size have `INTERRUPTIBLE` only.
#[cfg(not(for_size))]
pub static UNINTERRUPTIBLE: Option<&[u8]> = Some(&UNINTERRUPTIBLE_ON_PAGES.0);

/// Machine code whose calls nothing ends. Programs built for size have `INTERRUPTIBLE` only.
#[cfg(for_size)]
pub static UNINTERRUPTIBLE: Option<&[u8]> = None;

/// Whether the machine code is packed with Zstandard, as in programs built for size.
pub const IS_PACKED: bool = cfg!(for_size);
