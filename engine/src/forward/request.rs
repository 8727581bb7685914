//! Encodes rows as the body of a remote-write request.
//!
//! The rows of a series follow each other, in their order, so that its labels are written once. In
//! version 2.0, each string is a symbol of the request, written once. A table maps the index of an
//! interned string to its symbol in this request, so that no string is compared or hashed.

use super::row::{Extra, Extras, Row};
use super::series::{Metadata, Series, SeriesTable, Symbols};
use crate::codec::put_uvarint;
use crate::engine::RemoteWriteVersion;
use crate::model::Value;
use crate::wire::{
    SeriesMetadata, float_bytes, message_field_bytes, put_exemplar_end, put_float, put_label,
    put_label_refs, put_message_field, put_series_metadata, put_series_value, put_symbol,
};
use rustc_hash::FxHashMap;
use tidepool_model::sort;

/// The body of a request, and counts of its contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The protobuf message; empty if no row was left to be sent.
    pub body: Vec<u8>,
    /// Number of float samples in the body.
    pub samples: u64,
    /// Number of native histograms in the body.
    pub histograms: u64,
    /// Number of exemplars in the body.
    pub exemplars: u64,
    /// Samples and histograms left out because they are too old.
    pub too_old: u64,
    /// Time of the newest row in milliseconds; `i64::MIN` if there is none.
    pub newest_ms: i64,
}

/// Number of symbols that are written at a time: those of twelve labels.
const PART_SYMBOLS: usize = 24;

#[derive(Default)]
pub struct RequestBuilder {
    rows: Vec<Row>,
    symbols: RequestSymbols,
    series: Vec<u8>,
    part: Vec<u8>,
    content: Vec<u8>,
    refs: Vec<u32>,
}

#[derive(Default)]
struct RequestSymbols {
    /// For each string of the table: the last request that used it, and its symbol there.
    met: Vec<(u32, u32)>,
    request: u32,
    /// Symbols of the table, in this request's order; `u32::MAX` for all other strings and "".
    list: Vec<u32>,
    /// Strings that only this request has, such as exemplars' labels, with their symbols.
    others: Vec<(u32, Box<str>)>,
    /// Symbols of `others`, by string.
    by_text: FxHashMap<Box<str>, u32>,
}

impl RequestSymbols {
    fn begin(&mut self, table: &Symbols) {
        let symbols = table.len();
        self.request = self.request.wrapping_add(1);
        if self.request == 0 || self.met.len() > 4 * symbols.max(1024) {
            // Request numbers begin again, so entries of earlier requests would look current.
            self.met.clear();
            self.request = 1;
        }
        self.met.resize(self.met.len().max(symbols), (0, 0));
        self.list.clear();
        self.list.push(u32::MAX);
        self.others.clear();
        self.by_text.clear();
        // Families without a help or a unit have the empty string, which is always symbol 0.
        if let Some(met) = table.find("").and_then(|empty| self.met.get_mut(empty as usize)) {
            *met = (self.request, 0);
        }
    }

    #[inline]
    fn symbol(&mut self, symbol: u32) -> u32 {
        let Some(met) = self.met.get_mut(symbol as usize) else { return 0 };
        if met.0 != self.request {
            *met = (self.request, self.list.len() as u32);
            self.list.push(symbol);
        }
        met.1
    }

    /// Appends the request's symbols for up to [`PART_SYMBOLS`] symbols of the table, as varints.
    /// The bytes are gathered on the stack: a vector would check its capacity twenty times per row.
    fn put_refs(&mut self, symbols: &[u32], out: &mut Vec<u8>) {
        let mut bytes = [0; 5 * PART_SYMBOLS];
        let mut at = 0;
        let mut put = |byte: u8| {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
                at += 1;
            }
        };
        for symbol in symbols {
            let mut symbol = self.symbol(*symbol);
            while symbol >= 0x80 {
                put(symbol as u8 | 0x80);
                symbol >>= 7;
            }
            put(symbol as u8);
        }
        out.extend_from_slice(bytes.get(..at).unwrap_or_default());
    }

    /// Returns the symbol of a string that the table may not have.
    fn other(&mut self, text: &str, table: &Symbols) -> u32 {
        if text.is_empty() {
            return 0;
        }
        if let Some(known) = table.find(text) {
            return self.symbol(known);
        }
        if let Some(symbol) = self.by_text.get(text) {
            return *symbol;
        }
        let symbol = self.list.len() as u32;
        self.list.push(u32::MAX);
        self.others.push((symbol, text.into()));
        self.by_text.insert(text.into(), symbol);
        symbol
    }

    fn put(&self, out: &mut Vec<u8>, table: &SeriesTable) {
        let mut others = self.others.iter().peekable();
        for (at, symbol) in self.list.iter().enumerate() {
            let other = others.next_if(|(of, _)| *of as usize == at);
            let text = match (other, *symbol) {
                (Some((_, text)), _) => text,
                (None, u32::MAX) => "",
                (None, symbol) => table.symbols.text(symbol),
            };
            put_symbol(out, text);
        }
    }
}

impl RequestBuilder {
    /// Clears the cache of symbols, because the strings were renumbered.
    pub fn symbols_changed(&mut self) {
        self.symbols.met.clear();
    }

    /// Builds the request of rows; counts and leaves out rows before `not_before_ms`.
    pub fn build<'r>(
        &mut self,
        version: RemoteWriteVersion,
        rows: impl Iterator<Item = &'r Row>,
        not_before_ms: i64,
        table: &SeriesTable,
        extras: &Extras,
    ) -> Batch {
        let mut batch = Batch { newest_ms: i64::MIN, ..Batch::default() };
        let mut list = std::mem::take(&mut self.rows);
        list.clear();
        for row in rows {
            if row.time_ms < not_before_ms {
                batch.too_old += 1;
                continue;
            }
            batch.newest_ms = batch.newest_ms.max(row.time_ms);
            list.push(*row);
        }
        if !list.is_sorted_by_key(|row| row.series) {
            // Stable: rows of a series keep their order.
            sort::sort_by_key(&mut list, |row| row.series);
        }
        self.symbols.begin(&table.symbols);
        self.content.clear();
        // A `TimeSeries` of 2.0 has floats or histograms, not both.
        let kind = |row: &Row| {
            let is_histogram = extras.get(row).is_some_and(|extra| extra.histogram.is_some());
            (row.series, is_histogram)
        };
        for rows in list.chunk_by(|a, b| kind(a) == kind(b)) {
            let Some(series) = rows.first().and_then(|row| table.get(row.series)) else { continue };
            match version {
                RemoteWriteVersion::V1 => self.put_v1(series, rows, table, extras, &mut batch),
                RemoteWriteVersion::V2 => {
                    self.put_v2(series, rows, &table.symbols, extras, &mut batch)
                }
            }
        }
        let is_empty = list.is_empty();
        self.rows = list;
        if is_empty {
            return batch;
        }
        if version == RemoteWriteVersion::V2 {
            batch.body.reserve(self.content.len() + 16 * self.symbols.list.len());
            self.symbols.put(&mut batch.body, table);
        }
        batch.body.extend_from_slice(&self.content);
        batch
    }

    fn put_v1(
        &mut self,
        series: &Series,
        rows: &[Row],
        table: &SeriesTable,
        extras: &Extras,
        batch: &mut Batch,
    ) {
        // `prometheus.TimeSeries`: 1 labels, 2 samples, 3 exemplars, 4 histograms.
        self.series.clear();
        for pair in series.labels.as_chunks::<2>().0 {
            let [name, value] = pair.map(|symbol| table.symbols.text(symbol));
            put_label(&mut self.series, name, value, &mut self.part);
        }
        self.put_values(4, rows, extras, batch);
        for exemplar in exemplars(rows, extras) {
            self.part.clear();
            let mut scratch = Vec::new();
            for (name, value) in &exemplar.labels {
                put_label(&mut self.part, name, value, &mut scratch);
            }
            put_exemplar_end(&mut self.part, exemplar.value, exemplar.timestamp_ms);
            put_message_field(&mut self.series, 3, &self.part);
            batch.exemplars += 1;
        }
        put_message_field(&mut self.content, 1, &self.series);
    }

    fn put_v2(
        &mut self,
        series: &Series,
        rows: &[Row],
        table: &Symbols,
        extras: &Extras,
        batch: &mut Batch,
    ) {
        self.part.clear();
        for symbols in series.labels.chunks(PART_SYMBOLS) {
            self.symbols.put_refs(symbols, &mut self.part);
        }
        let metadata = series.metadata.map(|Metadata { kind, help, unit }| {
            let (help, unit) = (self.symbols.symbol(help), self.symbols.symbol(unit));
            SeriesMetadata { kind, help, unit }
        });
        if rows.iter().all(|row| extras.get(row).is_none()) {
            self.put_floats_v2(rows, metadata);
            batch.samples += rows.len() as u64;
            return;
        }
        // TimeSeries of 2.0: 1 label refs, 2 samples, 3 histograms, 4 exemplars, 5 metadata.
        self.series.clear();
        put_message_field(&mut self.series, 1, &self.part);
        self.put_values(3, rows, extras, batch);
        for exemplar in exemplars(rows, extras) {
            self.refs.clear();
            for (name, value) in &exemplar.labels {
                let pair = [name, value].map(|text| self.symbols.other(text, table));
                self.refs.extend(pair);
            }
            let mut message = Vec::with_capacity(32);
            put_label_refs(&mut message, &self.refs, &mut self.part);
            message.push(2 << 3 | 1);
            message.extend_from_slice(&exemplar.value.to_le_bytes());
            message.push(3 << 3);
            put_uvarint(&mut message, exemplar.timestamp_ms as u64);
            put_message_field(&mut self.series, 4, &message);
            batch.exemplars += 1;
        }
        if let Some(metadata) = metadata {
            put_series_metadata(&mut self.series, metadata);
        }
        put_message_field(&mut self.content, 5, &self.series);
    }

    /// Writes a series of only floats, the usual kind: the labels in `part`, the floats, and
    /// perhaps metadata. The length is known before, so the series is written in place.
    fn put_floats_v2(&mut self, rows: &[Row], metadata: Option<SeriesMetadata>) {
        let floats: usize = rows.iter().map(|row| float_bytes(row.time_ms)).sum();
        let metadata_bytes = metadata.map_or(0, SeriesMetadata::field_bytes);
        let series_bytes = message_field_bytes(self.part.len()) + floats + metadata_bytes;
        // Field 5 of `io.prometheus.write.v2.Request`, length-delimited.
        self.content.push(5 << 3 | 2);
        put_uvarint(&mut self.content, series_bytes as u64);
        put_message_field(&mut self.content, 1, &self.part);
        for row in rows {
            put_float(&mut self.content, row.time_ms, row.value);
        }
        if let Some(metadata) = metadata {
            put_series_metadata(&mut self.content, metadata);
        }
    }

    fn put_values(
        &mut self,
        histogram_field: u32,
        rows: &[Row],
        extras: &Extras,
        batch: &mut Batch,
    ) {
        for row in rows {
            match extras.get(row) {
                Some(Extra { histogram: Some(value), .. }) => {
                    put_series_value(&mut self.series, histogram_field, row.time_ms, value);
                    batch.histograms += 1;
                }
                _ => {
                    let value = Value::Float(row.value);
                    put_series_value(&mut self.series, histogram_field, row.time_ms, &value);
                    batch.samples += 1;
                }
            }
        }
    }
}

fn exemplars<'e>(
    rows: &'e [Row],
    extras: &'e Extras,
) -> impl Iterator<Item = &'e super::row::RowExemplar> {
    rows.iter().filter_map(|row| extras.get(row)).flat_map(|extra| &extra.exemplars)
}
