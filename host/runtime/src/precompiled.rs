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

use super::tuning::Code;
use rustix::mm::{MprotectFlags, mprotect};
use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use wasmtime::component::Component;
use wasmtime::{Config, CustomCodeMemory};

/// The component as machine code.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    interruptible: &'static [u8],
    uninterruptible: Option<&'static [u8]>,
    is_packed: bool,
}

/// The one of this process.
static IMAGE: OnceLock<Image> = OnceLock::new();

impl Image {
    /// Machine code of both kinds, each of which begins on a page, or is packed with Zstandard.
    /// Without the second, all instances run the first.
    ///
    /// # Safety
    ///
    /// It must be what `wasmtime::Engine::precompile_component` made, and it must never be written
    /// to.
    #[allow(unsafe_code)]
    pub const unsafe fn new(
        interruptible: &'static [u8],
        uninterruptible: Option<&'static [u8]>,
        is_packed: bool,
    ) -> Image {
        Image { interruptible, uninterruptible, is_packed }
    }

    /// Lets all instances of this process run it. The first image counts.
    pub fn install(self) {
        IMAGE.get_or_init(|| self);
    }

    /// All bytes of the one that is installed, none of which is ever written to. Loading reads much
    /// that running never does.
    pub fn carried() -> Vec<&'static [u8]> {
        let image = IMAGE.get();
        image.map_or_else(Vec::new, |image| {
            [Some(image.interruptible), image.uninterruptible].into_iter().flatten().collect()
        })
    }

    /// The one that is installed.
    pub(super) fn installed() -> wasmtime::Result<Image> {
        #[cfg(test)]
        // SAFETY: its build script compiled it.
        #[allow(unsafe_code)]
        IMAGE.get_or_init(|| unsafe {
            use tidepool_image::{INTERRUPTIBLE, IS_PACKED, UNINTERRUPTIBLE};
            Image::new(INTERRUPTIBLE, UNINTERRUPTIBLE, IS_PACKED)
        });
        IMAGE.get().copied().ok_or_else(|| wasmtime::format_err!("no machine code was installed"))
    }

    /// The machine code of a kind, if it has that.
    pub(super) fn code(self, code: Code) -> Option<&'static [u8]> {
        match code {
            Code::Interruptible => Some(self.interruptible),
            Code::Uninterruptible => self.uninterruptible,
        }
    }

    /// Lets an engine of this configuration load such code.
    pub(super) fn configure(self, code: &'static [u8], config: &mut Config) {
        if self.is_in_place() {
            config.with_custom_code_memory(Some(Arc::new(Pages(code))));
        }
    }

    /// Loads the component from such code.
    #[allow(unsafe_code)]
    pub(super) fn load(
        self,
        code: &'static [u8],
        engine: &wasmtime::Engine,
    ) -> wasmtime::Result<Component> {
        if self.is_in_place() {
            // SAFETY: see above.
            return unsafe { Component::deserialize_raw(engine, NonNull::from(code)) };
        }
        let unpacked = match self.is_packed {
            true => Cow::Owned(zstd::decode_all(code)?),
            false => Cow::Borrowed(code),
        };
        // SAFETY: see above.
        unsafe { Component::deserialize(engine, unpacked) }
    }

    /// Whether the code runs where it lies in the program.
    fn is_in_place(self) -> bool {
        !cfg!(feature = "profiling") && !self.is_packed
    }
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
