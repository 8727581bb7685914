//! The engine for tests and benchmarks of the host.

use tidepool_image::{INTERRUPTIBLE, IS_PACKED, UNINTERRUPTIBLE};
use tidepool_runtime::Image;

/// Installs the engine as the program does.
pub fn install() {
    // SAFETY: its build script compiled it.
    #[allow(unsafe_code)]
    unsafe { Image::new(INTERRUPTIBLE, UNINTERRUPTIBLE, IS_PACKED) }.install();
}
