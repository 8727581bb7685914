//! Zstandard frames: by the C library, or on WebAssembly by a Rust library that only decompresses.

#[cfg(any(test, target_arch = "wasm32"))]
mod pure;
#[cfg(not(target_arch = "wasm32"))]
mod system;

#[cfg(target_arch = "wasm32")]
pub use pure::{Packer, Unpacker, packed_bytes_max};
#[cfg(not(target_arch = "wasm32"))]
pub use system::{Packer, Unpacker, packed_bytes_max};
