//! The component's machine code, carried inside the program and run where it lies.
//!
//! It is not copied: the pages of the program that hold it are made executable, so that the system
//! reads in what is used, shares it between processes and takes it back when memory is short.
//!
//! # Safety, once
//!
//! `Component::deserialize_raw` trusts its input to be what `Engine::precompile_component` made,
//! and to stay as it is: who makes an [`Image`] promises that. The runtime itself refuses code of
//! another version or configuration.
//!
//! Profilers name machine code by where it lies, and take this for a part of the program. So with
//! the feature `profiling` it is copied after all. A program built for size carries it packed, and
//! unpacks it into memory: a third of the flash for as much memory as the code takes.
//!
//! What is made executable is the range that the runtime names, which holds code and nothing else,
//! and lies on pages of its own inside these bytes: both is checked.

use rustix::mm::{MprotectFlags, mprotect};
use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use wasmtime::component::Component;
use wasmtime::{Config, CustomCodeMemory};

/// The component as machine code.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    code: &'static [u8],
    is_packed: bool,
}

/// The one of this process.
static IMAGE: OnceLock<Image> = OnceLock::new();

impl Image {
    /// Machine code that begins on a page, or is packed with Zstandard.
    ///
    /// # Safety
    ///
    /// It must be what `wasmtime::Engine::precompile_component` made, and it must never be written
    /// to.
    #[allow(unsafe_code)]
    pub const unsafe fn new(code: &'static [u8], is_packed: bool) -> Image {
        Image { code, is_packed }
    }

    /// Lets all instances of this process run it. The first image counts.
    pub fn install(self) {
        IMAGE.get_or_init(|| self);
    }

    fn installed() -> wasmtime::Result<Image> {
        #[cfg(test)]
        // SAFETY: its build script compiled it.
        #[allow(unsafe_code)]
        IMAGE.get_or_init(|| unsafe {
            Image::new(tidepool_image::MACHINE_CODE, tidepool_image::IS_PACKED)
        });
        IMAGE.get().copied().ok_or_else(|| wasmtime::format_err!("no machine code was installed"))
    }

    /// Whether the code runs where it lies in the program.
    fn is_in_place(self) -> bool {
        !cfg!(feature = "profiling") && !self.is_packed
    }
}

/// Lets an engine of this configuration load the component.
pub fn configure(config: &mut Config) -> wasmtime::Result<()> {
    let image = Image::installed()?;
    if image.is_in_place() {
        config.with_custom_code_memory(Some(Arc::new(Pages(image.code))));
    }
    Ok(())
}

/// Loads the component from the image that is installed.
#[allow(unsafe_code)]
pub fn load(engine: &wasmtime::Engine) -> wasmtime::Result<Component> {
    let image = Image::installed()?;
    if image.is_in_place() {
        // SAFETY: see above.
        return unsafe { Component::deserialize_raw(engine, NonNull::from(image.code)) };
    }
    let unpacked = match image.is_packed {
        true => Cow::Owned(zstd::decode_all(image.code)?),
        false => Cow::Borrowed(image.code),
    };
    // SAFETY: see above.
    unsafe { Component::deserialize(engine, unpacked) }
}

/// The pages of the program that hold the code.
struct Pages(&'static [u8]);

impl Pages {
    #[allow(unsafe_code)]
    fn protect(&self, ptr: *const u8, len: usize, flags: MprotectFlags) -> wasmtime::Result<()> {
        let all = self.0.as_ptr_range();
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
        self.protect(ptr, len, MprotectFlags::READ | MprotectFlags::EXEC)
    }

    fn unpublish_executable(&self, ptr: *const u8, len: usize) -> wasmtime::Result<()> {
        self.protect(ptr, len, MprotectFlags::READ)
    }
}
