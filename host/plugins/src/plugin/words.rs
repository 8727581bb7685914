//! Writes the standard output and error of a plugin to the log, within bounds.

use super::text::one_line;
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Bytes that an instance may write in a while; the rest is lost.
const BYTES_MAX: usize = 8 * 1024;

/// How long that while is at least: a new one begins with the next call.
const WHILE: Duration = Duration::from_secs(1);

/// Longest line.
const LINE_BYTES_MAX: usize = 1024;

/// Where an instance's words go; clones are the same place.
#[derive(Clone)]
pub struct Words {
    plugin: Arc<str>,
    state: Arc<Mutex<State>>,
}

struct State {
    line: Vec<u8>,
    bytes_left: usize,
    since: Instant,
    is_told: bool,
}

impl Words {
    /// Words of a plugin.
    pub fn of(plugin: &str) -> Words {
        let (line, since) = (Vec::new(), Instant::now());
        let state = State { line, bytes_left: BYTES_MAX, since, is_told: false };
        Words { plugin: plugin.into(), state: Arc::new(Mutex::new(state)) }
    }

    /// A call begins.
    pub fn begin_call(&self) {
        let mut state = self.lock();
        let now = Instant::now();
        if now.duration_since(state.since) >= WHILE {
            state.since = now;
            state.bytes_left = BYTES_MAX;
            state.is_told = false;
        }
    }

    fn take(&self, bytes: &[u8]) {
        let mut state = self.lock();
        for byte in bytes {
            if state.bytes_left == 0 {
                if !std::mem::replace(&mut state.is_told, true) {
                    let plugin = &*self.plugin;
                    tracing::warn!(
                        plugin,
                        "the plugin printed more than {BYTES_MAX} bytes; the rest is dropped"
                    );
                }
                return;
            }
            state.bytes_left -= 1;
            if *byte != b'\n' {
                state.line.push(*byte);
            }
            if *byte == b'\n' || state.line.len() >= LINE_BYTES_MAX {
                let line = std::mem::take(&mut state.line);
                let line = one_line(&String::from_utf8_lossy(&line));
                let line = line.trim_end();
                if !line.is_empty() {
                    tracing::info!(plugin = &*self.plugin, "{line}");
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IsTerminal for Words {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Words {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Only the streams of WASI 0.2 are linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Words {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(BYTES_MAX)
    }
}

#[async_trait]
impl Pollable for Words {
    async fn ready(&mut self) {}
}
