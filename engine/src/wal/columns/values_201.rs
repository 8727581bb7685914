//! Values of type 201, which versions before type 203 wrote. They are only read.
//!
//! ```text
//!   0                           the same bits
//!   10   + change               both are exact at the series' scale: the change of their scaled
//!                               difference from the one before (0 after any other row)
//!   110  + the window's bits    XORed; all differing bits lie in the series' window
//!   1110 + 5 bits leading zeros + 6 bits width (0 is 64) + the bits   XORed; a new window
//!   1111 + 3 bits scale + change   the scaled difference at a new scale, at which both are exact
//!   change: 0, or a number of ones, a zero (except after five ones), and this many bits:
//!   10 + 8   110 + 12   1110 + 20   11110 + 32   11111 + 64, in two's complement
//! ```

use super::Series;
use super::reader::{take_scaled, take_xored};
use crate::codec::BitReader;

pub(super) fn take_value(bits: &mut BitReader<'_>, series: &mut Series) -> Option<u64> {
    // The step is taken out, since any row but a difference sets it to 0.
    let step_before = std::mem::take(&mut series.step);
    if bits.take(1)? == 0 {
        return Some(series.value_bits);
    }
    let step = if bits.take(1)? == 0 {
        step_before.wrapping_add(take_change(bits)?)
    } else if bits.take(1)? == 0 {
        return take_xored(bits, series, false);
    } else if bits.take(1)? == 0 {
        return take_xored(bits, series, true);
    } else {
        (series.scale, series.is_exact) = (bits.take(3)? as u8, true);
        take_change(bits)?
    };
    series.step = step;
    take_scaled(series, step)
}

fn take_change(bits: &mut BitReader<'_>) -> Option<i64> {
    for width in [0, 8, 12, 20, 32] {
        if bits.take(1)? == 0 {
            let folded = bits.take(width)?;
            // The topmost of the bits is the sign.
            let unused = (64 - width) % 64;
            return Some((folded << unused) as i64 >> unused);
        }
    }
    bits.take(64).map(|change| change as i64)
}
