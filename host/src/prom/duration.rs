//! Durations and sizes as Prometheus prints them.

use std::time::Duration;

/// A duration with the largest units that fit: `1d12h`, `15d`, `2h`, `0s`. Years and weeks only
/// stand for whole ones, as upstream has it (`model.Duration` in prometheus/common).
pub fn duration_text(duration: Duration) -> String {
    const UNITS: [(&str, u128, bool); 7] = [
        ("y", 31_536_000_000, true),
        ("w", 604_800_000, true),
        ("d", 86_400_000, false),
        ("h", 3_600_000, false),
        ("m", 60_000, false),
        ("s", 1000, false),
        ("ms", 1, false),
    ];
    let mut rest_ms = duration.as_millis();
    if rest_ms == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, unit_ms, is_whole) in UNITS {
        let count = rest_ms / unit_ms;
        if count > 0 && (!is_whole || rest_ms.is_multiple_of(unit_ms)) {
            text += &format!("{count}{unit}");
            rest_ms %= unit_ms;
        }
    }
    text
}

/// A size in the largest unit of which it is a whole number: `128MiB`.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = |(_, shift): &&(&str, u32)| bytes > 0 && bytes.trailing_zeros() >= *shift;
    match UNITS.iter().find(fits) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_printed_as_prometheus_prints_them() {
        for (seconds, expected) in [
            (0, "0s"),
            (7200, "2h"),
            (129_600, "1d12h"),
            (15 * 86400, "15d"),
            (14 * 86400, "2w"),
            (365 * 86400, "1y"),
            (90, "1m30s"),
        ] {
            assert_eq!(duration_text(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(duration_text(Duration::from_millis(1500)), "1s500ms");
        assert_eq!(size_text(128 << 20), "128MiB");
        assert_eq!((size_text(0), size_text(1025)), ("0B".to_owned(), "1025B".to_owned()));
    }
}
