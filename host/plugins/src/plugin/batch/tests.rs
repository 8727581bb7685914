//! Conversion of bodies to columns and back.

use super::*;
use crate::plugin::bindings::transform::exports::tidepool::plugin::transform_batches::Edit;
use proptest::prelude::*;
use tidepool_protocol::prom::rows::{
    Exemplar, LabelSet, NAME, Piece, RequestWriter, RowSink as _, RowValue,
};
use tidepool_runtime::RemoteWriteVersion::{self, V1, V2};

const BYTES_MAX: usize = 1 << 20;

/// Returns a 2.0 body of three series: `a` with an exemplar, `b`, `c`.
fn body_v2() -> Vec<u8> {
    let mut bodies = Vec::new();
    let mut writer = RequestWriter::new(|piece: Piece| {
        bodies.push(piece.body);
        Ok(())
    });
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        let mut labels = LabelSet::default();
        labels.set(NAME, name);
        labels.set("job", "x");
        let value = RowValue::Float(number as f64);
        let exemplar = Exemplar { labels: vec![], value: 1.0, timestamp_ms: 5 };
        let exemplars = if number == 0 { &[exemplar][..] } else { &[] };
        assert_eq!(writer.row(&labels, 1000 + number as i64, value, exemplars), Ok(()));
    }
    assert_eq!(writer.finish(), Ok(()));
    drop(writer);
    bodies.concat()
}

/// Returns a 1.0 body of two series and metadata.
fn body_v1() -> Vec<u8> {
    let field = |key: u8, bytes: &[u8]| [&[key, bytes.len() as u8][..], bytes].concat();
    let label = |name: &str, value: &str| {
        field(0x0a, &[field(0x0a, name.as_bytes()), field(0x12, value.as_bytes())].concat())
    };
    let sample = b"\x12\x0c\x09\0\0\0\0\0\0\xf0\x3f\x10\xe8\x07".to_vec();
    let series = |name: &str| {
        field(0x0a, &[label("__name__", name), label("job", "x"), sample.clone()].concat())
    };
    let metadata = b"\x1a\x05\x08\x02\x12\x01a".to_vec();
    [series("a"), metadata, series("b")].concat()
}

fn view(version: RemoteWriteVersion, body: &[u8]) -> View {
    match View::of(version, body, Interest::all(), BYTES_MAX) {
        Ok(view) => view,
        Err(error) => panic!("{error}"),
    }
}

fn no_edit() -> Edit {
    Edit {
        symbols: String::new(),
        symbol_ends: Vec::new(),
        dropped: Vec::new(),
        relabeled: Vec::new(),
        label_refs: Vec::new(),
        series_ends: Vec::new(),
        added: None,
    }
}

fn shown(version: RemoteWriteVersion, body: &[u8]) -> Vec<String> {
    rows(version, body, BYTES_MAX).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns an edit that drops the first series and relabels the second: label, name, no job.
fn sample_edit(view: &View) -> Edit {
    let own = view.batch.symbol_ends.len() as u32;
    let columns = columns::Columns::of(&view.batch);
    let job = columns.refs(1)[2];
    Edit {
        symbols: "zone__name__newnorth".to_owned(),
        symbol_ends: vec![4, 12, 15, 20, 20],
        dropped: vec![0],
        relabeled: vec![1],
        label_refs: vec![own, own + 3, own + 1, own + 2, job, own + 4],
        series_ends: vec![6],
        added: None,
    }
}

#[test]
fn a_body_is_seen_in_columns() {
    let seen = view(V2, &body_v2());
    assert_eq!((seen.samples, seen.histograms, seen.exemplars), (3, 0, 1));
    assert_eq!(seen.batch.check(), Ok(()));
    assert_eq!(seen.batch.samples.timestamps_ms, [1000, 1001, 1002]);
    let expected = ["a{job=\"x\"} 1 1000", "b{job=\"x\"} 1 1000"];
    assert_eq!(shown(V1, &body_v1()), expected);
    let lean = View::of(V2, &body_v2(), Interest::empty(), BYTES_MAX);
    assert!(lean.is_ok_and(|lean| lean.samples == 3 && lean.batch.samples.series.is_empty()));
}

#[test]
fn an_edit_changes_labels_and_copies_the_rest() {
    for (version, body, left) in [
        (V1, body_v1(), vec!["new{zone=\"north\"} 1 1000"]),
        (V2, body_v2(), vec!["new{zone=\"north\"} 1 1001", "c{job=\"x\"} 2 1002"]),
    ] {
        let seen = view(version, &body);
        let made = edited(version, &body, &seen, &sample_edit(&seen));
        let Ok(made) = made else { panic!("{:?}", made.err()) };
        assert_eq!(shown(version, &made.body), left);
        assert_eq!((made.dropped_rows, made.has_content), (1, true));
        if version == V1 {
            assert!(made.body.windows(7).any(|bytes| bytes == b"\x1a\x05\x08\x02\x12\x01a"));
        }
        // An edit without changes leaves the body equal, byte for byte.
        let same = edited(version, &body, &seen, &no_edit());
        assert!(same.is_ok_and(|same| same.body == body));
        let all = (0..seen.batch.series_ends.len() as u32).collect();
        let none = edited(version, &body, &seen, &Edit { dropped: all, ..no_edit() });
        assert!(none.is_ok_and(|none| none.has_content == (version == V1)));
    }
}

#[test]
fn columns_become_a_body_and_labels_are_put_in_order() {
    let seen = view(V2, &body_v2());
    assert_eq!(write(&seen.batch).map(|body| shown(V2, &body)), Ok(shown(V2, &body_v2())));
    let batch = Batch {
        symbols: "z__name__ma".to_owned(),
        symbol_ends: vec![1, 9, 10, 11, 11],
        label_refs: vec![0, 3, 1, 2, 3, 4],
        series_ends: vec![0, 6],
        samples: Samples {
            series: vec![1, 0, 1],
            timestamps_ms: vec![2, 9, 1],
            values: vec![-0.0, 1.0, f64::INFINITY],
        },
        histograms: Histograms::empty(),
    };
    let body = write(&batch);
    let expected = vec!["m{z=\"a\"} -0 2".to_owned(), "m{z=\"a\"} inf 1".to_owned()];
    assert_eq!(body.map(|body| shown(V2, &body)), Ok(expected));
}

#[test]
fn what_a_plugin_gives_is_checked() {
    let seen = view(V2, &body_v2());
    let good = || sample_edit(&seen);
    let edits = [
        Edit { symbol_ends: vec![4, 12, 15, 20, 21], ..good() },
        Edit { symbol_ends: vec![12, 4, 15, 20, 20], ..good() },
        Edit { symbols: "zon\u{e9}_name__newnorth".to_owned(), ..good() },
        Edit { label_refs: vec![0, 0, 0, 0, 0, 99], ..good() },
        Edit { series_ends: vec![5], ..good() },
        Edit { label_refs: vec![0; 5], series_ends: vec![5], ..good() },
        Edit { dropped: vec![3], ..good() },
        Edit { relabeled: vec![7], ..good() },
        Edit { relabeled: vec![1, 1], series_ends: vec![2, 6], ..good() },
        Edit { relabeled: vec![], ..good() },
    ];
    for (number, edit) in edits.iter().enumerate() {
        assert!(edited(V2, &body_v2(), &seen, edit).is_err(), "{number}");
    }
    let mut batch = view(V2, &body_v2()).batch;
    batch.samples.values.pop();
    assert_eq!(write(&batch), Err(InvalidBatch::Lengths("samples")));
    batch.samples = Samples { series: vec![3], timestamps_ms: vec![0], values: vec![0.0] };
    assert!(write(&batch).is_err());
}

#[test]
fn series_that_mean_nothing_stay_for_the_store_to_refuse() {
    // References beyond the symbols, and a label name without a value.
    for refs in [&b"\x0a\x02\x01\x09"[..], b"\x0a\x01\x01"] {
        let series = [refs, b"\x12\x02\x10\x05"].concat();
        let body = [&b"\x22\x00\x22\x01a\x2a"[..], &[series.len() as u8], &series].concat();
        let seen = view(V2, &body);
        assert_eq!((seen.batch.series_ends.as_slice(), seen.samples), (&[0][..], 1));
        let same = edited(V2, &body, &seen, &no_edit());
        assert!(same.is_ok_and(|same| same.body == body));
    }
}

#[test]
fn a_series_that_is_no_text_stays_for_the_store_to_refuse_and_others_are_seen() {
    // A byte that is not UTF-8, and a character split over two symbols.
    for symbols in [&b"\x22\x01\xff\x22\x01b"[..], b"\x22\x01\xc3\x22\x01\xa9"] {
        // Labels a="a", and a second label from `a` to the first of these symbols.
        let series =
            b"\x2a\x08\x0a\x02\x01\x01\x12\x02\x10\x05\x2a\x08\x0a\x02\x01\x02\x12\x02\x10\x05";
        let body = [&b"\x22\x00\x22\x01a"[..], symbols, series].concat();
        let seen = view(V2, &body);
        assert_eq!((seen.batch.label_refs.as_slice(), seen.samples), (&[1, 1][..], 2));
        assert_eq!((seen.batch.series_ends.as_slice(), seen.batch.check()), (&[2, 2][..], Ok(())));
        let same = edited(V2, &body, &seen, &no_edit());
        assert!(same.is_ok_and(|same| same.body == body));
    }
}

#[test]
fn what_is_no_request_is_named() {
    let seen = View::of(V2, b"\x22\x05a", Interest::all(), BYTES_MAX);
    assert!(seen.is_err_and(|error| error.to_string().contains("does not decode")));
    let seen = View::of(V2, &body_v2(), Interest::all(), 50);
    assert!(seen.is_err_and(|error| error == ViewError::TooLarge(50)));
}

proptest! {
    /// Every body is viewed or refused, and a view passes the checks for plugins.
    #[test]
    fn any_bytes_are_seen_or_refused(bytes: Vec<u8>, cut in 0..80usize, at in 0..80usize, byte: u8) {
        let mut damaged = body_v2();
        damaged.truncate(damaged.len().saturating_sub(cut));
        if let Some(place) = damaged.get_mut(at) {
            *place = byte;
        }
        for (version, body) in [(V1, &bytes), (V2, &bytes), (V1, &damaged), (V2, &damaged)] {
            if let Ok(seen) = View::of(version, body, Interest::all(), BYTES_MAX) {
                prop_assert_eq!(seen.batch.check(), Ok(()));
                prop_assert!(write(&seen.batch).is_ok());
                let all = Edit { dropped: (0..seen.batch.series_ends.len() as u32).collect(), ..no_edit() };
                prop_assert!(edited(version, body, &seen, &all).is_ok());
            }
        }
    }

    /// Everything that a plugin returns is written or refused.
    #[test]
    fn any_columns_are_written_or_refused(
        symbols in "[a-z\u{e9}]{0,6}",
        ends in prop::collection::vec(0..8u32, 0..4),
        refs in prop::collection::vec(0..5u32, 0..6),
        series in prop::collection::vec(0..7u32, 0..3),
        rows in prop::collection::vec(0..3u32, 0..3),
        times: Vec<i64>,
    ) {
        let values = vec![1.0; rows.len()];
        let batch = Batch {
            symbols,
            symbol_ends: ends,
            label_refs: refs,
            series_ends: series,
            samples: Samples { series: rows, timestamps_ms: times, values },
            histograms: Histograms::empty(),
        };
        if let Ok(body) = write(&batch) {
            prop_assert!(View::of(V2, &body, Interest::all(), BYTES_MAX).is_ok());
        }
    }

    #[test]
    fn any_edit_is_carried_out_or_refused(
        is_v1: bool,
        symbols in "[a-zé]{0,12}",
        numbers in prop::collection::vec(prop::collection::vec(0..24u32, 0..8), 5),
        even: bool,
    ) {
        let (version, body) = if is_v1 { (V1, body_v1()) } else { (V2, body_v2()) };
        let view = view(version, &body);
        let mut columns = numbers.into_iter();
        let mut next = || columns.next().unwrap_or_default();
        let mut edit = Edit {
            symbols,
            symbol_ends: next(),
            dropped: next(),
            relabeled: next(),
            label_refs: next(),
            series_ends: next(),
            ..no_edit()
        };
        if even {
            // Sorted ends are valid more often.
            edit.symbol_ends.sort_unstable();
            edit.label_refs = edit.label_refs.iter().flat_map(|n| [n % 8, n % 7]).collect();
            let ends = 1..=edit.relabeled.len() as u32;
            edit.series_ends = ends.map(|n| (2 * n).min(edit.label_refs.len() as u32)).collect();
        }
        if let Ok(made) = edited(version, &body, &view, &edit) {
            prop_assert!(View::of(version, &made.body, Interest::all(), BYTES_MAX).is_ok());
            prop_assert!(made.dropped_rows <= view.samples + view.histograms);
        }
    }
}
