//! Encodes a scrape as remote-write requests: either only the parts without columns, or all of it.

use tidepool_model::STALE_NAN;
use tidepool_protocol::prom::native::of_exposition;
use tidepool_protocol::prom::rows::{
    Exemplar, Family, LabelSet, Piece, ReceiverClosed, RequestWriter, RowSink as _, RowValue,
};
use tidepool_protocol::text::type_of;
use tidepool_scrape::labels::Labels;
use tidepool_scrape::store::{Batch, ExemplarRow, HistogramRow};

/// Labels of the rows and the markers of a batch, in the batch's order.
pub struct Rows {
    pub series: Vec<Labels>,
    pub markers: Vec<Labels>,
}

/// Returns requests with the histograms, exemplars and metadata, and if `rows` is given, also with
/// the samples and markers.
pub fn pieces(batch: &Batch, rows: Option<&Rows>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut writer = RequestWriter::new(|piece| {
        pieces.push(piece);
        Ok(())
    });
    // Writing cannot fail, because the closure only pushes to a vector.
    let _ = write(batch, rows, &mut writer);
    drop(writer);
    pieces
}

fn write(
    batch: &Batch,
    rows: Option<&Rows>,
    writer: &mut RequestWriter<impl FnMut(Piece) -> Result<(), ReceiverClosed>>,
) -> Result<(), ReceiverClosed> {
    if let Some(Rows { series, markers }) = rows {
        let samples = series.iter().zip(batch.timestamps_ms.iter().zip(&batch.values));
        for (labels, (timestamp_ms, value)) in samples {
            writer.row(&set(labels), *timestamp_ms, RowValue::Float(*value), &[])?;
        }
        let marker = RowValue::Float(STALE_NAN);
        for labels in markers {
            writer.row(&set(labels), batch.markers_at_ms, marker, &[])?;
        }
    }
    for HistogramRow { labels, timestamp_ms, histogram } in &batch.histograms {
        let histogram = of_exposition(histogram, *timestamp_ms);
        writer.row(&set(labels), *timestamp_ms, RowValue::Histogram(&histogram), &[])?;
    }
    for ExemplarRow { series, labels, value, timestamp_ms } in &batch.exemplars {
        let labels = labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let exemplar =
            Exemplar { labels: labels.collect(), value: *value, timestamp_ms: *timestamp_ms };
        writer.exemplar(&set(series), &exemplar)?;
    }
    for family in &batch.metadata {
        let kind = type_of(family.kind);
        let (name, help, unit) = (&family.family, &family.help, &family.unit);
        writer.family(Family { name, kind, help, unit })?;
    }
    writer.finish()
}

fn set(labels: &Labels) -> LabelSet {
    let mut set = LabelSet::default();
    for (name, value) in labels.iter() {
        set.set(name, value);
    }
    set
}
