//! Writes standard output and standard error of a plugin to the log, within limits.

use super::text::one_line;
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Maximum number of bytes that an instance may print per period; the rest is dropped.
const BYTES_MAX: usize = 8 * 1024;

/// Minimum length of a period. A new period starts with the first call after this time.
const WHILE: Duration = Duration::from_secs(1);

/// Maximum length of a line; longer lines are split.
const LINE_BYTES_MAX: usize = 1024;

/// Output stream of an instance. Clones share the stream and its limit.
#[derive(Clone)]
pub struct PluginOutput {
    plugin: Arc<str>,
    state: Arc<Mutex<State>>,
}

struct State {
    line: Vec<u8>,
    bytes_left: usize,
    since: Instant,
    is_told: bool,
}

impl PluginOutput {
    pub fn of(plugin: &str) -> PluginOutput {
        let (line, since) = (Vec::new(), Instant::now());
        let state = State { line, bytes_left: BYTES_MAX, since, is_told: false };
        PluginOutput { plugin: plugin.into(), state: Arc::new(Mutex::new(state)) }
    }

    /// Starts a call, and also a new period if the last period is over.
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
                // Logged once per period: a line for each dropped byte would flood the log as well.
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
            // A line without a newline is ended here, so that the buffer stays bounded.
            if *byte == b'\n' || state.line.len() >= LINE_BYTES_MAX {
                let line = std::mem::take(&mut state.line);
                // Control characters and bytes that are not UTF-8 must not reach the log.
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

impl IsTerminal for PluginOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for PluginOutput {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Unused, because only the streams of WASI 0.2 are linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for PluginOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        // Succeeds even if bytes are dropped, because many programs end when a print fails.
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        // Constant, so that a plugin never waits for the log.
        Ok(BYTES_MAX)
    }
}

#[async_trait]
impl Pollable for PluginOutput {
    async fn ready(&mut self) {}
}
