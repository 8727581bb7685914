//! The number of processors that the program may use.

use std::num::NonZero;

/// Returns the number of processors for this process, or 1 if it is not known.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}
