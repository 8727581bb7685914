//! What the flags of a feature are made of: [`Marks`], and values with bounds that several features
//! take. Durations and sizes are in [`super::duration`].

use super::duration::{bytes, size_text};

/// Most operations that may run at a time; each has an engine instance of its own.
const CONCURRENCY_MAX: usize = 10_000;

/// Up to here a floating-point number tells all whole ones apart.
const COUNT_EXACT_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

/// What is true of some flags of a feature, which are named without their dashes.
///
/// The crate of a feature owns its flags: a struct that clap fills, with its marks beside it. The
/// program makes one command line of all, and compares marks and flags in its tests.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// The short help lists them. In the order in which they are declared.
    pub short: &'static [&'static str],
    /// A new value takes effect when the configuration is reloaded; so does a new section of that
    /// name. All others need a restart.
    pub reloadable: &'static [&'static str],
    /// Prometheus' names of flags that mean the same, each with ours.
    pub prometheus: &'static [(&'static str, &'static str)],
    /// The values are URLs, which are shown without secrets.
    pub urls: &'static [&'static str],
}

impl Marks {
    /// Of flags of which nothing is true.
    pub const NONE: Marks = Marks { short: &[], reloadable: &[], prometheus: &[], urls: &[] };
}

/// Reads a size of at least this many bytes, such as the memory without which nothing works.
pub fn at_least(bytes_min: u64) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    move |text| match bytes(text)? {
        size if size >= bytes_min => Ok(size),
        _ => Err(format!("the least value is {}", size_text(bytes_min))),
    }
}

/// Reads a whole number, also as Prometheus' own help writes it: `5e7`.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a whole number such as 50000000 or 5e7");
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let number: f64 = text.parse().map_err(|_| wrong())?;
    let is_count = number.fract() == 0.0 && (0.0..=COUNT_EXACT_MAX).contains(&number);
    if is_count { Ok(number as u64) } else { Err(wrong()) }
}

/// Reads how many operations may run at a time.
pub fn concurrency(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=CONCURRENCY_MAX).contains(&number) => Ok(number),
        _ => Err(format!("the value must be a number from 1 to {CONCURRENCY_MAX}")),
    }
}

/// As many bytes as an address can count.
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
