//! `/api/v1/`: the endpoints with the JSON envelope of Prometheus' HTTP API.
//!
//! Reading order: [`parameters`] reads requests, [`envelope`] has the shape of responses and the
//! table of errors, [`pages`] streams long responses; then a file for each family of endpoints.
//! Source: `docs/querying/api.md` and `web/api/v1/api.go` in prometheus/prometheus.

mod admin;
mod backtest;
mod condition;
mod envelope;
mod exemplars;
mod flags;
mod lookups;
mod metadata;
mod multipart;
mod notifications;
mod openapi;
mod pages;
mod parameters;
mod query;
mod rules;
mod status;
mod targets;
mod tsdb;
mod window;

pub use envelope::success;
#[cfg(test)]
pub use openapi::described;

use super::context::Context;
use super::gzip;
use super::reply::{Reply, text};
use crate::http::request::Request;
use envelope::ApiError;
use hyper::StatusCode;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CONTENT_TYPE, HeaderMap,
    HeaderValue, ORIGIN, VARY,
};
use parameters::Parameters;
use tidepool_store::StoreError;

/// An endpoint of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    LabelNames,
    LabelValues,
    Series,
    Exemplars,
    Metadata,
    BuildInfo,
    RuntimeInfo,
    Config,
    Flags,
    Tsdb,
    Blocks,
    WalReplay,
    Rules,
    Alerts,
    Backtest,
    Targets,
    TargetMetadata,
    RelabelSteps,
    ScrapePools,
    ScrapePoolConfig,
    Alertmanagers,
    AlertHistory,
    AlertReceivers,
    AlertTest,
    Query,
    QueryRange,
    FormatQuery,
    ParseQuery,
    DeleteSeries,
    CleanTombstones,
    Snapshot,
    OpenApi,
}

impl Call {
    /// Returns whether the endpoint works before the log is replayed.
    fn is_early(self) -> bool {
        matches!(self, Call::WalReplay | Call::OpenApi)
    }

    /// Whether a page of another origin must not call it.
    fn is_change(self) -> bool {
        self.is_admin() || self == Call::AlertTest
    }

    fn is_admin(self) -> bool {
        matches!(self, Call::DeleteSeries | Call::CleanTombstones | Call::Snapshot)
    }
}

pub async fn answer(context: &Context, call: Call, request: Request) -> Reply {
    let origin = request.headers().get(ORIGIN).cloned();
    let takes_gzip = gzip::is_taken(request.headers().get_all(ACCEPT_ENCODING));
    let mut reply = done(context, call, request).await.unwrap_or_else(ApiError::into_reply);
    // Not for the admin API: a page of another origin must not delete data through its visitor.
    if !call.is_change() {
        allow_origin(context, origin.as_ref(), reply.headers_mut());
    }
    if takes_gzip { gzip::compress(reply) } else { reply }
}

async fn done(context: &Context, call: Call, request: Request) -> Result<Reply, ApiError> {
    if !call.is_early() && !context.store.is_ready() {
        return Err(StoreError::NotReady.into());
    }
    if call.is_admin() && !context.http.admin_api {
        return Err(ApiError::Off("admin APIs disabled"));
    }
    let path = request.uri().path().to_owned();
    let format = query::preferred(request.headers().get_all(ACCEPT));
    let parameters = Parameters::of(context, request).await?;
    match call {
        Call::LabelNames => lookups::label_names(context, &parameters).await,
        Call::LabelValues => lookups::label_values(context, &path, &parameters).await,
        Call::Series => lookups::series(context, &parameters).await,
        Call::Exemplars => exemplars::answer(context, &parameters).await,
        Call::Metadata => metadata::answer(context, &parameters).await,
        Call::BuildInfo => Ok(status::build_info()),
        Call::RuntimeInfo => Ok(status::runtime_info(context)),
        Call::Config => Ok(status::config(context)),
        Call::Flags => Ok(flags::answer(context)),
        Call::Tsdb => tsdb::answer(context, &parameters).await,
        Call::Blocks => tsdb::blocks(context).await,
        Call::WalReplay => Ok(super::replay::status(context)),
        Call::Rules => rules::rules(context, &parameters).await,
        Call::Alerts => rules::alerts(context).await,
        Call::Backtest => backtest::answer(context, &parameters).await,
        Call::Targets => targets::targets(context, &parameters).await,
        Call::TargetMetadata => targets::metadata::answer(context, &parameters).await,
        Call::RelabelSteps => targets::relabel_steps::answer(context, &parameters),
        Call::ScrapePools => Ok(targets::scrape_pools(context)),
        Call::ScrapePoolConfig => targets::scrape_pool_config(context, &parameters),
        Call::Alertmanagers => Ok(notifications::alertmanagers(context)),
        Call::AlertHistory => notifications::history(context, &parameters).await,
        Call::AlertReceivers => notifications::receivers(context),
        Call::AlertTest => notifications::test(context, &parameters).await,
        Call::Query => query::instant(context, &parameters, format).await,
        Call::QueryRange => query::range(context, &parameters, format).await,
        Call::FormatQuery => query::format(context, &parameters).await,
        Call::ParseQuery => query::parse(context, &parameters).await,
        Call::DeleteSeries => admin::delete_series(context, &parameters).await,
        Call::CleanTombstones => admin::clean_tombstones(context).await,
        Call::Snapshot => admin::snapshot(context, &parameters).await,
        Call::OpenApi => Ok(openapi::answer()),
    }
}

/// Answers the preflight request of a browser.
pub fn options(context: &Context, headers: &HeaderMap) -> Reply {
    let mut reply = text(StatusCode::NO_CONTENT, "");
    reply.headers_mut().remove(CONTENT_TYPE);
    allow_origin(context, headers.get(ORIGIN), reply.headers_mut());
    reply
}

/// Adds the CORS headers for an origin.
fn allow_origin(context: &Context, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
    // Also sent without an origin: a cache could otherwise reuse that response for a page.
    headers.append(VARY, HeaderValue::from_static("Origin"));
    let Some(origin) = origin else { return };
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_HEADERS, "Accept, Authorization, Content-Type, Origin"),
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, OPTIONS"),
        (ACCESS_CONTROL_EXPOSE_HEADERS, "Date"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let allowed = &context.http.cors_origin;
    if allowed.is_any() {
        // With `*`, browsers send no credentials, as they should while every origin is allowed.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    } else if origin.to_str().is_ok_and(|origin| allowed.matches(origin)) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
}
