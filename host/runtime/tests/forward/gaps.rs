//! Gaps: rows that leave the log undelivered are read from the store, window by window.

use crate::node::{Node, Piece, feed, settings};
use crate::received::{Rows, deliver_all};
use crate::{BASE_MS, MINUTE_MS, TestResult, WINDOW_MS};
use tidepool_disk::wal::LogKind;
use tidepool_runtime::{Destination, Place, RemoteWriteVersion, StoreWindow};
use tidepool_tests::series::Series;

/// End of the out-of-order log in these tests, which has no records.
const OUT_OF_ORDER_END: Place = Place { segment: 0, record: 0, row: 0 };

/// Rows of two series, one per minute; the end is excluded.
fn rows(minutes: std::ops::Range<i64>) -> [Series; 2] {
    ["a", "b"].map(|job| {
        let samples: Vec<(i64, f64)> =
            minutes.clone().map(|at| (BASE_MS + at * MINUTE_MS, at as f64)).collect();
        Series::new(&[("__name__", "m"), ("job", job)], &samples)
    })
}

/// Records written after the first `seen`.
fn newer(node: &Node, seen: usize) -> TestResult<Piece> {
    let mut pieces = node.pieces(LogKind::InOrder)?;
    let mut piece = pieces.pop().filter(|_| pieces.is_empty()).ok_or("one segment expected")?;
    let bytes: u32 = piece.records.lengths.drain(..seen).sum();
    piece.records.bytes.drain(..bytes as usize);
    piece.first += seen as u32;
    Ok(piece)
}

fn window(of: &mut Destination) -> TestResult<Option<(i64, i64, u64)>> {
    let window = of.store_window()?;
    Ok(window.map(|StoreWindow { start_ms, end_ms, rows }| (start_ms, end_ms, rows)))
}

/// Reads the oldest window from the store and delivers it; queues hold `capacity` rows.
fn drain_window(node: &mut Node, of: &mut Destination, capacity: u32) -> TestResult<Rows> {
    let window = of.store_window()?.ok_or("no window")?;
    of.begin_store_window(OUT_OF_ORDER_END)?;
    let frames = node.stored(&window)?;
    let (mut rest, mut received) = (frames.as_slice(), Rows::default());
    while !rest.is_empty() {
        let fed = of.feed_store(rest, capacity)?;
        assert!(fed.is_full || fed.bytes as usize == rest.len(), "{fed:?}");
        assert_eq!(of.has_store_rows()?, fed.rows > 0);
        rest = &rest[fed.bytes as usize..];
        let rows = deliver_all(of)?;
        assert_eq!(rows.count() as u64, fed.rows);
        received.extend(rows);
        assert!(!of.has_store_rows()?);
    }
    assert_eq!(received.count() as u64, window.rows);
    of.end_store_window()?;
    Ok(received)
}

#[test]
fn what_the_log_drops_comes_from_the_store() -> TestResult {
    let mut node = Node::new()?;
    let mut destination = node.destination(&settings(1))?;
    node.write(&rows(0..10))?;
    let first = newer(&node, 0)?;
    let mut seen = first.records.len();
    feed(&mut destination, &[first])?;
    assert!(destination.take(0, RemoteWriteVersion::V2, 5, i64::MIN)?.is_some());

    // What was taken, but is not done, counts as not delivered.
    assert_eq!(destination.detach()?, 20);
    assert_eq!((destination.pending()?, destination.gap_rows()?), (vec![0], 20));
    node.write(&rows(10..40))?;
    let second = newer(&node, seen)?;
    seen += second.records.len();
    let fed = feed(&mut destination, &[second])?;
    assert_eq!((fed[0].rows, fed[0].in_gap, destination.pending()?), (60, 60, vec![0]));
    assert_eq!(destination.gap_rows()?, 80);
    destination.attach()?;
    let (positions, gaps) = (destination.positions()?, destination.gaps()?);
    node.write(&rows(40..41))?;
    let fed = feed(&mut destination, &[newer(&node, seen)?])?;
    assert_eq!((fed[0].rows, fed[0].in_gap, destination.pending()?), (2, 0, vec![2]));
    assert_eq!(deliver_all(&mut destination)?, Rows::of(&rows(40..41)));

    // Half an hour of both series, then the ten minutes that are left.
    let windows = [
        (BASE_MS, BASE_MS + WINDOW_MS - 1, 60),
        (BASE_MS + WINDOW_MS, BASE_MS + 2 * WINDOW_MS - 1, 20),
    ];
    assert_eq!(window(&mut destination)?, Some(windows[0]));
    let received = drain_window(&mut node, &mut destination, u32::MAX)?;
    assert_eq!(received, Rows::of(&rows(0..30)));
    assert_eq!((window(&mut destination)?, destination.gap_rows()?), (Some(windows[1]), 20));
    // With room for the rows of one series at a time.
    let received = drain_window(&mut node, &mut destination, 1)?;
    assert_eq!(received, Rows::of(&rows(30..40)));
    assert_eq!((window(&mut destination)?, destination.gap_rows()?), (None, 0));
    assert!(destination.gaps()?.is_empty());

    // The next run, which reads the log from its beginning, has the same gap.
    let mut resumed = node.resumed(&positions, &gaps)?;
    assert_eq!((window(&mut resumed)?, resumed.gap_rows()?), (Some(windows[0]), 80));
    feed(&mut resumed, &node.all_pieces()?)?;
    assert_eq!(resumed.pending()?, [2], "the rows after the gap");
    let mut received = deliver_all(&mut resumed)?;
    received.extend(drain_window(&mut node, &mut resumed, u32::MAX)?);
    received.extend(drain_window(&mut node, &mut resumed, u32::MAX)?);
    assert_eq!(received.by_time(), Rows::of(&rows(0..41)));
    Ok(())
}

/// A window that was partly delivered continues in the next run with the next row.
#[test]
fn a_window_continues_where_the_last_run_was() -> TestResult {
    let mut node = Node::new()?;
    let mut destination = node.destination(&settings(1))?;
    node.write(&rows(0..20))?;
    destination.detach()?;
    feed(&mut destination, &node.all_pieces()?)?;
    destination.attach()?;
    let open = destination.store_window()?.ok_or("no window")?;
    destination.begin_store_window(OUT_OF_ORDER_END)?;
    let frames = node.stored(&open)?;
    destination.feed_store(&frames, u32::MAX)?;
    let delivered = crate::received::deliver(&mut destination, 0, 25)?.ok_or("no rows")?;
    assert_eq!(delivered.count(), 25);
    let (positions, gaps) = (destination.positions()?, destination.gaps()?);
    assert_eq!(positions[0].store_window_ms, BASE_MS);

    let mut resumed = node.resumed(&positions, &gaps)?;
    resumed.begin_store_window(OUT_OF_ORDER_END)?;
    let fed = resumed.feed_store(&frames, u32::MAX)?;
    assert_eq!(fed.rows, 15);
    let mut received = delivered;
    received.extend(deliver_all(&mut resumed)?);
    assert_eq!(received, Rows::of(&rows(0..20)));
    Ok(())
}

/// A window that is given up is not sent.
#[test]
fn a_window_can_be_given_up() -> TestResult {
    let mut node = Node::new()?;
    let mut destination = node.destination(&settings(1))?;
    node.write(&rows(0..40))?;
    feed(&mut destination, &node.all_pieces()?)?;
    assert_eq!(destination.detach()?, 80);
    destination.attach()?;
    destination.end_store_window()?;
    assert_eq!(destination.gap_rows()?, 20);
    let received = drain_window(&mut node, &mut destination, u32::MAX)?;
    assert_eq!(received, Rows::of(&rows(30..40)));
    assert_eq!(destination.store_window()?.map(|window| window.rows), None);
    Ok(())
}
