//! Series of a destination, from records of segments that it does not send.

use crate::node::{Node, feed, settings};
use crate::received::{Rows, deliver_all};
use crate::{BASE_MS, MINUTE_MS, TestResult};
use tidepool_disk::wal::LogKind;
use tidepool_tests::series::Series;

fn row(number: i64, at: i64) -> Series {
    let number_text = number.to_string();
    let labels = [("__name__", "m"), ("number", number_text.as_str())];
    Series::new(&labels, &[(BASE_MS + at * MINUTE_MS, number as f64)])
}

/// The first segment has three series, the second two more and rows of all.
#[test]
fn series_are_noted_and_dropped_by_segment() -> TestResult {
    let mut node = Node::new()?;
    node.write(&[row(0, 0), row(1, 0), row(2, 0)])?;
    node.cut_segment(LogKind::InOrder)?;
    let later = [row(0, 1), row(1, 1), row(2, 1), row(3, 1), row(4, 1)];
    node.write(&later)?;
    let pieces = node.pieces(LogKind::InOrder)?;
    let [first, second] = pieces.as_slice() else { panic!("two segments") };

    let mut unprepared = node.destination(&settings(1))?;
    let fed = feed(&mut unprepared, std::slice::from_ref(second))?;
    assert_eq!((fed[0].rows, fed[0].unknown), (2, 3), "three series are not known");
    assert_eq!(deliver_all(&mut unprepared)?, Rows::of(&later[3..]));

    let mut destination = node.destination(&settings(1))?;
    assert_eq!(destination.series_count()?, 0);
    destination.note_series(first.segment, &first.records)?;
    assert_eq!((destination.series_count()?, destination.pending()?), (3, vec![0]));
    let fed = feed(&mut destination, std::slice::from_ref(second))?;
    assert_eq!((fed[0].rows, fed[0].unknown), (5, 0));
    assert_eq!(destination.series_count()?, 5);
    // Series with queued rows stay until these are delivered.
    destination.drop_series(second.segment)?;
    assert_eq!(destination.series_count()?, 5);
    assert_eq!(deliver_all(&mut destination)?, Rows::of(&later));
    destination.drop_series(second.segment)?;
    assert_eq!(destination.series_count()?, 2);
    let again = feed(&mut destination, std::slice::from_ref(first))?;
    assert_eq!(destination.series_count()?, 5, "their records are back");
    assert_eq!(again[0].unknown, 0);
    Ok(())
}
