//! How many processors the program may use.

use std::num::NonZero;

/// Their number; one if it is not known.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}
