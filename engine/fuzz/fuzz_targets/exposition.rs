//! Any bytes as a body that a target exposes: in any pieces it yields the same items and the same
//! error, whose place is within the body. The first byte says which format, the second how long the
//! pieces are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidepool_exposition::{
    ClassicToNative, Format, HistogramOptions, Item, LINE_BYTES_MAX, ParseError, Parser,
};

fuzz_target!(|data: &[u8]| {
    let Some((&[format, piece_bytes], body)) = data.split_first_chunk::<2>() else { return };
    let options = HistogramOptions {
        ignores_native: format & 4 != 0,
        keeps_classic: format & 8 != 0,
        converts_classic: format & 16 != 0,
    };
    let format = match format & 3 {
        0 => Format::Prometheus,
        1 => Format::Openmetrics,
        _ => Format::Protobuf,
    };
    let whole = items(format, options, body, body.len());
    let pieces = items(format, options, body, usize::from(piece_bytes));
    assert_eq!(whole, pieces);
});

/// Items as words, with the first error that is not of a line.
fn items(
    format: Format,
    options: HistogramOptions,
    body: &[u8],
    piece_bytes: usize,
) -> Vec<String> {
    let mut parser = Parser::new(format, options);
    let mut native = ClassicToNative::new(options.keeps_classic);
    let mut found = Vec::new();
    for piece in body.chunks(piece_bytes.max(1)).map(Some).chain([None]) {
        match piece {
            Some(piece) => parser.feed(piece),
            None => parser.end(),
        }
        loop {
            match parser.next() {
                Ok(None) => break,
                Ok(Some(item)) => {
                    found.push(words(&item));
                    found.push(format!("{:?}", native.step(&item)));
                }
                Err(error) => {
                    found.push(error.to_string());
                    if !error.is_line() {
                        return found;
                    }
                    check_place(&error, body);
                }
            }
        }
    }
    assert_eq!(parser.bytes(), body.len() as u64);
    found.push(format!("{:?}", native.finish()));
    found
}

fn words(item: &Item<'_>) -> String {
    match item {
        Item::Sample(sample) => {
            let exemplar = sample.exemplar.as_ref().map(|exemplar| exemplar.labels());
            format!("{sample:?} {:?} {exemplar:?}", sample.series.labels())
        }
        Item::Histogram(sample) => {
            let mut wider = sample.histogram.clone();
            wider.reduce_schema(0);
            let valid = (sample.histogram.validate(), wider.validate());
            format!("{sample:?} {:?} {valid:?}", sample.series.labels())
        }
        other => format!("{other:?}"),
    }
}

fn check_place(error: &ParseError, body: &[u8]) {
    let ParseError::Line { place, .. } = error else { return };
    let lines = body.split(|byte| *byte == b'\n').count() as u64;
    assert!((1..=lines).contains(&place.line), "{place:?}");
    assert!((1..=LINE_BYTES_MAX + 2).contains(&place.column), "{place:?}");
}
