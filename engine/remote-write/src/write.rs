//! Decoding of remote-write bodies in one pass without copying.
//!
//! Schemas: `prometheus.WriteRequest` (1.0) and `io.prometheus.write.v2.Request` (2.0), both in
//! `proto/`. Unknown fields are skipped, as protobuf requires.

use super::WireError;
use super::body_position::BodyPosition;
use super::exemplar::{Exemplar, decode_exemplar_v1, decode_exemplar_v2};
use super::fields::Value;
use super::series_parts::{
    Labels, UsualSeries, float_sample, narrow_ref, only_sample, packed_refs, usual_series,
};
use crate::Sample;

/// Content of a series of a request beside its labels.
#[derive(Debug)]
pub struct SeriesData<'a, H> {
    /// Float samples in the sender's order.
    pub samples: &'a [Sample],
    /// Native histograms with their times in milliseconds, in the sender's order.
    pub histograms: &'a [(i64, H)],
    /// Exemplars in the sender's order.
    pub exemplars: &'a [Exemplar<'a>],
}

impl<H> Clone for SeriesData<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for SeriesData<'_, H> {}

impl<H> SeriesData<'_, H> {
    /// Returns the number of samples, histograms and exemplars together.
    pub fn rows(&self) -> u64 {
        (self.samples.len() + self.histograms.len() + self.exemplars.len()) as u64
    }
}

/// Encoded parts of a 2.0 series that identify the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedSeries<'r> {
    /// Packed references to the symbols of the labels.
    pub refs: &'r [u8],
    /// Message of the metadata, if there is one.
    pub metadata: Option<&'r [u8]>,
}

/// Part of an encoded series that a sink has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumed {
    /// The sink does not know these bytes.
    Nothing,
    /// The sink took samples, histograms and exemplars, but not the metadata.
    Data,
    All,
}

/// The type to which a native histogram is decoded.
pub trait HistogramMessage<'r>: Sized {
    /// Decodes the message; returns its time in milliseconds, and its content without checks.
    fn decode(place: &BodyPosition<'r>, message: &'r [u8]) -> Result<(i64, Self), WireError>;
}

/// Keeps the encoded message. The time is not decoded and is 0.
impl<'r> HistogramMessage<'r> for &'r [u8] {
    fn decode(_: &BodyPosition<'r>, message: &'r [u8]) -> Result<(i64, Self), WireError> {
        Ok((0, message))
    }
}

/// Receives the content of a request in order. A sink may ignore symbols and metadata.
pub trait WriteSink<'r> {
    type Histogram: HistogramMessage<'r>;

    /// Returns the memory that the store may use, of which a request gets a part; 0 is unlimited.
    fn memory_bytes_max(&self) -> u64 {
        0
    }

    /// Receives the symbols of a 2.0 request before its series; `encoded` is the part of the body
    /// from the first to the last symbol.
    fn symbols(&mut self, _symbols: &[&'r [u8]], _encoded: &'r [u8]) {}

    /// Receives an encoded series of a 2.0 request. Other methods receive parts that are not taken.
    fn series_by_bytes(
        &mut self,
        _series: EncodedSeries<'r>,
        _data: SeriesData<'_, Self::Histogram>,
    ) -> Consumed {
        Consumed::Nothing
    }

    /// Receives a series of a 1.0 request; labels are (name, value) in the sender's order. Labels
    /// that equal those at the same positions of the previous series are the very same slices.
    fn series_by_pairs(
        &mut self,
        labels: &[(&'r [u8], &'r [u8])],
        data: SeriesData<'_, Self::Histogram>,
    );

    /// Receives a series of a 2.0 request; labels are references to names and values in turn.
    fn series_by_refs(&mut self, labels: &[u32], data: SeriesData<'_, Self::Histogram>);

    /// Receives metadata of a metric family, from a 1.0 request.
    fn family_metadata(&mut self, _family: &'r [u8], _kind: u32, _help: &'r [u8], _unit: &'r [u8]) {
    }

    /// Receives metadata of the last series, from a 2.0 request.
    fn series_metadata(&mut self, _labels: &[u32], _kind: u32, _help_ref: u32, _unit_ref: u32) {}
}

const V1: &str = "prometheus.WriteRequest";
const V2: &str = "io.prometheus.write.v2.Request";

// Every field is unknown to a decoder of the other version. Skipping all fields would report
// success and lose the data.
const IS_V1: &str = "this is a message of 1.0; the content type must say prometheus.WriteRequest";
const IS_V2: &str = "this is a message of 2.0; the content type must say so";

/// Bounds the memory of a body's decoded parts, and of rows and series made of these parts: a few
/// bytes can announce a part of hundreds of bytes.
struct Decoded {
    bytes_left: usize,
}

/// Memory that a part of a request may need until it is in the head, in bytes.
mod cost {
    /// A series: its entries in the tables of the batch and, if new, of the head.
    pub const SERIES: usize = 256;
    /// One label of a 1.0 request.
    pub const LABEL: usize = 48;
    /// One symbol of a 2.0 request.
    pub const SYMBOL: usize = 48;
    /// Each byte of packed references to symbols.
    pub const REF: usize = 12;
    pub const SAMPLE: usize = 64;
    /// A histogram or an exemplar without lists.
    pub const OTHER: usize = 320;
    /// Each byte of a histogram's or exemplar's lists.
    pub const OTHER_BYTE: usize = 8;
}

impl Decoded {
    /// Permitted memory for each byte of a body. Requests of real senders use less than half.
    const BYTES_PER_BYTE: usize = 16;
    /// Permitted memory in addition, for a body of any size.
    const BYTES_MIN: usize = 4 << 20;
    /// Maximum for a body of any size: 4 million samples, 180,000 histograms of a hundred buckets.
    const BYTES_MAX: usize = 256 << 20;

    /// Returns the bound for a store with this memory; 0 is unlimited.
    fn of(body: &[u8], memory_bytes_max: u64) -> Decoded {
        let bytes_left = body.len() * Self::BYTES_PER_BYTE + Self::BYTES_MIN;
        // A quarter of the memory leaves room for the head, but any store must accept a small
        // request.
        let bytes_max = match usize::try_from(memory_bytes_max / 4) {
            Ok(part) if part > 0 => part.clamp(2 * Self::BYTES_MIN, Self::BYTES_MAX),
            _ => Self::BYTES_MAX,
        };
        Decoded { bytes_left: bytes_left.min(bytes_max) }
    }

    #[inline]
    fn take(
        &mut self,
        place: &BodyPosition<'_>,
        part: &[u8],
        bytes: usize,
    ) -> Result<(), WireError> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => Err(place.error(part, "the request has more parts than fit into memory")),
        }
    }

    fn take_other(&mut self, place: &BodyPosition<'_>, part: &[u8]) -> Result<(), WireError> {
        self.take(place, part, cost::OTHER + part.len() * cost::OTHER_BYTE)
    }
}

/// Decodes a 1.0 body. After an error the sink must discard what it received.
pub fn decode_write_v1<'r, S: WriteSink<'r>>(
    body: &'r [u8],
    sink: &mut S,
) -> Result<(), WireError> {
    let place = BodyPosition::new(V1, body);
    let mut decoded = Decoded::of(body, sink.memory_bytes_max());
    let mut labels = Labels::default();
    // Reused for all series, so that decoding allocates little.
    let mut samples = Vec::with_capacity(8);
    let (mut histograms, mut exemplars) = (Vec::new(), Vec::new());
    let (mut is_own, mut is_other) = (false, false);
    place.walk(body, |number, value| match (number, value) {
        (1, Value::Bytes(series)) => {
            is_own = true;
            labels.clear();
            samples.clear();
            histograms.clear();
            exemplars.clear();
            decoded.take(&place, series, cost::SERIES)?;
            let mut rest = series;
            // All senders write labels first, each shorter than 128 bytes.
            while let [0x0a, len @ 0..0x80, after @ ..] = rest
                && let Some((label, after)) = after.split_at_checked(usize::from(*len))
            {
                decoded.take(&place, label, cost::LABEL)?;
                labels.push(&place, label)?;
                rest = after;
            }
            if let Some((message, sample)) = only_sample(rest) {
                decoded.take(&place, message, cost::SAMPLE)?;
                let data = SeriesData { samples: &[sample], histograms: &[], exemplars: &[] };
                sink.series_by_pairs(labels.pairs(), data);
                return Ok(());
            }
            place.walk(rest, |number, value| {
                match (number, value) {
                    (1, Value::Bytes(label)) => {
                        decoded.take(&place, label, cost::LABEL)?;
                        labels.push(&place, label)?;
                    }
                    (2, Value::Bytes(sample)) => {
                        decoded.take(&place, sample, cost::SAMPLE)?;
                        samples.push(float_sample(&place, sample)?);
                    }
                    (3, Value::Bytes(message)) => {
                        decoded.take_other(&place, message)?;
                        exemplars.push(decode_exemplar_v1(&place, message)?);
                    }
                    (4, Value::Bytes(message)) => {
                        decoded.take_other(&place, message)?;
                        histograms.push(S::Histogram::decode(&place, message)?);
                    }
                    _ => {}
                }
                Ok(())
            })?;
            let data =
                SeriesData { samples: &samples, histograms: &histograms, exemplars: &exemplars };
            sink.series_by_pairs(labels.pairs(), data);
            Ok(())
        }
        (3, Value::Bytes(metadata)) => {
            is_own = true;
            let (mut kind, mut family, mut help, mut unit) = (0, &[][..], &[][..], &[][..]);
            place.walk(metadata, |number, value| {
                match (number, value) {
                    (1, Value::Varint(number)) => kind = number as u32,
                    (2, Value::Bytes(text)) => family = text,
                    (4, Value::Bytes(text)) => help = text,
                    (5, Value::Bytes(text)) => unit = text,
                    _ => {}
                }
                Ok(())
            })?;
            sink.family_metadata(family, kind, help, unit);
            Ok(())
        }
        (4 | 5, _) => {
            is_other = true;
            Ok(())
        }
        _ => Ok(()),
    })?;
    // A message with known fields may have unknown fields, too.
    if is_other && !is_own { Err(place.error(body, IS_V2)) } else { Ok(()) }
}

/// Decodes a 2.0 body. After an error the sink must discard what it received.
pub fn decode_write_v2<'r, S: WriteSink<'r>>(
    body: &'r [u8],
    sink: &mut S,
) -> Result<(), WireError> {
    let place = BodyPosition::new(V2, body);
    let mut decoded = Decoded::of(body, sink.memory_bytes_max());
    // Protobuf lets symbols follow the series that refer to them, hence two passes.
    let mut symbols: Vec<&'r [u8]> = Vec::with_capacity(256);
    let (mut first_at, mut last_end) = (0, 0);
    let (mut is_own, mut is_other) = (false, false);
    place.walk(body, |number, value| {
        is_own |= matches!(number, 4 | 5);
        is_other |= matches!(number, 1 | 3);
        if let (4, Value::Bytes(symbol)) = (number, value) {
            let at = place.offset(symbol);
            first_at = if symbols.is_empty() { at } else { first_at };
            last_end = at + symbol.len();
            // Reference 0 means "no text" in metadata, so the specification demands it to be empty.
            if symbols.is_empty() && !symbol.is_empty() {
                return Err(place.error(symbol, "the first symbol must be the empty string"));
            }
            decoded.take(&place, symbol, cost::SYMBOL)?;
            symbols.push(symbol);
        }
        Ok(())
    })?;
    if is_other && !is_own {
        return Err(place.error(body, IS_V1));
    }
    sink.symbols(&symbols, body.get(first_at..last_end).unwrap_or_default());
    let mut refs = Vec::with_capacity(64);
    let mut samples = Vec::with_capacity(8);
    let (mut histograms, mut exemplars) = (Vec::new(), Vec::new());
    place.walk(body, |number, value| {
        let (5, Value::Bytes(series)) = (number, value) else { return Ok(()) };
        refs.clear();
        // The usual form is recognized without decoding its label references.
        if let Some(UsualSeries { packed, message, sample, metadata }) = usual_series(series) {
            decoded.take(&place, series, cost::SERIES)?;
            decoded.take(&place, packed, packed.len() * cost::REF)?;
            decoded.take(&place, message, cost::SAMPLE)?;
            let data = SeriesData { samples: &[sample], histograms: &[], exemplars: &[] };
            let refs = EncodedRefs { only_packed: Some(packed), refs: &mut refs };
            return give_series(&place, sink, refs, metadata, data);
        }
        samples.clear();
        histograms.clear();
        exemplars.clear();
        let mut metadata = None;
        // References are decoded only if the sink does not know their bytes.
        let mut only_packed: Option<&'r [u8]> = None;
        decoded.take(&place, series, cost::SERIES)?;
        place.walk(series, |number, value| {
            match (number, value) {
                (1, Value::Bytes(packed)) => {
                    decoded.take(&place, packed, packed.len() * cost::REF)?;
                    match only_packed.take() {
                        None if refs.is_empty() => only_packed = Some(packed),
                        before => {
                            packed_refs(&place, before.unwrap_or_default(), &mut refs)?;
                            packed_refs(&place, packed, &mut refs)?;
                        }
                    }
                }
                (1, Value::Varint(symbol_ref)) => {
                    decoded.take(&place, series, cost::REF)?;
                    packed_refs(&place, only_packed.take().unwrap_or_default(), &mut refs)?;
                    refs.push(narrow_ref(symbol_ref));
                }
                (2, Value::Bytes(sample)) => {
                    decoded.take(&place, sample, cost::SAMPLE)?;
                    samples.push(float_sample(&place, sample)?);
                }
                (3, Value::Bytes(message)) => {
                    decoded.take_other(&place, message)?;
                    histograms.push(S::Histogram::decode(&place, message)?);
                }
                (4, Value::Bytes(message)) => {
                    decoded.take_other(&place, message)?;
                    exemplars.push(decode_exemplar_v2(&place, message)?);
                }
                (5, Value::Bytes(message)) => metadata = Some(message),
                _ => {}
            }
            Ok(())
        })?;
        let data = SeriesData { samples: &samples, histograms: &histograms, exemplars: &exemplars };
        give_series(&place, sink, EncodedRefs { only_packed, refs: &mut refs }, metadata, data)
    })
}

/// Label references, decoded or not.
struct EncodedRefs<'a, 'r> {
    /// All references, still packed; then `refs` is empty.
    only_packed: Option<&'r [u8]>,
    refs: &'a mut Vec<u32>,
}

/// Passes a series of a 2.0 request to the sink, encoded if the sink knows the bytes.
#[inline]
fn give_series<'r, S: WriteSink<'r>>(
    place: &BodyPosition<'r>,
    sink: &mut S,
    EncodedRefs { only_packed, refs }: EncodedRefs<'_, 'r>,
    metadata: Option<&'r [u8]>,
    data: SeriesData<'_, S::Histogram>,
) -> Result<(), WireError> {
    let mut taken = Consumed::Nothing;
    if let Some(packed) = only_packed {
        taken = sink.series_by_bytes(EncodedSeries { refs: packed, metadata }, data);
        // The sink knows the series, so neither labels nor metadata need to be decoded.
        if taken == Consumed::All {
            return Ok(());
        }
        packed_refs(place, packed, refs)?;
    }
    if taken == Consumed::Nothing {
        sink.series_by_refs(refs, data);
    }
    let Some(metadata) = metadata else { return Ok(()) };
    let (mut kind, mut help, mut unit) = (0, 0, 0);
    place.walk(metadata, |number, value| {
        match (number, value) {
            (1, Value::Varint(number)) => kind = number as u32,
            (3, Value::Varint(symbol_ref)) => help = narrow_ref(symbol_ref),
            (4, Value::Varint(symbol_ref)) => unit = narrow_ref(symbol_ref),
            _ => {}
        }
        Ok(())
    })?;
    sink.series_metadata(refs, kind, help, unit);
    Ok(())
}
