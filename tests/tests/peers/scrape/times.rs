//! Samples with timestamps of their own.

use super::exposer::{Page, Scripts};
use super::{Pair, configuration, job};

#[test]
fn timestamps_of_pages_are_those_of_prometheus() {
    let scripts = |base_ms: i64| {
        let at = |seconds: i64| base_ms - seconds * 1_000;
        let text = |lines: &[(&str, i64, i64)], rest: &str| {
            let lines = lines
                .iter()
                .map(|(series, value, seconds)| format!("{series} {value} {}\n", at(*seconds)));
            Page::text(&(lines.collect::<String>() + rest))
        };
        let pages = vec![
            text(&[("a", 1, 90), ("b", 1, 90)], "now 1\n"),
            text(&[("a", 2, 80), ("b", 2, 85)], "now 2\n"),
            // The same sample again, another value at the same time, one that is older.
            text(&[("a", 2, 80), ("b", 3, 85)], "now 3\n"),
            text(&[("a", 4, 95), ("b", 4, 70)], "now 4\n"),
            // Absent, but only marked as stale if the job says so.
            text(&[("a", 5, 60)], "now 5\n"),
            text(&[("a", 6, 50), ("b", 6, 50)], "now 6\nc 6\n"),
            // Alternately with a time and without.
            text(&[("c", 7, 40)], "a 7\nb 7\n"),
            // Several samples of one series, in either order.
            text(&[("d", 1, 30), ("d", 2, 29), ("e", 1, 29), ("e", 2, 30)], ""),
            // Too old for the head, and far in the future.
            text(&[("f", 1, 4 * 3600), ("g", 1, -3600), ("h", 1, -300)], "now 9\n"),
            text(&[("h", 2, -310)], "now 10\n").cut(),
            Page::openmetrics(&format!(
                "a 11 {}.125\nb 11 {}\n# EOF\n",
                base_ms / 1_000 - 20,
                base_ms / 1_000 - 20
            )),
            Page::text("now 12\n"),
        ];
        // No sample of these is refused: `scrape_series_added` is compared, too.
        let in_order = vec![
            text(&[("a", 1, 90), ("b", 1, 90)], "now 1\n"),
            text(&[("a", 2, 80), ("b", 2, 85)], "now 2\n"),
            text(&[("a", 3, 70)], "now 3\n"),
            text(&[("a", 4, 60), ("c", 4, 60)], ""),
            text(&[("c", 5, 50)], "now 5\n"),
            text(&[("c", 6, 40)], "now 6\n").cut(),
            text(&[("d", 7, 30)], "now 7\n"),
            Page::text("now 8\n"),
        ];
        let paths = ["/refused", "/refused_ends", "/ignored", "/both"];
        let mut scripts = Scripts::from(paths.map(|path| (path, pages.clone())));
        scripts.extend(["/honored", "/tracked"].map(|path| (path, in_order.clone())));
        scripts
    };
    let jobs = [
        job("refused", ""),
        // A refused sample of a tracked series does not count: the series ends at the time of the
        // scrape, and all earlier samples are refused from then on.
        job("refused_ends", "track_timestamps_staleness: true"),
        job("honored", ""),
        job("ignored", "honor_timestamps: false"),
        job("tracked", "track_timestamps_staleness: true"),
        job("both", "honor_timestamps: false\ntrack_timestamps_staleness: true"),
    ];
    let pair = Pair::start(&configuration(&jobs), scripts);
    pair.assert_same(jobs.len(), 12, 2.0);
}
