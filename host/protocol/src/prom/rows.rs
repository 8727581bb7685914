//! Writes rows from other protocols as remote-write requests, the only way into the store.
//!
//! ```text
//! rows ─▶ pieces of 2.0 requests, symbols interned     of each kind of rows one after the other,
//! families ─▶ pieces of 1.0 requests, metadata alone   at most PIECE_BYTES and what one row takes
//! ```

use super::native::Histogram;
use super::points::{Points, RowsOf};
use super::work::WorkLimit;
use prost::Message as _;
use std::collections::HashMap;
use tidepool_remote_write::{
    put_exemplar_end, put_family_metadata, put_float, put_label_refs, put_message_field,
    put_symbol, v2,
};
use tidepool_runtime::RemoteWriteVersion;

pub use super::label_set::LabelSet;
pub use super::proto::metric_metadata::MetricType;

/// Size at which a piece is passed on.
pub const PIECE_BYTES: usize = 256 * 1024;

/// Tag of the sum in a `Histogram`.
const HISTOGRAM_SUM: u8 = 3 << 3 | 1;

/// Name of the label with the metric's name.
pub const NAME: &str = "__name__";

#[derive(Clone, Copy, Debug)]
pub enum RowValue<'a> {
    Float(f64),
    /// A native histogram. Its own timestamp is used instead of the row's.
    Histogram(&'a Histogram),
}

/// Example of an event that a row counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    pub labels: Vec<(String, String)>,
    pub value: f64,
    pub timestamp_ms: i64,
}

/// The metadata of a metric family.
#[derive(Clone, Copy, Debug)]
pub struct Family<'a> {
    pub name: &'a str,
    pub kind: MetricType,
    pub help: &'a str,
    pub unit: &'a str,
}

/// The receiver of the rows has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rows are no longer taken")]
pub struct ReceiverClosed;

/// Receiver of rows and metadata.
pub trait RowSink {
    fn row(
        &mut self,
        labels: &LabelSet,
        timestamp_ms: i64,
        value: RowValue<'_>,
        exemplars: &[Exemplar],
    ) -> Result<(), ReceiverClosed>;

    /// Writes the metadata of a family.
    fn family(&mut self, family: Family<'_>) -> Result<(), ReceiverClosed>;

    /// Announces which kind of data point the next rows belong to.
    fn begin(&mut self, _of: RowsOf) {}

    /// Fails if no more rows are accepted. To be called during work that writes no rows, such as
    /// rejecting parts of a request.
    fn go_on(&self) -> Result<(), ReceiverClosed> {
        Ok(())
    }
}

/// An uncompressed remote-write request.
#[derive(Debug)]
pub struct Piece {
    pub version: RemoteWriteVersion,
    pub body: Vec<u8>,
    /// Data points of the rows in the body.
    pub points: Points,
}

/// Encodes rows as remote-write requests.
pub struct RequestWriter<F> {
    hand_over: F,
    /// One piece for each [`RowsOf`], so that refused rows can be assigned to data points.
    pieces: [Unfinished; 3],
    of: RowsOf,
    metadata: Vec<u8>,
    rows: u64,
    limit: Option<WorkLimit>,
    scratch: Scratch,
}

/// A piece that is still being filled.
#[derive(Default)]
struct Unfinished {
    /// References of the symbols that are in the table.
    symbols: HashMap<String, u32>,
    /// Encoded fields of the symbol table.
    table: Vec<u8>,
    series: Vec<u8>,
    points: Points,
}

/// Buffers that each row reuses.
#[derive(Default)]
struct Scratch {
    refs: Vec<u32>,
    packed: Vec<u8>,
    message: Vec<u8>,
    part: Vec<u8>,
}

impl<F: FnMut(Piece) -> Result<(), ReceiverClosed>> RequestWriter<F> {
    /// Creates a writer that passes on each full piece.
    pub fn new(hand_over: F) -> RequestWriter<F> {
        RequestWriter {
            hand_over,
            pieces: Default::default(),
            of: RowsOf::default(),
            metadata: Vec::new(),
            rows: 0,
            limit: None,
            scratch: Scratch::default(),
        }
    }

    /// Sets a limit on the work that the rows may cause.
    pub fn with_limit(self, limit: WorkLimit) -> RequestWriter<F> {
        RequestWriter { limit: Some(limit), ..self }
    }

    /// Returns whether the rows have exceeded the limit.
    pub fn is_spent(&self) -> bool {
        self.limit.as_ref().is_some_and(WorkLimit::is_spent)
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Passes on all unfinished pieces; metadata after the series of its families.
    pub fn finish(&mut self) -> Result<(), ReceiverClosed> {
        for of in [RowsOf::Point, RowsOf::WidePoint, RowsOf::Nothing] {
            self.finish_piece(of)?;
        }
        if !self.metadata.is_empty() {
            let body = std::mem::take(&mut self.metadata);
            let points = Points::default();
            (self.hand_over)(Piece { version: RemoteWriteVersion::V1, body, points })?;
        }
        Ok(())
    }

    fn finish_piece(&mut self, of: RowsOf) -> Result<(), ReceiverClosed> {
        let piece = &mut self.pieces[of as usize];
        if piece.series.is_empty() {
            return Ok(());
        }
        // The symbol table precedes the series that refer to it.
        let mut body = std::mem::take(&mut piece.table);
        body.append(&mut piece.series);
        piece.symbols.clear();
        let points = piece.points.take();
        (self.hand_over)(Piece { version: RemoteWriteVersion::V2, body, points })
    }

    /// Appends labels to a message, as references to symbols.
    fn put_labels<'a>(
        &mut self,
        labels: impl Iterator<Item = (&'a str, &'a str)>,
        message: &mut Vec<u8>,
    ) {
        // Moved out, because `self` is borrowed below.
        let mut refs = std::mem::take(&mut self.scratch.refs);
        refs.clear();
        let piece = &mut self.pieces[self.of as usize];
        for (name, value) in labels {
            refs.extend([piece.symbol(name), piece.symbol(value)]);
        }
        put_label_refs(message, &refs, &mut self.scratch.packed);
        self.scratch.refs = refs;
    }
}

impl<F: FnMut(Piece) -> Result<(), ReceiverClosed>> RequestWriter<F> {
    /// Writes an exemplar of a stored series, encoded as a series without samples.
    pub fn exemplar(
        &mut self,
        labels: &LabelSet,
        exemplar: &Exemplar,
    ) -> Result<(), ReceiverClosed> {
        self.series(labels, None, std::slice::from_ref(exemplar))
    }

    fn series(
        &mut self,
        labels: &LabelSet,
        row: Option<(i64, RowValue<'_>)>,
        exemplars: &[Exemplar],
    ) -> Result<(), ReceiverClosed> {
        // Charged before the labels are copied and hashed, which costs the work.
        if let Some(limit) = &mut self.limit {
            limit.take(labels)?;
        }
        let mut message = std::mem::take(&mut self.scratch.message);
        let mut part = std::mem::take(&mut self.scratch.part);
        message.clear();
        self.put_labels(labels.iter(), &mut message);
        match row {
            None => {}
            Some((timestamp_ms, RowValue::Float(value))) => {
                put_float(&mut message, timestamp_ms, value);
            }
            Some((_, RowValue::Histogram(histogram))) => {
                part.clear();
                part.extend_from_slice(&histogram.encode_to_vec());
                // prost omits a zero sum, and thereby the sign of a negative zero.
                if histogram.sum == 0.0 && histogram.sum.is_sign_negative() {
                    part.push(HISTOGRAM_SUM);
                    part.extend_from_slice(&histogram.sum.to_le_bytes());
                }
                put_message_field(&mut message, v2::HISTOGRAMS, &part);
            }
        }
        for exemplar in exemplars {
            part.clear();
            let pairs = exemplar.labels.iter();
            self.put_labels(pairs.map(|(name, value)| (name.as_str(), value.as_str())), &mut part);
            put_exemplar_end(&mut part, exemplar.value, exemplar.timestamp_ms);
            put_message_field(&mut message, v2::EXEMPLARS, &part);
        }
        let piece = &mut self.pieces[self.of as usize];
        put_message_field(&mut piece.series, v2::SERIES, &message);
        self.scratch.message = message;
        self.scratch.part = part;
        if row.is_some() {
            self.rows += 1;
            piece.points.count_row();
        }
        // Checked after the row, so a piece exceeds its size by one row at most.
        let is_full = piece.table.len() + piece.series.len() >= PIECE_BYTES;
        if is_full { self.finish_piece(self.of) } else { Ok(()) }
    }
}

impl<F: FnMut(Piece) -> Result<(), ReceiverClosed>> RowSink for RequestWriter<F> {
    fn row(
        &mut self,
        labels: &LabelSet,
        timestamp_ms: i64,
        value: RowValue<'_>,
        exemplars: &[Exemplar],
    ) -> Result<(), ReceiverClosed> {
        self.series(labels, Some((timestamp_ms, value)), exemplars)
    }

    fn family(&mut self, family: Family<'_>) -> Result<(), ReceiverClosed> {
        let Family { name, kind, help, unit } = family;
        put_family_metadata(&mut self.metadata, kind as u8, name, help, unit);
        // `finish` passes on all series first, and then the metadata.
        if self.metadata.len() >= PIECE_BYTES { self.finish() } else { Ok(()) }
    }

    fn begin(&mut self, of: RowsOf) {
        self.of = of;
        // Rows about the sender itself belong to no data point.
        if of != RowsOf::Nothing {
            self.pieces[of as usize].points.begin();
        }
    }

    fn go_on(&self) -> Result<(), ReceiverClosed> {
        self.limit.as_ref().map_or(Ok(()), WorkLimit::go_on)
    }
}

impl Unfinished {
    /// Returns the reference of a symbol; adds the symbol to the table if needed.
    fn symbol(&mut self, text: &str) -> u32 {
        // Remote write 2.0 requires that symbol 0 is empty.
        if self.symbols.is_empty() {
            self.add_symbol("");
        }
        match self.symbols.get(text) {
            Some(symbol_ref) => *symbol_ref,
            None => self.add_symbol(text),
        }
    }

    fn add_symbol(&mut self, text: &str) -> u32 {
        // Cannot overflow, because a piece has about `PIECE_BYTES` bytes.
        let symbol_ref = self.symbols.len() as u32;
        put_symbol(&mut self.table, text);
        self.symbols.insert(text.to_owned(), symbol_ref);
        symbol_ref
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// Takes rows as text: `name{label="value"} time value # exemplars`.
    #[derive(Default)]
    pub struct Rows {
        pub rows: Vec<String>,
        pub families: Vec<String>,
    }

    impl RowSink for Rows {
        fn row(
            &mut self,
            labels: &LabelSet,
            timestamp_ms: i64,
            value: RowValue<'_>,
            exemplars: &[Exemplar],
        ) -> Result<(), ReceiverClosed> {
            let pairs: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let value = match value {
                RowValue::Float(value) if value.is_nan() => format!("{:x}", value.to_bits()),
                RowValue::Float(value) => value.to_string(),
                RowValue::Histogram(histogram) => format!("schema {}", histogram.schema),
            };
            let examples: String =
                exemplars.iter().map(|e| format!(" #{}@{}", e.value, e.timestamp_ms)).collect();
            self.rows.push(format!("{} {timestamp_ms} {value}{examples}", pairs.join(",")));
            Ok(())
        }

        fn family(&mut self, family: Family<'_>) -> Result<(), ReceiverClosed> {
            let Family { name, kind, help, unit } = family;
            self.families.push(format!("{name} {kind:?} {help:?} {unit:?}"));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_bounded_and_each_has_its_own_symbols() -> Result<(), ReceiverClosed> {
        let mut pieces = Vec::new();
        let mut writer = RequestWriter::new(|piece: Piece| {
            pieces.push(piece);
            Ok(())
        });
        let mut labels = LabelSet::default();
        for i in 0..20_000 {
            labels.set(NAME, format!("metric_{i}"));
            writer.row(&labels, i, RowValue::Float(-0.0), &[])?;
        }
        writer.family(Family { name: "m", kind: MetricType::Gauge, help: "", unit: "" })?;
        writer.finish()?;
        assert_eq!(writer.rows(), 20_000);
        drop(writer);
        let metadata = pieces.pop().map(|piece| piece.version);
        assert_eq!(metadata, Some(RemoteWriteVersion::V1));
        assert!(pieces.len() > 1);
        for piece in &pieces {
            assert!(piece.body.len() < PIECE_BYTES + 1024, "{}", piece.body.len());
            // The empty symbol comes first, then the label's name.
            assert!(piece.body.starts_with(b"\x22\x00\x22\x08__name__\x22"));
        }
        Ok(())
    }

    #[test]
    fn a_row_is_a_request_of_remote_write_2_0() -> Result<(), ReceiverClosed> {
        let mut body = Vec::new();
        let mut writer = RequestWriter::new(|piece: Piece| {
            body = piece.body;
            Ok(())
        });
        let mut labels = LabelSet::default();
        labels.set(NAME, "m");
        let exemplar =
            Exemplar { labels: vec![("t".into(), "m".into())], value: 2.0, timestamp_ms: 3 };
        writer.row(&labels, 300, RowValue::Float(-0.0), &[exemplar])?;
        writer.finish()?;
        drop(writer);
        let wanted = [
            &b"\x22\x00\x22\x08__name__\x22\x01m\x22\x01t"[..],
            b"\x2a\x23\x0a\x02\x01\x02",
            b"\x12\x0c\x09\x00\x00\x00\x00\x00\x00\x00\x80\x10\xac\x02",
            b"\x22\x0f\x0a\x02\x03\x02\x11\x00\x00\x00\x00\x00\x00\x00\x40\x18\x03",
        ];
        assert_eq!(body, wanted.concat());
        Ok(())
    }
}
