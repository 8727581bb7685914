//! Remote write 2.0 by senders whose requests begin and end anywhere.

use super::super::outcome::Outcome;
use super::super::{BenchError, Context, cuts};
use super::write::each;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Dataset;

const INTERVAL_MS: i64 = 15_000;
const SERIES: usize = 10_000;
const SCRAPES: usize = 120;
/// Maximum samples of a request, and number of connections.
const SENDERS: [(usize, usize); 6] =
    [(500, 1), (500, 4), (500, 50), (2_000, 1), (2_000, 4), (2_000, 50)];

/// Measures 10k series × 120 for each kind of sender.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let data = Dataset::generate(context.shape(SERIES, SCRAPES, INTERVAL_MS));
    for (rows_max, connections) in SENDERS {
        let load = cuts::encode(&data, Version::V2, rows_max, connections);
        let rows = format!("cuts-{rows_max}-{connections}");
        each(context, &rows, &load, &mut outcome, |_, _| Ok(()))?;
    }
    Ok(outcome)
}
