//! The component's machine code, which is part of the program and runs in place.
//!
//! The code is not copied: the program's pages that hold the code are made executable, so that the
//! system loads only used pages, shares them between processes and frees them when memory is short.
//!
//! # Safety
//!
//! `Component::deserialize_raw` requires that its input is the output of
//! `Engine::precompile_component` and never changes: the caller of `Image::new` promises that.
//! The runtime itself refuses code of another version or configuration.
//!
//! Profilers name machine code by its address, and would show this code as a part of the program.
//! So the feature `profiling` copies it after all. A program built for size has the code in
//! compressed form, and decompresses it into memory: the code needs a third of the flash, but also
//! memory of its full size.
//!
//! Only the range that the runtime requests is made executable. That range holds only code, lies
//! inside these bytes and on pages of its own; `Pages::protect` checks the last two.

use super::tuning::Code;
use rustix::mm::{MprotectFlags, mprotect};
use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use wasmtime::component::Component;
use wasmtime::{Config, CustomCodeMemory};

#[derive(Clone, Copy, Debug)]
pub struct Image {
    interruptible: &'static [u8],
    uninterruptible: Option<&'static [u8]>,
    is_packed: bool,
}

/// The image of this process.
static IMAGE: OnceLock<Image> = OnceLock::new();

impl Image {
    /// Makes an image of both kinds of machine code. Each kind begins on a page, or is compressed
    /// with Zstandard. Without uninterruptible code, all instances run the interruptible code.
    ///
    /// # Safety
    ///
    /// Both must be outputs of `wasmtime::Engine::precompile_component`, and must never be written
    /// to.
    #[allow(unsafe_code)]
    pub const unsafe fn new(
        interruptible: &'static [u8],
        uninterruptible: Option<&'static [u8]>,
        is_packed: bool,
    ) -> Image {
        Image { interruptible, uninterruptible, is_packed }
    }

    /// Makes this the image of all instances of the process. Only the first call has an effect.
    pub fn install(self) {
        // Code that instances run already cannot be replaced.
        IMAGE.get_or_init(|| self);
    }

    /// All bytes of the installed image, none of which is ever written to. They can be returned to
    /// the system, because loading reads many pages that running never does.
    pub fn carried() -> Vec<&'static [u8]> {
        let image = IMAGE.get();
        image.map_or_else(Vec::new, |image| {
            [Some(image.interruptible), image.uninterruptible].into_iter().flatten().collect()
        })
    }

    /// Returns the image of the process.
    pub(super) fn installed() -> wasmtime::Result<Image> {
        #[cfg(test)]
        // SAFETY: the build script of the crate `tidepool_image` compiled the code.
        #[allow(unsafe_code)]
        IMAGE.get_or_init(|| unsafe {
            use tidepool_image::{INTERRUPTIBLE, IS_PACKED, UNINTERRUPTIBLE};
            Image::new(INTERRUPTIBLE, UNINTERRUPTIBLE, IS_PACKED)
        });
        IMAGE.get().copied().ok_or_else(|| wasmtime::format_err!("no machine code was installed"))
    }

    /// Returns the machine code of a kind, if the image has it.
    pub(super) fn code(self, code: Code) -> Option<&'static [u8]> {
        match code {
            Code::Interruptible => Some(self.interruptible),
            Code::Uninterruptible => self.uninterruptible,
        }
    }

    /// Configures an engine so that it can load this code.
    pub(super) fn configure(self, code: &'static [u8], config: &mut Config) {
        // Copied code is in memory of the runtime's own, which the runtime makes executable itself.
        if self.is_in_place() {
            config.with_custom_code_memory(Some(Arc::new(Pages(code))));
        }
    }

    /// Loads the component from this code.
    #[allow(unsafe_code)]
    pub(super) fn load(
        self,
        code: &'static [u8],
        engine: &wasmtime::Engine,
    ) -> wasmtime::Result<Component> {
        if self.is_in_place() {
            // SAFETY: see the head of this file.
            return unsafe { Component::deserialize_raw(engine, NonNull::from(code)) };
        }
        let unpacked = match self.is_packed {
            true => Cow::Owned(zstd::decode_all(code)?),
            false => Cow::Borrowed(code),
        };
        // SAFETY: see the head of this file.
        unsafe { Component::deserialize(engine, unpacked) }
    }

    /// Returns whether the code runs in place in the program.
    fn is_in_place(self) -> bool {
        !cfg!(feature = "profiling") && !self.is_packed
    }
}

/// The pages of the program that hold one kind of code.
struct Pages(&'static [u8]);

impl Pages {
    #[allow(unsafe_code)]
    fn protect(&self, ptr: *const u8, len: usize, flags: MprotectFlags) -> wasmtime::Result<()> {
        let all = self.0.as_ptr_range();
        // Other pages of the program must not become executable, whatever the runtime requests.
        let behind = (all.end as usize).checked_sub(ptr as usize);
        let is_inside = ptr >= all.start && behind.is_some_and(|bytes| len <= bytes);
        let page_bytes = rustix::param::page_size();
        let is_on_pages =
            (ptr as usize).is_multiple_of(page_bytes) && len.is_multiple_of(page_bytes);
        if !is_inside || !is_on_pages {
            wasmtime::bail!("the machine code does not lie on pages of its own");
        }
        // SAFETY: see the head of this file.
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
