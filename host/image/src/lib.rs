//! The engine's WebAssembly component, compiled ahead of time by the build script to machine code
//! for the target of the build (`wasmtime::Engine::precompile_component`).
//!
//! Invariant: the code is compiled with the configuration in `runtime/src/tuning.rs`. The runtime
//! refuses code of another configuration.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

/// Bytes aligned to the largest page size (64 KiB), so that machine code can run in place.
#[repr(C, align(65536))]
struct OnPages<B: ?Sized>(B);

static INTERRUPTIBLE_ON_PAGES: &OnPages<[u8]> =
    &OnPages(*include_bytes!(concat!(env!("OUT_DIR"), "/interruptible.cwasm")));

#[cfg(not(for_size))]
static UNINTERRUPTIBLE_ON_PAGES: &OnPages<[u8]> =
    &OnPages(*include_bytes!(concat!(env!("OUT_DIR"), "/uninterruptible.cwasm")));

/// Machine code in which calls can be ended at a deadline.
pub static INTERRUPTIBLE: &[u8] = &INTERRUPTIBLE_ON_PAGES.0;

/// Machine code in which calls cannot be ended. Programs built for size only have the other kind.
#[cfg(not(for_size))]
pub static UNINTERRUPTIBLE: Option<&[u8]> = Some(&UNINTERRUPTIBLE_ON_PAGES.0);

/// Machine code in which calls cannot be ended. Programs built for size only have the other kind.
#[cfg(for_size)]
pub static UNINTERRUPTIBLE: Option<&[u8]> = None;

/// Whether the machine code is compressed with Zstandard, as in programs built for size.
pub const IS_PACKED: bool = cfg!(for_size);
