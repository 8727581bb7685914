//! A store in the memory of an instance, which ends with it. It has no blocks, so retention does
//! not apply.

use crate::append::{Refused, Sample, Sorted, is_histogram, labels, pieces};
use tidepool_runtime::{
    CallError, Instance, InstanceLimits, Options, RemoteWriteVersion, Role, Runtime, in_words,
};
use tidepool_store::{StoreError, random_seed};

/// Size of the part of a log that one call replays. There is none.
const REPLAY_BYTES: u32 = 64 << 10;

/// As upstream's test storage has it, so that chunks of unit tests end at the same times.
const BLOCK_DURATION_MS: i64 = 24 * 3_600_000;

pub struct MemoryStore {
    pub instance: Instance,
}

impl MemoryStore {
    /// Opens an empty store. Samples that are older than the newest one of their series by up to
    /// `out_of_order_window_ms` are stored.
    pub fn open(
        runtime: &Runtime,
        memory_bytes_max: usize,
        out_of_order_window_ms: i64,
    ) -> Result<MemoryStore, CallError> {
        let options = Options {
            hash_seed: random_seed(),
            out_of_order_window_ms,
            ..Options::without_limits(Role::All, BLOCK_DURATION_MS)
        };
        let limits = InstanceLimits { memory_bytes_max, deadline: None };
        let mut instance = runtime.instantiate_in_memory(options, limits)?;
        while !instance.replay(REPLAY_BYTES)?.done {}
        Ok(MemoryStore { instance })
    }

    /// Stores samples, and returns what was refused. Markers have to have one time.
    pub fn append(&mut self, samples: &[Sample]) -> Result<Refused, StoreError> {
        let Some(now_ms) = samples.iter().map(|sample| sample.time_ms).max() else {
            return Ok(Vec::new());
        };
        let instance = &mut self.instance;
        let mut histograms = None;
        for piece in pieces(samples, is_histogram) {
            let written = instance.append_remote_write(piece.version, &piece.body, now_ms)?;
            histograms = histograms.or(written.refusals.first().map(|first| first.reason));
        }
        let mut numbers = Vec::with_capacity(samples.len());
        for sample in samples {
            numbers.push(match instance.series_ref(&labels(&sample.series)) {
                Ok(number) => Ok(number),
                Err(CallError::Refused(error)) => Err(in_words(&error)),
                Err(error) => return Err(error.into()),
            });
        }
        let Sorted { columns, ended, ended_at_ms, unstored } = Sorted::new(samples, numbers);
        let outcome = instance.append_and_end(&columns, &ended, ended_at_ms, now_ms)?;
        Ok(unstored.refused(samples, &outcome.refused_rows, histograms))
    }

    /// Stores a write request of version 1. Refused samples are left out.
    pub fn append_request(&mut self, body: &[u8], now_ms: i64) -> Result<(), StoreError> {
        self.instance.append_remote_write(RemoteWriteVersion::V1, body, now_ms)?;
        Ok(())
    }
}
