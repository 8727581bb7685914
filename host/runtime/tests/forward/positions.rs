//! Positions: rows that one run did not deliver are delivered by the next; and numbers of shards.

use crate::node::{Node, Piece, feed, settings};
use crate::received::{Rows, decoded, deliver, deliver_all};
use crate::{BASE_MS, MINUTE_MS, TestResult};
use tidepool_disk::wal::LogKind;
use tidepool_runtime::{CallError, Destination, Error, Place, RemoteWriteVersion};
use tidepool_tests::series::Series;

const SERIES: usize = 8;

/// One row of each series.
fn scrape(at: i64) -> Vec<Series> {
    let series = |number: usize| {
        let number_text = number.to_string();
        let labels = [("__name__", "m"), ("number", number_text.as_str())];
        Series::new(&labels, &[(BASE_MS + at * MINUTE_MS, (at * 10) as f64 + number as f64)])
    };
    (0..SERIES).map(series).collect()
}

/// Writes two segments of five scrapes, and an out-of-order scrape. Returns all rows.
fn write(node: &mut Node) -> TestResult<Rows> {
    let mut rows = Rows::default();
    for at in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0] {
        let scrape = scrape(at);
        node.write(&scrape)?;
        rows.extend(Rows::of(&scrape));
        if at == 5 {
            node.cut_segment(LogKind::InOrder)?;
        }
    }
    Ok(rows)
}

fn pending(of: &mut Destination) -> TestResult<usize> {
    Ok(of.pending()?.into_iter().sum::<u32>() as usize)
}

#[test]
fn the_next_run_delivers_the_rest() -> TestResult {
    let mut node = Node::new()?;
    let expected = write(&mut node)?;
    let pieces = node.all_pieces()?;
    let mut destination = node.destination(&settings(3))?;
    let fed = feed(&mut destination, &pieces)?;
    assert_eq!(fed.iter().map(|fed| fed.rows).sum::<u64>() as usize, expected.count());
    assert_eq!(pending(&mut destination)?, expected.count());

    let mut received = Rows::default();
    for (shard, requests) in [(0, 1), (1, 2), (2, 3)] {
        for _ in 0..requests {
            received.extend(deliver(&mut destination, shard, 5)?.unwrap_or_default());
        }
    }
    assert!(received.count() >= 15, "each shard has series: {received:?}");
    // These may have arrived, but were not acknowledged.
    let on_their_way = destination.take(0, RemoteWriteVersion::V2, 5, i64::MIN)?;
    assert!(on_their_way.is_some());
    let (positions, gaps) = (destination.positions()?, destination.gaps()?);
    assert_eq!((positions.len(), gaps.len()), (3, 0));

    let mut next = node.resumed(&positions, &gaps)?;
    feed(&mut next, &pieces)?;
    assert_eq!(pending(&mut next)?, expected.count() - received.count());
    received.extend(deliver_all(&mut next)?);
    assert_eq!(received.by_time(), expected.by_time());
    Ok(())
}

/// Position of the only shard: segment, record and row in each log.
fn places(of: &mut Destination) -> TestResult<[(u32, u32, u32); 2]> {
    let [position] = &*of.positions()? else { panic!("one shard") };
    let numbers = |place: Place| (place.segment, place.record, place.row);
    Ok([numbers(position.in_order), numbers(position.out_of_order)])
}

#[test]
fn positions_follow_delivery() -> TestResult {
    let mut node = Node::new()?;
    write(&mut node)?;
    let mut destination = node.destination(&settings(1))?;
    assert_eq!(places(&mut destination)?, [(0, 0, 0); 2]);
    let pieces = node.all_pieces()?;
    let [first, last, out_of_order] = pieces.as_slice() else { panic!("three segments") };
    feed(&mut destination, &pieces)?;
    // A record holds the eight rows of a scrape; the series have a record of their own before them.
    for (delivered, place) in [(3, (first.segment, 1, 3)), (16, (first.segment, 3, 3))] {
        deliver(&mut destination, 0, delivered)?;
        assert_eq!(places(&mut destination)?, [place, (out_of_order.segment, 0, 0)]);
    }
    deliver_all(&mut destination)?;
    let end = |piece: &Piece| (piece.segment, piece.records.len() as u32, 0);
    assert_eq!(places(&mut destination)?, [end(last), end(out_of_order)]);
    destination.end_segment(LogKind::InOrder, last.segment)?;
    let next = |piece: &Piece| (piece.segment + 1, 0, 0);
    assert_eq!(places(&mut destination)?, [next(last), end(out_of_order)]);
    destination.end_segment(LogKind::OutOfOrder, out_of_order.segment)?;
    assert_eq!(places(&mut destination)?, [next(last), next(out_of_order)]);
    Ok(())
}

#[test]
fn the_number_of_shards_changes_between_rows() -> TestResult {
    let mut node = Node::new()?;
    let expected = write(&mut node)?;
    let mut destination = node.destination(&settings(1))?;
    let pieces = node.all_pieces()?;
    let (first, rest) = pieces.split_at(1);
    feed(&mut destination, first)?;
    assert!(!destination.reshard(4)?, "rows are queued");
    assert_eq!(destination.pending()?.len(), 1);
    let mut received = deliver_all(&mut destination)?;
    assert!(destination.reshard(4)?);
    assert_eq!(destination.pending()?, [0; 4]);
    feed(&mut destination, rest)?;
    let mut shards_of_series = std::collections::BTreeMap::new();
    for shard in 0..4 {
        while let Some(rows) = deliver(&mut destination, shard, 7)? {
            for series in rows.0.keys() {
                let was = *shards_of_series.entry(series.clone()).or_insert(shard);
                assert_eq!(was, shard, "{series}");
            }
            received.extend(rows);
        }
    }
    assert!(shards_of_series.values().any(|shard| *shard > 0), "{shards_of_series:?}");
    assert_eq!(received.by_time(), expected.by_time());
    for shards in [0, 10_001] {
        let refused = destination.reshard(shards);
        assert!(matches!(refused, Err(CallError::Refused(Error::Invalid(_)))), "{refused:?}");
    }
    // A new run first reads up to where the last one was.
    let mut resumed = node.resumed(&destination.positions()?, &[])?;
    assert!(!resumed.reshard(2)?);
    feed(&mut resumed, &pieces)?;
    assert_eq!(resumed.pending()?, [0; 4]);
    assert!(resumed.reshard(2)?);
    assert_eq!(resumed.pending()?, [0; 2]);
    Ok(())
}

#[test]
fn what_cannot_be_resumed_is_invalid() -> TestResult {
    let mut node = Node::new()?;
    node.write(&scrape(0))?;
    let positions = node.destination(&settings(1))?.positions()?;
    for (positions, gaps) in [(&positions[..], &[0xff_u8; 3][..]), (&[], &[])] {
        let refused = node.destination(&settings(1))?.resume(positions, gaps);
        assert!(matches!(refused, Err(CallError::Refused(Error::Invalid(_)))), "{refused:?}");
    }
    // A destination with settings that cannot be used says so at every call.
    let mut invalid = node.destination(&settings(0))?;
    let refused = invalid.pending();
    assert!(matches!(refused, Err(CallError::Refused(Error::Invalid(_)))), "{refused:?}");
    let refused = invalid
        .take(0, RemoteWriteVersion::V1, 1, 0)
        .map(|taken| taken.map(|request| decoded(RemoteWriteVersion::V1, &request.body).is_ok()));
    assert!(matches!(refused, Err(CallError::Refused(Error::Invalid(_)))), "{refused:?}");
    Ok(())
}
