//! The `tidepool` binary: `tidepool_host` with the engine's machine code. A package of its own, so
//! that a change of the engine rebuilds only this part of the host.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::process::ExitCode;
use tidepool_image::{INTERRUPTIBLE, IS_PACKED, UNINTERRUPTIBLE};
use tidepool_runtime::Image;

fn main() -> ExitCode {
    // SAFETY: the build script of the image compiled this code, and nothing writes to it.
    #[allow(unsafe_code)]
    let image = unsafe { Image::new(INTERRUPTIBLE, UNINTERRUPTIBLE, IS_PACKED) };
    tidepool_host::program::run(image)
}
