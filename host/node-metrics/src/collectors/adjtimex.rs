//! `adjtimex(2)`, which no safe crate offers. Only reads the kernel's data about its clock.

#![allow(unsafe_code)]

use libc::timex;
use std::io;
use std::mem::MaybeUninit;

/// Returns the state of the clock (`TIME_OK`, …, `TIME_ERROR`), and all other data of the call.
pub(super) fn read() -> io::Result<(i32, timex)> {
    let mut timex = MaybeUninit::<timex>::zeroed();
    // SAFETY: the pointer is to a whole `timex`. Its field `modes` is 0, so the kernel changes no
    // setting and only writes to `timex`; all fields are integers, for which all bits are valid.
    let (state, timex) = unsafe {
        let state = libc::adjtimex(timex.as_mut_ptr());
        (state, timex.assume_init())
    };
    if state < 0 { Err(io::Error::last_os_error()) } else { Ok((state, timex)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sandboxes may forbid the call: then there is nothing to compare.
    #[test]
    fn the_clock_ticks_a_hundred_times_a_second() {
        match read() {
            // Within some per mille, if the clock is being adjusted.
            Ok((state, timex)) => {
                assert!((9_000..=11_000).contains(&timex.tick), "{}", timex.tick);
                assert!((libc::TIME_OK..=libc::TIME_ERROR).contains(&state), "{state}");
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}"),
        }
    }
}
