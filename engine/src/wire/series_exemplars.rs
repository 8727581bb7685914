//! Series with exemplars, as instances exchange them: `prometheus.TimeSeries` messages with labels
//! (field 1) and exemplars (field 3), each preceded by its length as a uvarint.

use super::{Fields, Value, WireError, put_exemplar_end};
use crate::codec::{put_uvarint, split_uvarint, uvarint_bytes};
use crate::head::{Exemplar, SeriesExemplars};
use crate::model::Labels;

const TIME_SERIES: &str = "prometheus.TimeSeries";

const EXEMPLAR_TAG: u8 = 3 << 3 | 2;

/// Appends a series with all its exemplars.
pub fn put_series_exemplars(out: &mut Vec<u8>, series: &SeriesExemplars) {
    let field_bytes = |exemplar: &Exemplar| {
        let bytes = exemplar_bytes(exemplar);
        1 + uvarint_bytes(bytes as u64) + bytes
    };
    // In protobuf a length precedes its content, so sizes are computed first.
    let exemplars_bytes: usize = series.exemplars.iter().map(field_bytes).sum();
    put_uvarint(out, (series.labels.packed().len() + exemplars_bytes) as u64);
    out.extend_from_slice(series.labels.packed());
    for exemplar in &series.exemplars {
        out.push(EXEMPLAR_TAG);
        put_uvarint(out, exemplar_bytes(exemplar) as u64);
        out.extend_from_slice(exemplar.labels.packed());
        put_exemplar_end(out, exemplar.value, exemplar.timestamp_ms);
    }
}

fn exemplar_bytes(exemplar: &Exemplar) -> usize {
    let time_bytes = 1 + uvarint_bytes(exemplar.timestamp_ms as u64);
    exemplar.labels.packed().len() + 1 + size_of::<f64>() + time_bytes
}

/// Splits a series off the front, and returns it with the rest.
pub fn split_series_exemplars(bytes: &[u8]) -> Result<(SeriesExemplars, &[u8]), WireError> {
    let error = |reason| WireError { message: TIME_SERIES, offset: 0, reason };
    let message = split_uvarint(bytes)
        .and_then(|(len, rest)| rest.split_at_checked(usize::try_from(len).ok()?));
    let (message, rest) = message.ok_or_else(|| error("the message is cut short"))?;
    let mut exemplars = Vec::new();
    let labels = leading_labels(message, |number, value| {
        // Only engines write these messages, so an unknown field is damage.
        let (3, Value::Bytes(exemplar)) = (number, value) else {
            return Err("an unexpected field");
        };
        exemplars.push(take_exemplar(exemplar)?);
        Ok(())
    });
    Ok((SeriesExemplars { labels: labels.map_err(error)?, exemplars }, rest))
}

fn take_exemplar(message: &[u8]) -> Result<Exemplar, &'static str> {
    let (mut value, mut timestamp_ms) = (0.0, 0);
    let labels = leading_labels(message, |number, field| {
        match (number, field) {
            (2, Value::Fixed64(bits)) => value = f64::from_bits(bits),
            (3, Value::Varint(time)) => timestamp_ms = time as i64,
            _ => return Err("an unexpected field"),
        }
        Ok(())
    })?;
    Ok(Exemplar { labels, value, timestamp_ms })
}

/// Returns the labels at the front of a message as they are packed; `other` gets other fields.
fn leading_labels<'m>(
    message: &'m [u8],
    mut other: impl FnMut(u32, Value<'m>) -> Result<(), &'static str>,
) -> Result<Labels, &'static str> {
    let mut labels_end = 0;
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next() {
        match field.map_err(|malformed| malformed.what)? {
            (1, Value::Bytes(_)) => labels_end = message.len() - fields.rest().len(),
            (number, value) => other(number, value)?,
        }
    }
    // Labels after another field are refused, since not all bytes up to them would be labels.
    let labels = message.get(..labels_end).and_then(Labels::from_packed);
    labels.ok_or("the labels are not a valid label set")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, exemplars: &[(&str, f64, i64)]) -> SeriesExemplars {
        let exemplar = |(trace, value, timestamp_ms): &(&str, f64, i64)| Exemplar {
            labels: Labels::from_pairs([("trace_id", *trace)]).expect("a label set"),
            value: *value,
            timestamp_ms: *timestamp_ms,
        };
        let labels = Labels::from_sorted([("__name__", name), ("job", "x")]);
        SeriesExemplars { labels, exemplars: exemplars.iter().map(exemplar).collect() }
    }

    #[test]
    fn series_come_back_and_damage_is_an_error() {
        let all = [
            series("a", &[("1", 1.5, 1_800_000_000_000), ("", f64::NAN, -7)]),
            series("b", &[("2", f64::NEG_INFINITY, i64::MAX)]),
            series("c", &[]),
        ];
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for series in &all {
            put_series_exemplars(&mut bytes, series);
            ends.push(bytes.len());
        }
        let mut rest = bytes.as_slice();
        for series in &all {
            let (found, after) = split_series_exemplars(rest).expect("a series");
            assert_eq!(found, *series);
            rest = after;
        }
        assert!(rest.is_empty());
        for cut in 0..bytes.len() {
            let mut rest = &bytes[..cut];
            while let Ok((_, after)) = split_series_exemplars(rest) {
                rest = after;
            }
            assert!(ends.contains(&(cut - rest.len())), "whole series, and no more: {cut}");
            assert_eq!(rest.is_empty(), ends.contains(&cut), "{cut}");
        }
        assert!(split_series_exemplars(&[2, 0x12, 0]).is_err(), "no field 2 belongs there");
        assert!(split_series_exemplars(&[9]).is_err());
    }
}
