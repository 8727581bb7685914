//! The engine's component as machine code, which the build script compiled for the target of the
//! build.

/// Bytes that begin on a page, whatever the size of pages: the code runs where it lies.
#[repr(C, align(65536))]
struct OnPages<B: ?Sized>(B);

static ON_PAGES: &OnPages<[u8]> =
    &OnPages(*include_bytes!(concat!(env!("OUT_DIR"), "/engine.cwasm")));

/// What `wasmtime::Engine::precompile_component` gave.
pub static MACHINE_CODE: &[u8] = &ON_PAGES.0;

/// Whether it is packed with Zstandard, as in programs built for size.
pub const IS_PACKED: bool = cfg!(packed_machine_code);
