//! Decoders: bodies of `POST /api/v1/push/NAME`, and of paths that the configuration gives them, become remote-write requests.

use super::batch::write;
use super::bindings::decoder::exports::tidepool::plugin::decode_bodies::{Refusal, Request};
use super::fault::Fault;
use super::manager::Plugins;
use super::pool::Plugin;
use super::push::{Decoded, PushRequest, Undecoded};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Reasons that a sender is told.
const REASONS_MAX: usize = 10;

/// Longest of them, in characters.
const REASON_CHARS_MAX: usize = 512;

impl Plugins {
    /// Whether a decoder is there; the error is for whoever asked.
    pub fn check_decoder(&self, name: &str) -> Result<(), Undecoded> {
        self.found_decoder(name).map(drop)
    }

    /// Lets a decoder work on a body.
    pub async fn decode(&self, name: &str, request: PushRequest) -> Result<Decoded, Undecoded> {
        let plugin = self.found_decoder(name)?;
        self.blocking(async move || decode(&plugin, request).await).await?
    }

    fn found_decoder(&self, name: &str) -> Result<Arc<Plugin>, Undecoded> {
        self.decoder(name).ok_or_else(|| match self.lacks_decoder(name) {
            true => Undecoded::Failed {
                plugin: name.to_owned(),
                why: "it could not be loaded".to_owned(),
                may_clear: true,
            },
            false => Undecoded::NoDecoder(self.decoders()),
        })
    }
}

/// Lets a decoder work on a body.
pub async fn decode(plugin: &Plugin, request: PushRequest) -> Result<Decoded, Undecoded> {
    let PushRequest { content_type, path, query, received_ms, body } = request;
    let request = Request { content_type, path, query, received_ms, body: body.to_vec() };
    drop(body);
    let decoded = plugin
        .call(async |instance, time| {
            let decoded = match instance.decode(&request, time).await? {
                Ok(decoded) => decoded,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let rows = decoded.batch.rows();
            let body = if rows > 0 { Some(write(&decoded.batch)?) } else { None };
            let cut = |reason: String| reason.chars().take(REASON_CHARS_MAX).collect();
            let reasons = decoded.reasons.into_iter().take(REASONS_MAX).map(cut).collect();
            Ok(Ok(Decoded { body, rows, refused: decoded.refused, reasons }))
        })
        .await;
    match decoded {
        Ok(Ok(decoded)) => {
            let figures = &plugin.figures;
            figures.rows_in.fetch_add(decoded.rows.saturating_add(decoded.refused), Relaxed);
            figures.rows_out.fetch_add(decoded.rows, Relaxed);
            Ok(decoded)
        }
        Ok(Err(Refusal::Malformed(why))) => Err(Undecoded::Malformed(why)),
        Ok(Err(Refusal::UnsupportedType(why))) => Err(Undecoded::UnsupportedType(why)),
        Ok(Err(Refusal::NotFound(why))) => Err(Undecoded::NotFound(why)),
        Err(fault) => Err(Undecoded::Failed {
            plugin: plugin.settings.name.clone(),
            why: fault.to_string(),
            may_clear: matches!(fault, Fault::Skipped(_)),
        }),
    }
}
