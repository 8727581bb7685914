//! The component with storage in memory, in the host that the example shows, and the instructions
//! that its calls take.

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

/// Blocks of two hours, as Prometheus has them.
pub const BLOCK_DURATION_MS: i64 = 7_200_000;

/// Bytes that one piece of a replay or an answer takes, as the host asks for them.
const PIECE_BYTES: u32 = 1 << 20;

/// The compiled component.
pub struct Runtime {
    engine: Engine,
    component: Component,
    linker: Linker<State>,
}

/// An open store.
pub struct Instance {
    store: Store<State>,
    bindings: bindings::EngineWithQueries,
}

impl Runtime {
    pub fn new() -> Result<Runtime> {
        let mut config = Config::new();
        // One unit for each instruction of the component and each byte that it copies, whatever the
        // machine makes of it. What the host does is none.
        config.consume_fuel(true);
        let engine = Engine::new(&config)?;
        let component = Component::from_file(&engine, built::component())?;
        let linker = embed_rust::linker(&engine)?;
        Ok(Runtime { engine, component, linker })
    }

    /// A store on some storage; its log is not read yet. Blocks grow up to the given span.
    pub fn open(&self, storage: Storage, block_duration_max_ms: i64) -> Result<Instance> {
        // The seed of std's hash maps is the one thing that would differ from run to run.
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
    /// The instructions that some calls take.
    pub fn count(&mut self, calls: impl FnOnce(&mut Instance) -> Result<()>) -> Result<u64> {
        let before = self.store.get_fuel()?;
        calls(self)?;
        Ok(before - self.store.get_fuel()?)
    }

    /// Reads the log to its end; returns the samples in it.
    pub fn replay(&mut self) -> Result<u64> {
        let guest = self.bindings.tidepool_tsdb_store();
        loop {
            let progress = check(guest.call_replay(&mut self.store, PIECE_BYTES)?)?;
            if progress.done {
                return Ok(progress.samples);
            }
        }
    }

    /// Ends the store and returns its head.
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

    /// Takes a saved head; returns whether it was whole.
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

    /// Does what is due with blocks; returns the levels of those it made.
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

    /// Takes a whole answer; returns its length. One of samples is gone over twice, as the host
    /// does that must tell its length first.
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

    /// Ends the instance, as a kill would, and returns what it stored.
    pub fn into_storage(self) -> Storage {
        self.store.into_data().storage
    }
}

fn check<T>(result: std::result::Result<T, Error>) -> Result<T> {
    result.map_err(wasmtime::Error::new)
}
