//! The component's machine code, carried inside the binary.

use wasmtime::component::Component;

static MACHINE_CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/engine.cwasm"));

/// Loads the component that the build script compiled.
///
/// # Safety, once
///
/// `Component::deserialize` trusts its input to be what `Engine::precompile_component` made. These
/// bytes come from our own build script, through no file that could change after the build, and
/// the runtime itself refuses code of another version or configuration.
#[allow(unsafe_code)]
pub fn load(engine: &wasmtime::Engine) -> wasmtime::Result<Component> {
    // SAFETY: see above.
    unsafe { Component::deserialize(engine, MACHINE_CODE) }
}
