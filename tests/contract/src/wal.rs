//! The two logs.

use crate::bindings::tidepool::tsdb::wal::{self, Batch, Checkpoint, Log};
use crate::broken::Broken;

/// All bytes, and long enough for more than one page of a file.
fn long_record() -> Vec<u8> {
    (0..100_000u32).map(|at| (at * 7 + at / 256) as u8).collect()
}

fn records(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

pub fn write(broken: &mut Broken) {
    let first = broken.done("replay of an empty log", wal::replay(1000)).flatten();
    broken.holds("replay of an empty log gives none", first.is_none());

    let mut append = |log: Log, texts: &[&str]| {
        broken.done("append", wal::append(log, &records(texts))).unwrap_or_default()
    };
    let first = append(Log::Ordered, &["replaced 1", "replaced 2"]);
    let none = append(Log::Ordered, &[]);
    let late = append(Log::Late, &["truncated"]);
    broken.same("the segment of an append without records", none, first);
    let cut = broken.done("cut-segment", wal::cut_segment(Log::Ordered));
    broken.same("the segment that was ended", cut, Some(first));
    let cut = broken.done("cut-segment of the late log", wal::cut_segment(Log::Late));
    broken.same("the segment of the late log that was ended", cut, Some(late));

    let mut last = vec![long_record()];
    last.extend(records(&["kept"]));
    let second = broken.done("append", wal::append(Log::Ordered, &last)).unwrap_or_default();
    broken.holds("later records lie in higher segments", second > first);
    let kept = broken.done("append", wal::append(Log::Late, &records(&["late"])));
    broken.holds("later records of the late log lie in higher segments", kept > Some(late));
    broken.done("truncate-late", wal::truncate_late(late));

    let dropped = Checkpoint::new(first);
    broken.done("append to a checkpoint", dropped.append(&records(&["never seen"])));
    drop(dropped);
    let checkpoint = Checkpoint::new(first);
    broken.done("append to a checkpoint", checkpoint.append(&records(&["checkpoint 1"])));
    broken.done("append to a checkpoint", checkpoint.append(&records(&["checkpoint 2"])));
    broken.done("commit of a checkpoint", Checkpoint::commit(checkpoint));
    broken.done("append after a checkpoint", wal::append(Log::Ordered, &records(&["last"])));
}

pub fn read_back(broken: &mut Broken) {
    let mut read: Vec<(Log, u32, Vec<u8>)> = Vec::new();
    // So small that each batch is one record.
    while let Some(Some(batch)) = broken.done("replay", wal::replay(1)) {
        let Batch { log, segment, bytes, lengths } = batch;
        broken.holds("a batch has at least one record", !lengths.is_empty());
        let total: usize = lengths.iter().map(|length| *length as usize).sum();
        broken.same("the lengths of a batch add up to its bytes", total, bytes.len());
        let mut rest = &bytes[..];
        for length in lengths {
            let (record, after) = rest.split_at_checked(length as usize).unwrap_or((rest, &[]));
            read.push((log, segment, record.to_vec()));
            rest = after;
        }
    }
    let again = broken.done("append after a replay", wal::append(Log::Ordered, &[]));
    broken.holds("a segment is being written after a replay", again.is_some());

    let mut ordered = records(&["checkpoint 1", "checkpoint 2"]);
    ordered.push(long_record());
    ordered.extend(records(&["kept", "last"]));
    let of = |wanted: Log| read.iter().filter(move |(log, ..)| *log == wanted);
    let bytes_of = |wanted| of(wanted).map(|(.., record)| record.clone()).collect::<Vec<_>>();
    broken.holds("the records of the ordered log come back", bytes_of(Log::Ordered) == ordered);
    broken.holds("those of the late log come back", bytes_of(Log::Late) == records(&["late"]));
    broken.holds("segments ascend", of(Log::Ordered).is_sorted_by_key(|(_, segment, _)| *segment));
    let first_late = read.iter().position(|(log, ..)| *log == Log::Late);
    broken.same("the late log comes after the ordered one", first_late, Some(ordered.len()));
    let segments: Vec<u32> = of(Log::Ordered).map(|(_, segment, _)| *segment).collect();
    let is_checkpoint_lower =
        matches!(segments[..], [one, two, three, ..] if one == two && two < three);
    broken.holds("a checkpoint counts as the segment it replaced", is_checkpoint_lower);
}
