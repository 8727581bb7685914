//! Number of series of each metric, as `promtool check metrics --extended` shows it.

use super::families::{Families, Family};
use crate::metric::MetricType;
use std::fmt::{self, Write as _};

const PADDING: usize = 4;

/// Number of series by metric. Its `Display` prints promtool's table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cardinality {
    /// Metrics with their numbers of series; largest number first, equal ones by name.
    pub metrics: Vec<(String, usize)>,
    /// Number of series of all metrics.
    pub total: usize,
}

impl Families {
    /// Counts the series. For a histogram or summary, assumes that each series has as many buckets
    /// or quantiles as the first series.
    pub fn cardinality(&self) -> Cardinality {
        let series = |family: &Family| match family.kind {
            Some(MetricType::Histogram | MetricType::Summary) => {
                // Two further series: `_sum` and `_count`.
                family.series.len() * (2 + family.parts_of_first)
            }
            _ => family.series.len(),
        };
        let mut metrics: Vec<(String, usize)> =
            self.iter().map(|family| (family.name.clone(), series(family))).collect();
        metrics.sort_unstable_by(|(name, count), (other, more)| {
            more.cmp(count).then_with(|| name.cmp(other))
        });
        let total = metrics.iter().map(|(_, count)| count).sum();
        Cardinality { metrics, total }
    }
}

impl fmt::Display for Cardinality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["Metric", "Cardinality", "Percentage"].map(str::to_owned);
        let row = |(name, count): &(String, usize)| {
            // The total is not zero here, because each row has at least one series.
            let share = *count as f64 / self.total as f64 * 100.0;
            [name.clone(), count.to_string(), format!("{share:.2}%")]
        };
        let end = ["Total".to_owned(), self.total.to_string(), "100%".to_owned()];
        let rows = self.metrics.iter().map(row);
        let rows: Vec<[String; 3]> = [header].into_iter().chain(rows).chain([end]).collect();
        let mut widths = [0; 3];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count() + PADDING);
            }
        }
        for row in rows {
            for (cell, width) in row.iter().zip(widths) {
                write!(f, "{cell:width$}")?;
            }
            f.write_char('\n')?;
        }
        Ok(())
    }
}
