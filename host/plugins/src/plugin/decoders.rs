//! Decoders convert bodies to remote-write requests: bodies of `POST /api/v1/push/NAME`, and of
//! further paths that the configuration assigns to a decoder.

use super::batch::write;
use super::bindings::decoder::exports::tidepool::plugin::decode_bodies::{Refusal, Request};
use super::manager::Plugins;
use super::poison::{FAILURES_MAX, may_be_poison};
use super::pool::Plugin;
use super::push::{Decoded, PushRequest, Undecoded};
use super::text::bounded;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tidepool_lifecycle::boxed::BoxFuture;

/// Maximum number of reasons in the response to a sender.
const REASONS_MAX: usize = 10;

impl Plugins {
    /// Returns an error for the sender if there is no decoder of this name.
    pub fn check_decoder(&self, name: &str) -> Result<(), Undecoded> {
        self.found_decoder(name).map(drop)
    }

    /// Decodes a body with the named decoder.
    pub fn decode<'a>(
        &'a self,
        name: &'a str,
        request: PushRequest,
    ) -> BoxFuture<'a, Result<Decoded, Undecoded>> {
        Box::pin(async move {
            let plugin = self.found_decoder(name)?;
            self.blocking(async move || decode(&plugin, request).await).await?
        })
    }

    fn found_decoder(&self, name: &str) -> Result<Arc<Plugin>, Undecoded> {
        // For a decoder that is not loaded the status is 503, so that senders retry; else 404.
        self.decoder(name).ok_or_else(|| match self.lacks_decoder(name) {
            Some(why) => Undecoded::Failed { plugin: name.to_owned(), why: why.to_owned() },
            None => Undecoded::NoDecoder(self.decoders()),
        })
    }
}

/// Decodes a body within the plugin's limits.
pub async fn decode(plugin: &Plugin, request: PushRequest) -> Result<Decoded, Undecoded> {
    let PushRequest { content_type, path, query, received_ms, body } = request;
    let request = Request { content_type, path, query, received_ms, body: body.to_vec() };
    // The request has a copy, and the original would use memory during the call.
    drop(body);
    let decoded = plugin
        .call(async |instance, time| {
            let decoded = match instance.decode(&request, time).await? {
                Ok(decoded) => decoded,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let rows = decoded.batch.rows();
            let body = if rows > 0 { Some(write(&decoded.batch)?) } else { None };
            let reasons = decoded.reasons.iter().take(REASONS_MAX);
            let reasons = reasons.map(|reason| bounded(reason)).collect();
            Ok(Ok(Decoded { body, rows, refused: decoded.refused, reasons }))
        })
        .await;
    match decoded {
        Ok(Ok(decoded)) => {
            let figures = &plugin.figures;
            // The decoder may report any number of refused rows, so the sum must not overflow.
            figures.rows_in.fetch_add(decoded.rows.saturating_add(decoded.refused), Relaxed);
            figures.rows_out.fetch_add(decoded.rows, Relaxed);
            Ok(decoded)
        }
        Ok(Err(Refusal::Malformed(why))) => Err(Undecoded::Malformed(bounded(&why))),
        Ok(Err(Refusal::UnsupportedType(why))) => Err(Undecoded::UnsupportedType(bounded(&why))),
        Ok(Err(Refusal::NotFound(why))) => Err(Undecoded::NotFound(bounded(&why))),
        Err(fault) => {
            let (name, why) = (plugin.settings.name.clone(), fault.to_string());
            // Only failures that the body may have caused are counted for the body.
            let failures = match may_be_poison(&fault) {
                true => plugin.poison.failed(plugin.poison.key(&request)),
                false => 0,
            };
            Err(match failures < FAILURES_MAX {
                true => Undecoded::Failed { plugin: name, why },
                false => Undecoded::Poisonous { plugin: name, failures, why },
            })
        }
    }
}
