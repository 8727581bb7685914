//! Properties of a feature's flags ([`Marks`]), and parsers of bounded values that several features
//! use. Parsers of durations and sizes are in [`super::duration`].

use super::duration::{bytes, size_text};

/// Maximum number of concurrent operations; each operation has its own engine instance.
const CONCURRENCY_MAX: usize = 10_000;

/// Largest number up to which floats represent every whole number.
const COUNT_EXACT_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

/// Properties of a feature's flags. Flags are named here without their dashes.
///
/// The crate of a feature owns its flags: a struct that clap fills, and the struct's marks. The
/// program joins all structs to one command line; its tests check that marks name existing flags.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// Flags that the short help shows, in the order in which they are declared.
    pub short: &'static [&'static str],
    /// Flags and sections whose new value takes effect at a reload. All others need a restart.
    pub reloadable: &'static [&'static str],
    /// Flags of Prometheus with the same meaning: Prometheus' name, then the name here.
    pub prometheus: &'static [(&'static str, &'static str)],
    /// Flags whose values are URLs; secret parts of the values are not shown.
    pub urls: &'static [&'static str],
}

impl Marks {
    /// Marks of a feature none of whose flags has such a property.
    pub const NONE: Marks = Marks { short: &[], reloadable: &[], prometheus: &[], urls: &[] };
}

/// Returns a parser of sizes that refuses sizes below `bytes_min`.
pub fn at_least(bytes_min: u64) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    move |text| match bytes(text)? {
        size if size >= bytes_min => Ok(size),
        _ => Err(format!("the least value is {}", size_text(bytes_min))),
    }
}

/// Parses a whole number, also in the form `5e7`, which Prometheus' help uses.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a whole number such as 50000000 or 5e7");
    // Parsed as an integer first, because a float would round numbers above 2⁵³.
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let number: f64 = text.parse().map_err(|_| wrong())?;
    // NaN and infinity have no fraction of zero, so this refuses them, too.
    let is_count = number.fract() == 0.0 && (0.0..=COUNT_EXACT_MAX).contains(&number);
    if is_count { Ok(number as u64) } else { Err(wrong()) }
}

/// Parses a number of concurrent operations.
pub fn concurrency(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=CONCURRENCY_MAX).contains(&number) => Ok(number),
        _ => Err(format!("the value must be a number from 1 to {CONCURRENCY_MAX}")),
    }
}

/// Converts a size to `usize`; a size that does not fit becomes the largest `usize`.
pub fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_bounds() {
        assert_eq!((concurrency("1"), concurrency("10000")), (Ok(1), Ok(10_000)));
        for wrong in ["0", "-1", "10001", "18446744073709551615", "many"] {
            assert!(concurrency(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!((count("5e7"), count("0")), (Ok(50_000_000), Ok(0)));
        for wrong in ["", "-1", "1.5", "1e17", "NaN", "inf", "many"] {
            assert!(count(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(at_least(8 << 20)("8MiB"), Ok(8 << 20));
        let too_small = at_least(8 << 20)("8388607");
        assert!(too_small.is_err_and(|error| error.contains("8MiB")));
    }
}
