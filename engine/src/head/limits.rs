//! Decides whether the head may have one more series.
//!
//! A scrape adds series about itself, such as `up`. These report series may exceed both limits by a
//! little, so that a target whose other series are all refused still reports that it is up.

use super::HeadOptions;
use super::series_table::LookupError;
use crate::model::LABEL_NAME;

/// Names of the report series, which a scrape adds about itself.
/// Source: <https://prometheus.io/docs/concepts/jobs_instances/>
const REPORT_METRICS: [&str; 8] = [
    "up",
    "scrape_duration_seconds",
    "scrape_samples_scraped",
    "scrape_samples_post_metric_relabeling",
    "scrape_series_added",
    "scrape_timeout_seconds",
    "scrape_sample_limit",
    "scrape_body_size_bytes",
];

/// Divisor of the series limit: report series may exceed the limit by this part of it.
const REPORT_PART: u64 = 8;
/// Number of report series that may always exceed the limit.
const REPORT_SERIES_MIN: u64 = 64;

impl HeadOptions {
    /// Checks whether a new series with these labels is allowed beside `series_count` others.
    pub(super) fn check_new_series(
        &self,
        series_count: usize,
        pairs: &[(&str, &str)],
    ) -> Result<(), LookupError> {
        let HeadOptions { series_max: max, memory, .. } = *self;
        let is_within = |max: u64| self.series_max == 0 || (series_count as u64) < max;
        // Evaluated only at a limit, so that names are not compared for every new series.
        let is_report = || {
            let mut names = pairs.iter().filter(|(name, _)| *name == LABEL_NAME);
            names.any(|(_, name)| REPORT_METRICS.contains(name))
        };
        let with_reports = max.saturating_add((max / REPORT_PART).max(REPORT_SERIES_MIN));
        let has_room = is_within(max) || is_within(with_reports) && is_report();
        if !has_room {
            return Err(LookupError::SeriesLimit { max });
        }
        if memory.refuses_series() && (memory.refuses_reports() || !is_report()) {
            return Err(LookupError::MemoryLimit { max: memory.bytes_max });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryBudget;
    use crate::model::LabelLimits;

    fn judged(options: &HeadOptions, series_count: usize, name: &str) -> &'static str {
        match options.check_new_series(series_count, &[(LABEL_NAME, name), ("job", "up")]) {
            Ok(()) => "taken",
            Err(LookupError::SeriesLimit { .. }) => "limit",
            Err(LookupError::MemoryLimit { .. }) => "memory",
            Err(_) => "other",
        }
    }

    #[test]
    fn reports_exceed_the_limit_of_series_by_a_little() {
        let unlimited = HeadOptions { series_max: 0, ..HeadOptions::new(1) };
        assert_eq!(judged(&unlimited, 1 << 30, "m"), "taken");
        for (max, most) in [(1, 65), (512, 576), (8000, 9000)] {
            let options = HeadOptions { series_max: max as u64, ..unlimited };
            assert_eq!(
                (judged(&options, max - 1, "m"), judged(&options, max, "m")),
                ("taken", "limit")
            );
            let up = |count| judged(&options, count, "up");
            assert_eq!((up(max), up(most - 1), up(most)), ("taken", "taken", "limit"), "{max}");
        }
    }

    #[test]
    fn reports_exceed_the_limit_of_memory_by_a_little() {
        for (used_bytes, others, reports) in [
            ((|| 65) as fn() -> u64, "taken", "taken"),
            (|| 66, "memory", "taken"),
            (|| 70, "memory", "taken"),
            (|| 71, "memory", "memory"),
        ] {
            let memory = MemoryBudget { bytes_max: 100, used_bytes };
            let options =
                HeadOptions { memory, label_limits: LabelLimits::NONE, ..HeadOptions::new(1) };
            assert_eq!((judged(&options, 5, "m"), judged(&options, 5, "up")), (others, reports));
        }
    }
}
