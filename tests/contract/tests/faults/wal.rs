//! Faults in the interface `wal`.

use crate::{Findings, replace};
use embed_rust::State;
use embed_rust::bindings::tidepool::tsdb::types::StorageError;
use embed_rust::bindings::tidepool::tsdb::wal::{Batch, Host as Wal, HostCheckpoint, Log};
use embed_rust::storage::Checkpoint;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use wasmtime::Result;
use wasmtime::component::{ComponentNamedList, ComponentType, Lift, Lower, Resource};

type Records = Vec<Vec<u8>>;
type Replayed = Result<Result<Option<Batch>, StorageError>>;

const IN_ORDER: &str = "the records of the in-order log come back";
const OUT_OF_ORDER: &str = "those of the out-of-order log come back";

fn faulty<P, R>(
    function: &str,
    faulty: impl Fn(&mut State, P) -> Result<R> + Send + Sync + 'static,
) -> Findings
where
    P: ComponentNamedList + Lift + 'static,
    R: ComponentType + Lower + 'static,
{
    Findings::with("wal", |imports| replace(imports, function, faulty))
}

/// Runs the checks with a replay that changes each batch.
fn replay_with(change: impl Fn(Batch) -> Batch + Send + Sync + 'static) -> Findings {
    faulty("replay", move |state, (bytes_max,): (u32,)| {
        Ok(state.replay(bytes_max)?.map(|batch| batch.map(&change)))
    })
}

/// Runs the checks with an append that changes its arguments.
fn append_with(
    change: impl Fn(Log, Records) -> (Log, Records) + Send + Sync + 'static,
) -> Findings {
    faulty("append", move |state, (log, records): (Log, Records)| {
        let (log, records) = change(log, records);
        Wal::append(state, log, records)
    })
}

#[test]
fn a_replay_that_drops_a_record() {
    faulty("replay", |state, (bytes_max,): (u32,)| -> Replayed {
        match state.replay(bytes_max)? {
            Ok(Some(batch)) if batch.bytes == b"kept" => state.replay(bytes_max),
            batch => Ok(batch),
        }
    })
    .says(IN_ORDER);
}

#[test]
fn a_replay_that_gives_a_record_twice() {
    replay_with(|batch| match &batch.bytes[..] {
        b"late" => Batch { bytes: b"latelate".into(), lengths: vec![4, 4], ..batch },
        _ => batch,
    })
    .says(OUT_OF_ORDER);
}

#[test]
fn a_replay_that_swaps_two_records() {
    let held: Mutex<Option<Batch>> = Mutex::new(None);
    faulty("replay", move |state, (bytes_max,): (u32,)| -> Replayed {
        let mut held = held.lock().expect("a lock");
        if let Some(batch) = held.take() {
            return Ok(Ok(Some(batch)));
        }
        match state.replay(bytes_max)? {
            Ok(Some(batch)) if batch.bytes == b"record 7" => {
                *held = Some(batch);
                state.replay(bytes_max)
            }
            batch => Ok(batch),
        }
    })
    .says(IN_ORDER);
}

#[test]
fn a_replay_that_cuts_long_records_off() {
    replay_with(|mut batch| {
        batch.bytes.truncate(32 * 1024);
        Batch { lengths: vec![batch.bytes.len() as u32], ..batch }
    })
    .says(IN_ORDER);
}

#[test]
fn a_replay_with_the_out_of_order_log_first() {
    let out_of_order: Mutex<Option<Vec<Batch>>> = Mutex::new(None);
    let is_second_life = AtomicBool::new(false);
    faulty("replay", move |state, (bytes_max,): (u32,)| -> Replayed {
        if !is_second_life.swap(true, Ordering::Relaxed) {
            return state.replay(bytes_max);
        }
        let mut out_of_order = out_of_order.lock().expect("a lock");
        if out_of_order.is_none() {
            let mut all = vec![];
            while let Ok(Some(batch)) = state.replay(bytes_max)? {
                all.push(batch);
            }
            // Reversed, because batches are taken from the end.
            all.reverse();
            all.sort_by_key(|batch| batch.log == Log::OutOfOrder);
            *out_of_order = Some(all);
        }
        Ok(Ok(out_of_order.as_mut().and_then(Vec::pop)))
    })
    .says("the out-of-order log comes after the in-order one");
}

#[test]
fn a_replay_that_gives_more_than_was_asked() {
    faulty("replay", |state, (bytes_max,): (u32,)| -> Replayed {
        let mut all = state.replay(bytes_max)?;
        let Ok(Some(batch)) = &mut all else { return Ok(all) };
        // Adds two more of the first records; any would do.
        if batch.bytes == b"checkpoint 1" {
            for _ in 0..2 {
                let Ok(Some(next)) = state.replay(bytes_max)? else { break };
                batch.bytes.extend(next.bytes);
                batch.lengths.extend(next.lengths);
            }
        }
        Ok(all)
    })
    .says("a batch fits into bytes-max");
}

#[test]
fn a_replay_with_an_empty_batch() {
    let is_first = AtomicBool::new(true);
    faulty("replay", move |state, (bytes_max,): (u32,)| -> Replayed {
        match state.replay(bytes_max)? {
            Ok(Some(batch)) if is_first.swap(false, Ordering::Relaxed) => {
                Ok(Ok(Some(Batch { bytes: vec![], lengths: vec![], ..batch })))
            }
            batch => Ok(batch),
        }
    })
    .says("a batch has at least one record");
}

#[test]
fn a_replay_with_wrong_lengths() {
    replay_with(|batch| Batch { lengths: vec![1], ..batch })
        .says("the lengths of a batch add up to its bytes");
}

#[test]
fn a_replay_that_never_ends() {
    let is_second_life = AtomicBool::new(false);
    faulty("replay", move |state, (bytes_max,): (u32,)| -> Replayed {
        match state.replay(bytes_max)? {
            // The next call to the correct storage begins a new replay.
            Ok(None) if is_second_life.swap(true, Ordering::Relaxed) => state.replay(bytes_max),
            batch => Ok(batch),
        }
    })
    .says("a replay comes to its end");
}

#[test]
fn a_replay_that_fails() {
    let is_first = AtomicBool::new(true);
    faulty("replay", move |state, (bytes_max,): (u32,)| -> Replayed {
        match is_first.swap(false, Ordering::Relaxed) {
            true => Ok(Err(StorageError::NotFound("no log yet".into()))),
            false => state.replay(bytes_max),
        }
    })
    .says("replay of an empty log: failed");
}

#[test]
fn a_replay_that_loses_the_segment() {
    replay_with(|batch| Batch { segment: 0, ..batch })
        .says("a checkpoint counts as the segment it replaced");
}

#[test]
fn a_replay_that_counts_segments_anew() {
    // Records after the checkpoint come back with another segment than `append` returned.
    replay_with(|batch| Batch { segment: batch.segment * 2, ..batch }).says(IN_ORDER);
}

#[test]
fn an_append_that_keeps_half_of_a_batch() {
    append_with(|log, mut records| {
        records.truncate(records.len().div_ceil(2));
        (log, records)
    })
    .says(IN_ORDER);
}

#[test]
fn an_append_that_turns_a_batch_around() {
    append_with(|log, records| (log, records.into_iter().rev().collect())).says(IN_ORDER);
}

#[test]
fn an_append_to_the_wrong_log() {
    append_with(|_, records| (Log::InOrder, records)).says(OUT_OF_ORDER);
}

/// Acts like a log whose sync does nothing: only what an earlier sync wrote is left.
#[test]
fn an_append_that_is_lost_with_its_instance() {
    let appended = AtomicU32::new(0);
    append_with(move |log, records| match appended.fetch_add(1, Ordering::Relaxed) {
        0..5 => (log, records),
        _ => (log, vec![]),
    })
    .says(IN_ORDER);
}

#[test]
fn an_append_that_names_another_segment() {
    faulty("append", |state, (log, records): (Log, Records)| {
        Ok(Wal::append(state, log, records)?.map(|segment| segment + 1))
    })
    .says("the segment that was ended");
}

#[test]
fn an_append_of_nothing_that_fails() {
    faulty("append", |state, (log, records): (Log, Records)| match records.is_empty() {
        true => Ok(Err(StorageError::Io("no records".into()))),
        false => Wal::append(state, log, records),
    })
    .says("append: failed");
}

#[test]
fn a_cut_that_cuts_nothing() {
    faulty("cut-segment", |state, (log,): (Log,)| Wal::append(state, log, vec![]))
        .says("later records lie in higher segments");
}

#[test]
fn a_cut_of_the_other_log() {
    faulty("cut-segment", |state, (_,): (Log,)| state.cut_segment(Log::InOrder))
        .says("later records of the out-of-order log lie in higher segments");
}

#[test]
fn a_truncate_that_leaves_all() {
    faulty("truncate-out-of-order", |_, (_,): (u32,)| Ok(Ok::<(), StorageError>(())))
        .says(OUT_OF_ORDER);
}

#[test]
fn a_truncate_that_takes_too_much() {
    faulty("truncate-out-of-order", |state, (_,): (u32,)| state.truncate_out_of_order(u32::MAX))
        .says(OUT_OF_ORDER);
}

#[test]
fn a_truncate_that_wants_something_to_take() {
    let is_first = AtomicBool::new(true);
    faulty("truncate-out-of-order", move |state, (last_segment,): (u32,)| {
        match is_first.swap(false, Ordering::Relaxed) {
            true => state.truncate_out_of_order(last_segment),
            false => Ok(Err(StorageError::NotFound(last_segment.to_string()))),
        }
    })
    .says("truncate-out-of-order where nothing is left: failed");
}

#[test]
fn a_checkpoint_that_is_seen_before_its_commit() {
    type Append = (Resource<Checkpoint>, Records);
    faulty("[method]checkpoint.append", |state, (_, records): Append| {
        Ok(Wal::append(state, Log::InOrder, records)?.map(drop))
    })
    .says(IN_ORDER);
}

#[test]
fn a_checkpoint_that_replaces_nothing() {
    faulty("[static]checkpoint.commit", |state, (this,): (Resource<Checkpoint>,)| {
        HostCheckpoint::drop(state, this)?;
        Ok(Ok::<(), StorageError>(()))
    })
    .says(IN_ORDER);
}

#[test]
fn a_checkpoint_that_replaces_too_much() {
    faulty("[static]checkpoint.commit", |state, (this,): (Resource<Checkpoint>,)| {
        let all = HostCheckpoint::new(state, u32::MAX)?;
        HostCheckpoint::commit(state, all)?.expect("memory");
        HostCheckpoint::commit(state, this)
    })
    .says(IN_ORDER);
}

#[test]
fn a_checkpoint_that_drops_its_first_records() {
    type Append = (Resource<Checkpoint>, Records);
    faulty("[method]checkpoint.append", |state, (this, records): Append| {
        let records = records.into_iter().filter(|record| record != b"checkpoint 1").collect();
        HostCheckpoint::append(state, this, records)
    })
    .says(IN_ORDER);
}
