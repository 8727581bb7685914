//! An answer as lines of text.

use super::merge::decoded;
use super::{Damages, SeriesSource};
use crate::chunk::StartedValue;
use crate::error::Result;
use crate::model::TimeRange;
use crate::text::{LineWriter, TextFormat};
use crate::wire::ChunkedSeries;

/// A position in an answer of lines, one for each sample.
pub struct LineCursor {
    source: Box<dyn SeriesSource>,
    range: TimeRange,
    writer: LineWriter,
    /// Damage that the source has skipped.
    damages: Damages,
    series: Option<(ChunkedSeries, usize)>,
    is_at_end: bool,
}

impl LineCursor {
    /// Makes a cursor on the samples in the range of a source that reports damage in `damages`.
    pub fn new(
        source: Box<dyn SeriesSource>,
        damages: Damages,
        range: TimeRange,
        format: TextFormat,
    ) -> LineCursor {
        let writer = LineWriter::new(format);
        LineCursor { source, range, writer, damages, series: None, is_at_end: false }
    }

    /// Returns the lines of whole chunks until they reach `bytes_max`: at least one, or none at the
    /// end. An error reports one skipped damage; the next call continues after the damage.
    pub fn next(&mut self, bytes_max: u32) -> Result<String> {
        let mut out = String::new();
        while out.len() < bytes_max.max(1) as usize {
            // Lines before damage are returned first, and the damage by the next call.
            match self.damages.is_empty() {
                true => {}
                false if !out.is_empty() => break,
                false => return self.damages.take().map_or(Ok(out), Err),
            }
            let Some((series, written)) = &mut self.series else {
                match self.next_series() {
                    Err(damage) => {
                        self.damages.put(damage);
                        continue;
                    }
                    // The source may have skipped damage after its last series.
                    Ok(None) if self.damages.is_empty() => break,
                    Ok(None) => continue,
                    Ok(Some(series)) => {
                        self.writer.begin_series(&series.labels);
                        self.series = Some((series, 0));
                        continue;
                    }
                }
            };
            let Some(chunk) = series.chunks.get(*written) else {
                self.series = None;
                continue;
            };
            *written += 1;
            match decoded(&series.labels, chunk) {
                Err(damage) => self.damages.put(damage),
                Ok(values) => {
                    for StartedValue { timestamp_ms, value, .. } in values {
                        if self.range.contains(timestamp_ms) {
                            self.writer.put(&mut out, timestamp_ms, &value);
                        }
                    }
                }
            }
        }
        Ok(out)
    }

    /// Returns the next series. The source could not skip an error, so the series end with it.
    fn next_series(&mut self) -> Result<Option<ChunkedSeries>> {
        if self.is_at_end {
            return Ok(None);
        }
        let next = self.source.next_series();
        self.is_at_end = !matches!(next, Ok(Some(_)));
        next
    }
}
