//! Targets from a JSON list that an HTTP server provides.
//!
//! Source: `discovery/http` of prometheus/prometheus, which does not save the last list.

use super::list::{List, ListError, Raw};
use super::read::{Origin, json};
use super::saved::Saved;
use super::{DiscoveryFigures, DiscoveryOptions, LIST_BYTES_MAX};
use crate::config::HttpConfig;
use crate::memory::MemoryBound;
use crate::target::names;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidepool_client::{Ask, Client, ClientError};

/// Header that tells the server the time between requests, in seconds.
const INTERVAL: HeaderName = HeaderName::from_static("x-prometheus-refresh-interval-seconds");

/// Discoverer that requests a list from a server.
pub(super) struct HttpDiscovery {
    config: HttpConfig,
    client: Client,
    figures: Arc<DiscoveryFigures>,
    memory: MemoryBound,
    saved: Option<Saved>,
    /// The last list that was read.
    known: Option<Known>,
    has_answered: bool,
    /// Fault of the last request.
    wrong: Option<ListError>,
}

/// A parsed list, and the hash of its bytes.
#[derive(Clone)]
struct Known {
    hash: u64,
    list: Arc<List>,
}

impl HttpDiscovery {
    /// Creates a discoverer and loads the saved list, which may be long. Sends no request.
    pub fn open(
        config: &HttpConfig,
        options: &DiscoveryOptions,
    ) -> Result<HttpDiscovery, ClientError> {
        let client = Client::open(&config.client)?;
        let saved = options.saved_dir.as_ref().map(|dir| Saved::new(dir, config.url.0.as_str()));
        let mut discovery = HttpDiscovery {
            config: config.clone(),
            client,
            figures: Arc::clone(&options.figures),
            memory: options.memory.clone(),
            saved,
            known: None,
            has_answered: false,
            wrong: None,
        };
        // Checked here, so that invalid settings make the configuration invalid, not each request.
        discovery.client.check(&discovery.ask())?;
        match discovery.read_saved() {
            Ok(known) => discovery.known = known,
            // The next list of the server replaces the file.
            Err(error) => tracing::warn!(
                url = %discovery.config.url,
                error = error.what,
                "the kept list of targets cannot be used; there are none until the server answers"
            ),
        }
        Ok(discovery)
    }

    fn read_saved(&self) -> Result<Option<Known>, ListError> {
        let Some(saved) = &self.saved else { return Ok(None) };
        let Some(raw) = saved.read(&self.memory)? else { return Ok(None) };
        let hash = raw.hash();
        let list = raw.into_list(|bytes, room| json(bytes, &origin(&self.config), room))?;
        Ok(Some(Known { hash, list: Arc::new(list) }))
    }

    pub fn interval(&self) -> Duration {
        self.config.refresh_interval
    }

    /// Returns the last list, which may be from an earlier run.
    pub fn known(&self) -> Vec<Arc<List>> {
        self.known.iter().map(|known| Arc::clone(&known.list)).collect()
    }

    /// Returns whether there is a list, from this or an earlier run.
    pub fn has_answered(&self) -> bool {
        self.has_answered || self.known.is_some()
    }

    /// Requests the list, and returns it if it has changed.
    pub async fn refresh(&mut self) -> Option<Vec<Arc<List>>> {
        let asked = match self.fetch().await {
            Ok(raw) => self.read(raw).await,
            Err(error) => Err(error),
        };
        match asked {
            Ok(changed) => {
                if self.wrong.take().is_some() {
                    tracing::info!(url = %self.config.url, "the list of targets can be read again");
                }
                self.has_answered = true;
                // `None` means that the bytes are the same as before, so nothing changes.
                let new = changed?;
                let is_same = |known: &Known| Arc::ptr_eq(&known.list, &new.list);
                let changes = !self.known.as_ref().is_some_and(is_same);
                self.known = Some(new);
                changes.then(|| self.known())
            }
            Err(error) => {
                self.figures.http_failures.fetch_add(1, Relaxed);
                // Logged once per fault, however long it lasts.
                if !self.wrong.as_ref().is_some_and(|wrong| wrong.is_same(&error)) {
                    let url = &self.config.url;
                    let error = &error.what;
                    tracing::warn!(%url, error, "no list of targets; those of the last one stay");
                }
                self.wrong = Some(error);
                None
            }
        }
    }

    fn ask(&self) -> Ask {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let seconds = self.config.refresh_interval.as_secs_f64().to_string();
        if let Ok(seconds) = HeaderValue::try_from(seconds) {
            headers.insert(INTERVAL, seconds);
        }
        Ask {
            headers,
            timeout: Some(self.config.refresh_interval),
            answer_bytes_max: LIST_BYTES_MAX,
            ..Ask::get(self.config.url.0.clone())
        }
    }

    async fn fetch(&self) -> Result<Raw, ListError> {
        let mut answer = self.client.send(self.ask()).await.map_err(ListError::wrong)?;
        if answer.status.as_u16() != 200 {
            let what = format!("server returned HTTP status {}", answer.status);
            return Err(ListError::wrong(what));
        }
        let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().trim();
        if !is_json(kind) {
            return Err(ListError::wrong(format!("unsupported content type {kind:?}")));
        }
        let mut raw = Raw::new(&self.memory);
        while let Some(piece) = answer.chunk().await.map_err(ListError::wrong)? {
            raw.push(&piece)?;
        }
        Ok(raw)
    }

    /// Parses a list unless its bytes are the same, and saves it for the next start. Runs on
    /// another thread, because parsing a long list would block this thread for a second.
    async fn read(&self, raw: Raw) -> Result<Option<Known>, ListError> {
        let (config, saved, known) = (self.config.clone(), self.saved.clone(), self.known.clone());
        let work = move || read(raw, &config, saved.as_ref(), known.as_ref());
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(ListError::wrong(error)))
    }
}

fn read(
    raw: Raw,
    config: &HttpConfig,
    saved: Option<&Saved>,
    before: Option<&Known>,
) -> Result<Option<Known>, ListError> {
    let hash = raw.hash();
    if before.is_some_and(|before| before.hash == hash) {
        return Ok(None);
    }
    let mut is_kept = Ok(());
    let list = raw.into_list(|bytes, room| {
        let groups = json(bytes, &origin(config), room)?;
        // Only a list without faults is saved.
        is_kept = saved.map_or(Ok(()), |saved| saved.write_now(bytes));
        Ok(groups)
    })?;
    if let Err(error) = is_kept {
        tracing::warn!(
            url = %config.url,
            %error,
            "the list of targets could not be kept for the next start"
        );
    }
    // Equal groups in different bytes are no change.
    let list = match before {
        Some(before) if before.list.is_same(&list) => Arc::clone(&before.list),
        _ => Arc::new(list),
    };
    Ok(Some(Known { hash, list }))
}

fn origin(config: &HttpConfig) -> Origin<'_> {
    Origin { source: config.url.to_string(), label: (names::URL, &config.url_text) }
}

/// Returns whether a content type is JSON, in UTF-8 if it names a character set.
fn is_json(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let (kind, parameter) = kind.split_once(';').unwrap_or((&kind, ""));
    let is_utf8 = matches!(parameter.trim_start(), "" | "charset=utf-8" | "charset=\"utf-8\"");
    kind == "application/json" && is_utf8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of upstream's test `TestContentTypeRegex`.
    #[test]
    fn content_types_are_upstreams() {
        for (kind, expected) in [
            ("application/json;charset=utf-8", true),
            ("application/json; charset=utf-8", true),
            ("application/json;charset=\"utf-8\"", true),
            ("application/json", true),
            ("Application/JSON", true),
            ("application/json;charset=UTF-8", true),
            ("application/json;  charset=\"utf-8\"", true),
            ("application/json; charset=\"utf-8", false),
            ("text/plain", false),
            ("text/json", false),
            ("application/jsonl", false),
            ("", false),
        ] {
            assert_eq!(is_json(kind), expected, "{kind}");
        }
    }
}
