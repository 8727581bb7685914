//! An answer as lines of text.

use super::SeriesSource;
use super::merge::decoded;
use crate::error::Result;
use crate::model::TimeRange;
use crate::text::{LineWriter, TextFormat};
use crate::wire::ChunkedSeries;

/// A position in an answer that is given as lines, a sample each.
pub struct LineCursor {
    source: Box<dyn SeriesSource>,
    range: TimeRange,
    writer: LineWriter,
    /// The series being written, and how many of its chunks are.
    series: Option<(ChunkedSeries, usize)>,
}

impl LineCursor {
    /// Writes the samples that lie in the range.
    pub fn new(source: Box<dyn SeriesSource>, range: TimeRange, format: TextFormat) -> LineCursor {
        LineCursor { source, range, writer: LineWriter::new(format), series: None }
    }

    /// Lines until they fill `bytes_max`, but for the last chunk's: at least one, none at the end.
    pub fn next(&mut self, bytes_max: u32) -> Result<String> {
        let mut out = String::new();
        while out.len() < bytes_max.max(1) as usize {
            let Some((series, written)) = &mut self.series else {
                match self.source.next_series()? {
                    None => break,
                    Some(series) => {
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
            for (timestamp_ms, value) in decoded(&series.labels, chunk)? {
                if self.range.contains(timestamp_ms) {
                    self.writer.put(&mut out, timestamp_ms, &value);
                }
            }
        }
        Ok(out)
    }
}
