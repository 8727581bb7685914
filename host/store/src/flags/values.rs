//! Parsers of flags' values, with their bounds.

use crate::space::DiskShare;
use std::time::Duration;
use tidepool_settings::duration::{bytes, duration};

/// Minimum span of a block that the engine accepts.
const BLOCK_DURATION_MIN: Duration = Duration::from_secs(1);

/// Size of a page of the log.
const PAGE_BYTES: u64 = 32 << 10;

/// Maximum time between two syncs of the log.
const SYNC_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// Parses the span of a block, a second at least.
pub(super) fn block_duration(text: &str) -> Result<Duration, String> {
    let span = duration(text)?;
    match span >= BLOCK_DURATION_MIN {
        true => Ok(span),
        false => Err("the least value is 1s".to_owned()),
    }
}

/// Parses a size of log segments, which consist of whole pages.
pub(super) fn segment_size(text: &str) -> Result<u64, String> {
    let size = bytes(text)?;
    match size > 0 && size.is_multiple_of(PAGE_BYTES) {
        true => Ok(size),
        false => Err("the size must be a multiple of 32KiB, and not 0".to_owned()),
    }
}

/// Parses a number of open files, one at least.
pub(super) fn open_files(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{text:?} is not a whole number from 1 on")),
    }
}

/// Parses an interval of syncs. The bound limits the loss if the unit is wrong.
pub(super) fn sync_interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    match interval <= SYNC_INTERVAL_MAX {
        true => Ok(interval),
        false => Err("the largest value is 1h: a power cut loses what was not synced".into()),
    }
}

/// Parses a size, or a share of the disk such as `5%`.
pub(super) fn disk_share(text: &str) -> Result<DiskShare, String> {
    let Some(percent) = text.strip_suffix('%') else { return bytes(text).map(DiskShare::Bytes) };
    match percent.parse::<f64>() {
        // NaN fails both comparisons.
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(DiskShare::Percent(percent)),
        _ => Err(format!("{text:?} is not a percentage between 0% and 100%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_and_parts_of_a_disk_have_bounds() {
        assert_eq!(sync_interval("1h"), Ok(Duration::from_secs(3600)));
        assert!(sync_interval("61m").is_err_and(|error| error.contains("1h")));
        assert!(block_duration("1s").is_ok() && block_duration("999ms").is_err());
        assert!(segment_size("64KiB").is_ok());
        for wrong in ["0", "1", "33KiB"] {
            assert!(segment_size(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(disk_share("80%"), Ok(DiskShare::Percent(80.0)));
        assert_eq!(disk_share("0.5%"), Ok(DiskShare::Percent(0.5)));
        assert_eq!(disk_share("64MB"), Ok(DiskShare::Bytes(64 << 20)));
        for wrong in ["", "%", "0%", "101%", "-1%", "NaN%", "5 %", "5.5"] {
            assert!(disk_share(wrong).is_err(), "{wrong:?}");
        }
    }
}
