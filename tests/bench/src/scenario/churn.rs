//! Targets that change: of 180 with 1000 series each, 60 % are replaced every quarter of an hour,
//! so that there are half a million series after an hour.

use super::super::load::Load;
use super::super::outcome::Outcome;
use super::super::{BenchError, Context};
use super::write::each;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Dataset, Series, Shape, fleet};

const TARGETS: usize = 180;
const TARGETS_QUICK: usize = 10;
const SERIES_PER_TARGET: usize = 1_000;
const SERIES_PER_TARGET_QUICK: usize = 10;
const INTERVAL_MS: i64 = 60_000;
const QUARTER_SCRAPES: usize = 15;
const QUARTERS: usize = 4;
/// Number of new targets among five in each quarter.
const REPLACED_OF_FIVE: usize = 3;
/// Number of connections that carry the targets.
const CONNECTIONS: usize = 20;

/// Measures both versions of remote write.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    for version in Version::ALL {
        let targets = context.sized(TARGETS, TARGETS_QUICK);
        let per_target = context.sized(SERIES_PER_TARGET, SERIES_PER_TARGET_QUICK);
        // Only the times of this shape are used.
        let shape = Shape {
            scrapes: QUARTERS * QUARTER_SCRAPES,
            start_ms: tidepool_tests::clock::now_ms()
                - (QUARTERS * QUARTER_SCRAPES) as i64 * INTERVAL_MS,
            ..context.shape(targets * per_target, 1, INTERVAL_MS)
        };
        let data = Dataset { shape, series: lives(&shape, targets, per_target) };
        eprintln!("  {} series", data.series.len());
        let load = Load::encode(&data, version, per_target, CONNECTIONS.min(targets));
        drop(data);
        each(context, "churn", &load, &mut outcome, |_, _| Ok(()))?;
    }
    Ok(outcome)
}

/// Returns the series of all targets, in the order of targets: a target stays on one connection,
/// because each scrape has exactly one of its generations.
fn lives(shape: &Shape, targets: usize, per_target: usize) -> Vec<Series> {
    let mut all = Vec::new();
    let mut number = 0;
    for target in 0..targets {
        let is_replaced =
            |quarter: &usize| *quarter > 0 && (target + 2 * quarter) % 5 < REPLACED_OF_FIVE;
        let mut births: Vec<usize> = (0..QUARTERS).filter(is_replaced).collect();
        births.insert(0, 0);
        let ends = births.iter().skip(1).copied().chain([QUARTERS]);
        for (birth, end) in births.iter().zip(ends) {
            let life = Shape {
                scrapes: (end - birth) * QUARTER_SCRAPES,
                start_ms: shape.start_ms + (birth * QUARTER_SCRAPES) as i64 * shape.interval_ms,
                ..*shape
            };
            all.extend((number..number + per_target).map(|index| fleet::series(&life, index)));
            number += per_target;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_tests::series::Texture;

    #[test]
    fn three_of_five_targets_are_new_in_each_quarter() {
        let shape = Shape {
            seed: 1,
            series: 0,
            scrapes: QUARTERS * QUARTER_SCRAPES,
            start_ms: 0,
            interval_ms: INTERVAL_MS,
            texture: Texture::Regular,
        };
        let series = lives(&shape, 10, 2);
        assert_eq!(series.len(), 20 + (QUARTERS - 1) * 12);
        let data = Dataset { shape, series };
        assert!(data.scrapes().all(|rows| rows.len() == 20));
    }
}
