//! Checks of the interface `wal`.

use super::bindings::tidepool::tsdb::wal::{self, Batch, Checkpoint, Log};
use super::broken::Broken;

/// Returns a record with all byte values that takes more than one page of a file.
fn long_record() -> Vec<u8> {
    (0..100_000u32).map(|at| (at * 7 + at / 256) as u8).collect()
}

fn records(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Returns records so small that a batch holds many.
fn numbered() -> Vec<Vec<u8>> {
    (0..500).map(|number| format!("record {number}").into_bytes()).collect()
}

/// Returns a record that names the segment of the record before it.
fn segment_note(segment: u32) -> Vec<Vec<u8>> {
    records(&[&format!("after segment {segment}")])
}

pub fn write(broken: &mut Broken) {
    let first = broken.done("replay of an empty log", wal::replay(1000)).flatten();
    broken.holds("replay of an empty log gives none", first.is_none());

    let mut append = |log: Log, texts: &[&str]| {
        broken.done("append", wal::append(log, &records(texts))).unwrap_or_default()
    };
    let first = append(Log::InOrder, &["replaced 1", "replaced 2"]);
    let none = append(Log::InOrder, &[]);
    let out_of_order = append(Log::OutOfOrder, &["truncated"]);
    broken.same("the segment of an append without records", none, first);
    let cut = broken.done("cut-segment", wal::cut_segment(Log::InOrder));
    broken.same("the segment that was ended", cut, Some(first));
    let cut = broken.done("cut-segment of the out-of-order log", wal::cut_segment(Log::OutOfOrder));
    broken.same("the segment of the out-of-order log that was ended", cut, Some(out_of_order));

    let mut last = vec![long_record()];
    last.extend(records(&["kept"]));
    let second = broken.done("append", wal::append(Log::InOrder, &last)).unwrap_or_default();
    broken.holds("later records lie in higher segments", second > first);
    broken.done("append", wal::append(Log::InOrder, &segment_note(second)));
    let empty = broken.done("cut-segment", wal::cut_segment(Log::OutOfOrder));
    broken.holds("a segment without records may be ended", empty > Some(out_of_order));
    let kept = broken.done("append", wal::append(Log::OutOfOrder, &records(&["late"])));
    broken.holds("later records of the out-of-order log lie in higher segments", kept > empty);
    broken.done("truncate-out-of-order", wal::truncate_out_of_order(out_of_order));
    broken.done(
        "truncate-out-of-order where nothing is left",
        wal::truncate_out_of_order(out_of_order),
    );

    let dropped = Checkpoint::new(first);
    broken.done("append to a checkpoint", dropped.append(&records(&["never seen"])));
    drop(dropped);
    let checkpoint = Checkpoint::new(first);
    broken.done("append to a checkpoint", checkpoint.append(&records(&["checkpoint 1"])));
    broken.done("append to a checkpoint", checkpoint.append(&records(&["checkpoint 2"])));
    broken.done("commit of a checkpoint", Checkpoint::commit(checkpoint));
    broken.done("append after a checkpoint", wal::append(Log::InOrder, &numbered()));

    // Left uncommitted when the instance ends.
    broken.done("cut-segment", wal::cut_segment(Log::InOrder));
    let unfinished = Box::leak(Box::new(Checkpoint::new(second)));
    broken.done("append to a checkpoint", unfinished.append(&records(&["never seen either"])));
}

pub fn read_back(broken: &mut Broken) {
    let mut read: Vec<(Log, u32, Vec<u8>)> = Vec::new();
    // Sizes so small that each batch is one record, then so large that one holds many.
    let mut sizes = [0, 1, 10].into_iter().chain(std::iter::repeat(2000));
    while let Some(bytes_max) = sizes.next()
        && let Some(Some(batch)) = broken.done("replay", wal::replay(bytes_max))
    {
        let Batch { log, segment, bytes, lengths } = batch;
        broken.holds("a batch has at least one record", !lengths.is_empty());
        let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
        broken.same("the lengths of a batch add up to its bytes", total, bytes.len() as u64);
        // All but the first record, which may be too long, and the last, which need not fit.
        let between = lengths.get(1..lengths.len().saturating_sub(1)).unwrap_or_default();
        let between: u64 = between.iter().map(|length| u64::from(*length)).sum();
        broken.holds("a batch fits into bytes-max", between <= u64::from(bytes_max));
        let mut rest = &bytes[..];
        for length in lengths {
            let (record, after) = rest.split_at_checked(length as usize).unwrap_or((rest, &[]));
            read.push((log, segment, record.to_vec()));
            rest = after;
        }
        if read.len() > 10_000 {
            broken.holds("a replay comes to its end", false);
            return;
        }
    }
    let again = broken.done("append after a replay", wal::append(Log::InOrder, &[]));
    broken.holds("a segment is being written after a replay", again.is_some());

    let of = |wanted: Log| read.iter().filter(move |(log, ..)| *log == wanted);
    let bytes_of = |wanted| of(wanted).map(|(.., record)| record.clone()).collect::<Vec<_>>();
    let segments: Vec<u32> = of(Log::InOrder).map(|(_, segment, _)| *segment).collect();
    let mut in_order = records(&["checkpoint 1", "checkpoint 2"]);
    in_order.push(long_record());
    in_order.extend(records(&["kept"]));
    in_order.extend(segments.get(3).into_iter().flat_map(|kept| segment_note(*kept)));
    in_order.extend(numbered());
    broken.holds("the records of the in-order log come back", bytes_of(Log::InOrder) == in_order);
    broken.holds(
        "those of the out-of-order log come back",
        bytes_of(Log::OutOfOrder) == records(&["late"]),
    );
    broken.holds("segments ascend", segments.is_sorted());
    let out_of_order_at = read.iter().position(|(log, ..)| *log == Log::OutOfOrder);
    let is_out_of_order_last =
        out_of_order_at.is_none_or(|at| read[at..].iter().all(|(log, ..)| *log == Log::OutOfOrder));
    broken.holds("the out-of-order log comes after the in-order one", is_out_of_order_last);
    let is_checkpoint_lower =
        matches!(segments[..], [one, two, three, ..] if one == two && two < three);
    broken.holds("a checkpoint counts as the segment it replaced", is_checkpoint_lower);
}
