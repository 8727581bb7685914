//! The engine that tests and benchmarks of the host run.

use tidepool_host::wasm::Image;

/// Installs it, as the program does.
pub fn install() {
    // SAFETY: its build script compiled it.
    #[allow(unsafe_code)]
    unsafe { Image::new(tidepool_image::MACHINE_CODE, tidepool_image::IS_PACKED) }.install();
}
