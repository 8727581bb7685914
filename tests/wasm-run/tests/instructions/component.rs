//! Runs the component with storage in memory, in the host of the example, and counts the
//! instructions of its calls.

use embed_rust::State;
use embed_rust::bindings;
use embed_rust::bindings::exports::tidepool::tsdb::store::{
    FrameFormat, LabelLimits, Options, RemoteWriteVersion, Role, Room, Selection, WriteOutcome,
};
use embed_rust::bindings::tidepool::tsdb::types::{Error, Matcher, TimeRange};
use embed_rust::storage::Storage;
use tidepool_tests::built;
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Result, Store};
use wasmtime_wasi::WasiCtx;

/// Block duration of two hours, as in Prometheus.
pub const BLOCK_DURATION_MS: i64 = 7_200_000;

/// Maximum bytes of one piece of a replay or an answer, as the host asks for them.
const PIECE_BYTES: u32 = 1 << 20;

pub struct Runtime {
    engine: Engine,
    component: Component,
    linker: Linker<State>,
}

pub struct Instance {
    store: Store<State>,
    bindings: bindings::EngineWithQueries,
}

impl Runtime {
    pub fn new() -> Result<Runtime> {
        let mut config = Config::new();
        // One unit for each instruction of the component and each byte that it copies, on any
        // machine. The host's work costs none.
        config.consume_fuel(true);
        let engine = Engine::new(&config)?;
        let component = Component::from_file(&engine, built::component())?;
        let linker = embed_rust::linker(&engine)?;
        Ok(Runtime { engine, component, linker })
    }

    /// Opens a store on a storage without replaying its log. Merged blocks have at most this span.
    pub fn open(&self, storage: Storage, block_duration_max_ms: i64) -> Result<Instance> {
        // The seed of std's hash maps is the only input that would differ from run to run.
        let wasi = WasiCtx::builder().inherit_stderr().insecure_random_seed(0).build();
        let state = State { storage, wasi, ..State::default() };
        let mut store = Store::new(&self.engine, state);
        store.set_fuel(u64::MAX)?;
        let bindings =
            bindings::EngineWithQueries::instantiate(&mut store, &self.component, &self.linker)?;
        let options = Options {
            role: Role::All,
            block_duration_ms: BLOCK_DURATION_MS,
            future_limit_ms: 600_000,
            out_of_order_window_ms: BLOCK_DURATION_MS,
            series_max: 0,
            exemplars_max: 0,
            memory_bytes_max: 0,
            label_limits: LabelLimits {
                labels_max: 128,
                name_bytes_max: 1024,
                value_bytes_max: 4096,
            },
            block_duration_max_ms,
            retention_ms: 0,
            retention_bytes: 0,
            hash_seed: 1,
        };
        check(bindings.tidepool_tsdb_store().call_open(&mut store, options)?)?;
        Ok(Instance { store, bindings })
    }
}

impl Instance {
    /// Returns the number of instructions that the calls take.
    pub fn count(&mut self, calls: impl FnOnce(&mut Instance) -> Result<()>) -> Result<u64> {
        let before = self.store.get_fuel()?;
        calls(self)?;
        Ok(before - self.store.get_fuel()?)
    }

    /// Replays the log; returns the number of samples in it.
    pub fn replay(&mut self) -> Result<u64> {
        let guest = self.bindings.tidepool_tsdb_store();
        loop {
            let progress = check(guest.call_replay(&mut self.store, PIECE_BYTES)?)?;
            if progress.done {
                return Ok(progress.samples);
            }
        }
    }

    /// Closes the store and returns its head snapshot.
    pub fn save_head(&mut self) -> Result<Vec<Vec<u8>>> {
        let guest = self.bindings.tidepool_tsdb_store();
        let saved = check(guest.call_save_head(&mut self.store)?)?;
        let mut pieces = Vec::new();
        loop {
            let piece = guest.saved_head().call_next(&mut self.store, saved, PIECE_BYTES)?;
            if piece.is_empty() {
                break;
            }
            pieces.push(piece);
        }
        saved.resource_drop(&mut self.store)?;
        Ok(pieces)
    }

    /// Loads a head snapshot; returns whether it was complete.
    pub fn load_head(&mut self, pieces: &[Vec<u8>]) -> Result<bool> {
        let guest = self.bindings.tidepool_tsdb_store();
        let mut is_last = false;
        for piece in pieces {
            is_last = check(guest.call_load_head(&mut self.store, piece)?)?;
        }
        Ok(is_last)
    }

    pub fn append(
        &mut self,
        version: RemoteWriteVersion,
        body: &[u8],
        now_ms: i64,
    ) -> Result<WriteOutcome> {
        let guest = self.bindings.tidepool_tsdb_store();
        check(guest.call_append_remote_write(&mut self.store, version, body, now_ms)?)
    }

    /// Compacts as far as it is due; returns the levels of new blocks.
    pub fn compact(&mut self, now_ms: i64) -> Result<Vec<u32>> {
        let guest = self.bindings.tidepool_tsdb_store();
        let room = Room { free_bytes: u64::MAX, other_bytes: 0, memory_bytes: u64::MAX };
        let mut levels = Vec::new();
        loop {
            let progress = check(guest.call_compact(&mut self.store, now_ms, room)?)?;
            levels.extend(progress.block.map(|block| block.level));
            if progress.done {
                return Ok(levels);
            }
        }
    }

    /// Reads a whole answer; returns its length. An answer of samples is read twice, as the host
    /// must know its length first.
    pub fn select(
        &mut self,
        format: FrameFormat,
        matchers: Vec<Matcher>,
        range: TimeRange,
    ) -> Result<u64> {
        let guest = self.bindings.tidepool_tsdb_store();
        let selection = Selection {
            matchers,
            range,
            format,
            query_index: 0,
            frame_bytes_max: 0,
            samples_max: 0,
            external_labels: Vec::new(),
        };
        let store = &mut self.store;
        let cursor = check(guest.call_select(&mut *store, &selection)?)?;
        if format == FrameFormat::Samples {
            while !check(guest.cursor().call_measure(&mut *store, cursor, PIECE_BYTES)?)?.done {}
            check(guest.cursor().call_rewind(&mut *store, cursor)?)?;
        }
        let mut bytes = 0;
        loop {
            let piece =
                check(guest.cursor().call_next_frames(&mut *store, cursor, PIECE_BYTES)?)?;
            if piece.is_empty() {
                break;
            }
            bytes += piece.len() as u64;
        }
        cursor.resource_drop(store)?;
        Ok(bytes)
    }

    /// Drops the instance, as a kill would, and returns its storage.
    pub fn into_storage(self) -> Storage {
        self.store.into_data().storage
    }
}

fn check<T>(result: std::result::Result<T, Error>) -> Result<T> {
    result.map_err(wasmtime::Error::new)
}
