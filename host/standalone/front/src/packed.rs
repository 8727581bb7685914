//! `packed`: columns of samples as base64, with eight little-endian bytes per row.

use crate::Component;
use crate::answer::OpenAnswer;
use crate::bindings::exports::tidepool::standalone::packed::{Answer, Columns, Guest};
use crate::bindings::tidepool::tsdb::store::{self, WriteOutcome};
use crate::bindings::tidepool::tsdb::types::{Error, Matcher, TimeRange};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const ROW_BYTES: usize = 8;

impl Guest for Component {
    type Answer = OpenAnswer;

    fn append(rows: Columns, now_ms: i64) -> Result<WriteOutcome, Error> {
        let rows = store::Columns {
            series: unpacked("series", &rows.series, u64::from_le_bytes)?,
            timestamps_ms: unpacked("timestamps-ms", &rows.timestamps_ms, i64::from_le_bytes)?,
            values: unpacked("values", &rows.values, f64::from_le_bytes)?,
        };
        store::append(&rows, now_ms)
    }

    fn select(matchers: Vec<Matcher>, range: TimeRange) -> Result<Answer, Error> {
        OpenAnswer::open(matchers, range).map(Answer::new)
    }
}

/// Decodes a column of a batch. The store checks that all columns have the same length.
fn unpacked<T>(
    name: &str,
    column: &str,
    from_bytes: fn([u8; ROW_BYTES]) -> T,
) -> Result<Vec<T>, Error> {
    let bytes = STANDARD
        .decode(column)
        .map_err(|error| Error::Invalid(format!("the column `{name}` is not base64: {error}")))?;
    let (rows, rest) = bytes.as_chunks();
    match rest {
        [] => Ok(rows.iter().map(|row| from_bytes(*row)).collect()),
        _ => Err(Error::Invalid(format!(
            "the column `{name}` has {} bytes, and a row takes {ROW_BYTES}",
            bytes.len()
        ))),
    }
}

pub fn packed(rows: &[[u8; ROW_BYTES]]) -> String {
    STANDARD.encode(rows.as_flattened())
}
