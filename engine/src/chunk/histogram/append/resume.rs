//! Continues a chunk of which only the bytes are known, not the state of its appender.

use super::{ChunkCount, HistogramAppender};
use crate::chunk::histogram::HistogramIter;

impl<C: ChunkCount> HistogramAppender<C> {
    /// Rebuilds the appender that made these bytes; `None` if no appender makes such bytes.
    pub fn resume(data: &[u8]) -> Option<HistogramAppender<C>> {
        let mut samples = HistogramIter::<C>::new(data).ok()?;
        let header = samples.header();
        let (timestamp_ms, first) = samples.next()?.ok()?;
        first.check_shape().ok()?;
        let layout = first.layout.clone();
        let mut appender = HistogramAppender::new(timestamp_ms, &first, header);
        appender.out.reserve(data.len());
        for sample in samples {
            let (timestamp_ms, histogram) = sample.ok()?;
            // `put` requires the layout that all samples of the chunk share.
            if !histogram.is_stale() && histogram.layout != layout {
                return None;
            }
            appender.put(timestamp_ms, &histogram);
        }
        appender.write_header();
        // Damaged bytes may decode too; only bytes that encode to the same bytes can be continued.
        (appender.data() == data).then_some(appender)
    }
}
