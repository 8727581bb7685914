//! The component's machine code, carried inside the binary and run where it lies.
//!
//! It is not copied: the pages of the binary that hold it are made executable, so that the system
//! reads in what is used, shares it between processes and takes it back when memory is short.
//!
//! # Safety, once
//!
//! `Component::deserialize_raw` trusts its input to be what `Engine::precompile_component` made, and
//! to stay as it is. These bytes come from our own build script, through no file that could change
//! after the build; they are constants of this program, which nobody writes to; and the runtime
//! itself refuses code of another version or configuration.
//!
//! Profilers name machine code by where it lies, and take this for a part of the program. So with the
//! feature `profiling` it is copied after all. A program built for size carries it packed, and
//! unpacks it into memory: a third of the flash for as much memory as the code takes.
//!
//! What is made executable is the range that the runtime names, which holds code and nothing else,
//! and lies on pages of its own inside these bytes: both is checked.

use rustix::mm::{MprotectFlags, mprotect};
use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::Arc;
use wasmtime::component::Component;
use wasmtime::{Config, CustomCodeMemory};

/// Bytes that begin on a page, whatever the size of pages.
#[repr(C, align(65536))]
struct OnPages<B: ?Sized>(B);

static MACHINE_CODE: &OnPages<[u8]> =
    &OnPages(*include_bytes!(concat!(env!("OUT_DIR"), "/engine.cwasm")));

/// Whether the code runs where it lies in the program.
const IN_PLACE: bool = !cfg!(any(feature = "profiling", packed_machine_code));

/// Lets an engine of this configuration load the component.
pub fn configure(config: &mut Config) {
    if IN_PLACE {
        config.with_custom_code_memory(Some(Arc::new(Pages)));
    }
}

/// Loads the component that the build script compiled.
#[allow(unsafe_code)]
pub fn load(engine: &wasmtime::Engine) -> wasmtime::Result<Component> {
    if IN_PLACE {
        // SAFETY: see above.
        return unsafe { Component::deserialize_raw(engine, NonNull::from(&MACHINE_CODE.0)) };
    }
    let unpacked = match cfg!(packed_machine_code) {
        true => Cow::Owned(zstd::decode_all(&MACHINE_CODE.0)?),
        false => Cow::Borrowed(&MACHINE_CODE.0),
    };
    // SAFETY: see above.
    unsafe { Component::deserialize(engine, unpacked) }
}

/// The pages of the binary.
struct Pages;

impl Pages {
    #[allow(unsafe_code)]
    fn protect(ptr: *const u8, len: usize, flags: MprotectFlags) -> wasmtime::Result<()> {
        let all = MACHINE_CODE.0.as_ptr_range();
        let is_inside = ptr >= all.start && len <= all.end as usize - ptr as usize;
        let page_bytes = rustix::param::page_size();
        let is_on_pages =
            (ptr as usize).is_multiple_of(page_bytes) && len.is_multiple_of(page_bytes);
        if !is_inside || !is_on_pages {
            wasmtime::bail!("the machine code does not lie on pages of its own");
        }
        // SAFETY: see above.
        unsafe { mprotect(ptr.cast_mut().cast(), len, flags) }?;
        Ok(())
    }
}

impl CustomCodeMemory for Pages {
    fn required_alignment(&self) -> usize {
        rustix::param::page_size()
    }

    fn publish_executable(&self, ptr: *const u8, len: usize) -> wasmtime::Result<()> {
        Pages::protect(ptr, len, MprotectFlags::READ | MprotectFlags::EXEC)
    }

    fn unpublish_executable(&self, ptr: *const u8, len: usize) -> wasmtime::Result<()> {
        Pages::protect(ptr, len, MprotectFlags::READ)
    }
}
