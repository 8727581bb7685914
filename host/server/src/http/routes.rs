//! The table of endpoints by path. `GET /` without a browser lists it.

use super::api::{self, Call};
use super::api_v2;
use super::context::Context;
use super::handler::Handler;
use super::reply::{Reply, text};
use super::route::{GET, GET_DELETE, GET_POST, POST, POST_PUT, Route, route};
use super::ui::{self, PageEndpoint};
use super::{auth, federate, import, metrics, otlp, pages, push, read, reload, replay, write};
use crate::access::Scope;
use crate::http::request::Request;
use hyper::header::{ALLOW, HOST, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode, Uri, Version};
use std::sync::atomic::Ordering::Relaxed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Index,
    /// An endpoint of the browser page.
    Page(PageEndpoint),
    Healthy,
    Ready,
    Reload,
    Federate,
    Metrics,
    Write,
    Otlp,
    Import,
    Push,
    Read,
    /// An endpoint with the envelope of Prometheus' API.
    Api(Call),
    /// An endpoint like Alertmanager's.
    ApiV2(api_v2::Call),
}

#[rustfmt::skip]
const ROUTES: &[Route<Endpoint>] = &[
    route(POST, "/api/v1/write", Endpoint::Write, "remote write 1.0 and 2.0"),
    route(POST, otlp::PATH, Endpoint::Otlp, "OpenTelemetry metrics: OTLP over HTTP, protobuf"),
    route(POST_PUT, import::PATH, Endpoint::Import, "samples as text: Prometheus' format or OpenMetrics"),
    route(POST_PUT, import::PATH_LABELS, Endpoint::Import, "the same with labels, as /metrics/job/JOB/NAME/VALUE"),
    route(POST, push::PATH, Endpoint::Push, "bodies for a plugin: its name, and what clients add"),
    route(POST, "/api/v1/read", Endpoint::Read, "remote read: SAMPLES and STREAMED_XOR_CHUNKS"),
    route(GET_POST, "/api/v1/labels", Endpoint::Api(Call::LabelNames), "names of labels"),
    route(GET, "/api/v1/label/{}/values", Endpoint::Api(Call::LabelValues), "values of a label"),
    route(GET_POST, "/api/v1/series", Endpoint::Api(Call::Series), "series that selectors select"),
    route(GET_POST, "/api/v1/query_exemplars", Endpoint::Api(Call::Exemplars), "exemplars of selected series"),
    route(GET, "/api/v1/metadata", Endpoint::Api(Call::Metadata), "type, help and unit of metric families"),
    route(GET, "/api/v1/status/buildinfo", Endpoint::Api(Call::BuildInfo), "the version, and whose API this is like"),
    route(GET, "/api/v1/status/runtimeinfo", Endpoint::Api(Call::RuntimeInfo), "the process and its start"),
    route(GET, "/api/v1/status/config", Endpoint::Api(Call::Config), "the loaded configuration, without secrets"),
    route(GET, "/api/v1/status/flags", Endpoint::Api(Call::Flags), "every flag, also by Prometheus' name"),
    route(GET, "/api/v1/status/tsdb", Endpoint::Api(Call::Tsdb), "metrics and labels with the most series"),
    route(GET, "/api/v1/status/tsdb/blocks", Endpoint::Api(Call::Blocks), "the blocks, with what their meta.json say"),
    route(GET, "/api/v1/status/walreplay", Endpoint::Api(Call::WalReplay), "how far the replay of the log is"),
    route(GET, "/api/v1/rules", Endpoint::Api(Call::Rules), "rule groups, and how their last evaluations went"),
    route(GET, "/api/v1/alerts", Endpoint::Api(Call::Alerts), "pending and firing alerts"),
    route(GET, "/api/v1/alerts/history", Endpoint::Api(Call::AlertHistory), "beginnings and ends of alerts, the newest first"),
    route(GET, "/api/v1/alerts/receivers", Endpoint::Api(Call::AlertReceivers), "what receivers were told, and what waits for them"),
    route(POST, "/api/v1/admin/alerts/test", Endpoint::Api(Call::AlertTest), "sends one made-up alert to a receiver"),
    route(POST, "/api/v1/alerts/backtest", Endpoint::Api(Call::Backtest), "what rules would have fired over a stored range"),
    route(GET, "/api/v1/targets", Endpoint::Api(Call::Targets), "what is scraped, and how the last scrapes went"),
    route(GET, "/api/v1/targets/metadata", Endpoint::Api(Call::TargetMetadata), "type, help and unit of metric families, by target"),
    route(GET, "/api/v1/targets/relabel_steps", Endpoint::Api(Call::RelabelSteps), "what each relabel rule of a job makes of labels"),
    route(GET, "/api/v1/scrape_pools", Endpoint::Api(Call::ScrapePools), "the names of the jobs"),
    route(GET, "/api/v1/scrape_pools/config", Endpoint::Api(Call::ScrapePoolConfig), "the settings of a job as they hold"),
    route(GET, "/api/v1/alertmanagers", Endpoint::Api(Call::Alertmanagers), "Alertmanagers that alerts are sent to"),
    route(GET_POST, "/api/v1/query", Endpoint::Api(Call::Query), "PromQL at one time"),
    route(GET_POST, "/api/v1/query_range", Endpoint::Api(Call::QueryRange), "PromQL at every step of a range"),
    route(GET_POST, "/api/v1/format_query", Endpoint::Api(Call::FormatQuery), "an expression in Prometheus' layout"),
    route(GET_POST, "/api/v1/parse_query", Endpoint::Api(Call::ParseQuery), "the tree of an expression"),
    route(POST_PUT, "/api/v1/admin/tsdb/delete_series", Endpoint::Api(Call::DeleteSeries), "deletes samples; with --enable-admin-api"),
    route(POST_PUT, "/api/v1/admin/tsdb/clean_tombstones", Endpoint::Api(Call::CleanTombstones), "frees their space; with --enable-admin-api"),
    route(POST_PUT, "/api/v1/admin/tsdb/snapshot", Endpoint::Api(Call::Snapshot), "makes a copy; with --enable-admin-api"),
    route(GET, "/api/v1/openapi.yaml", Endpoint::Api(Call::OpenApi), "all of this, for programs"),
    route(GET_POST, api_v2::SILENCES, Endpoint::ApiV2(api_v2::Call::Silences), "silences, as Alertmanager has them"),
    route(GET_DELETE, "/api/v2/silence/{}", Endpoint::ApiV2(api_v2::Call::Silence), "a silence; DELETE ends it"),
    route(GET, "/api/v2/status", Endpoint::ApiV2(api_v2::Call::Status), "whose API this is like"),
    route(GET, federate::PATH, Endpoint::Federate, "the newest samples of selected series, for a Prometheus"),
    route(GET, "/metrics", Endpoint::Metrics, "the store's own figures"),
    route(POST_PUT, reload::PATH, Endpoint::Reload, "loads the configuration again; with --enable-lifecycle"),
    route(GET, "/-/healthy", Endpoint::Healthy, "200 while the process lives"),
    route(GET, "/-/ready", Endpoint::Ready, "200 once the log is replayed"),
    route(GET, "/", Endpoint::Index, "this list; for browsers the page, if the program has it"),
];

/// Iterates over all entries, including the endpoints of the browser page.
fn routes() -> impl Iterator<Item = Route<Endpoint>> {
    ROUTES.iter().copied().chain(ui::ROUTES.iter().map(|route| route.of(Endpoint::Page)))
}

/// Returns the handler of a path. Paths assigned to plugins have the handler of `push`.
pub fn handler_of(context: &Context, path: &str) -> Handler {
    let handler = handler_of_path(path);
    // The table has priority, so that a plugin cannot replace an endpoint.
    if route_of(handler).is_none() && push::is_given(context, path) {
        return handler_of_path(push::PREFIX);
    }
    handler
}

/// Returns the URI without doubled slashes and without a final slash, if only that path is known. A
/// base URL that ends in a slash leads to such paths. Prometheus redirects them, but clients that
/// do not follow redirects would fail.
pub fn without_more_slashes(context: &Context, uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let has_more = path.contains("//") || (path.len() > 1 && path.ends_with('/'));
    let is_known = |path: &str| route_of(handler_of(context, path)).is_some();
    if !has_more || is_known(path) {
        return None;
    }
    // Repeated, because one replacement leaves two of three slashes.
    let mut single = path.to_owned();
    while single.contains("//") {
        single = single.replace("//", "/");
    }
    // The final slash is kept if the endpoint has it, such as `/`.
    let at_end = single.strip_suffix('/').unwrap_or(&single);
    let path = [single.as_str(), at_end].into_iter().find(|path| is_known(path))?;
    // The query string is not changed, as it may contain slashes.
    let mut parts = uri.clone().into_parts();
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    parts.path_and_query = Some(format!("{path}{query}").parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Returns the handler of a path in the table.
fn handler_of_path(path: &str) -> Handler {
    let at = routes().position(|route| route.is_at(path));
    handler_at(at.unwrap_or(routes().count()))
}

/// Returns the handlers of all entries, and last the handler for unknown paths.
pub fn handlers() -> impl Iterator<Item = Handler> {
    (0..=routes().count()).map(handler_at)
}

fn handler_at(number: usize) -> Handler {
    let Some(route) = routes().nth(number) else { return Handler::other(number) };
    // Queries are private, so reads are marked. Refusals of writes quote samples only.
    let reads =
        matches!(auth::scope_of(&Method::GET, route.path), Some(Scope::Read | Scope::Admin));
    let is_probe = route.endpoint == Endpoint::Ready;
    Handler::new(number, route.path).with_reads(reads).with_probe(is_probe)
}

fn route_of(handler: Handler) -> Option<Route<Endpoint>> {
    routes().nth(handler.number())
}

/// Checks and answers a request, and counts refusals by status.
pub async fn handle(context: &Context, handler: Handler, request: Request) -> Reply {
    let reply = admitted(context, handler, request).await.unwrap_or_else(|refused| refused);
    let counters = &context.counters;
    let refused = match reply.status() {
        StatusCode::UNAUTHORIZED => &counters.refused_unauthorized,
        StatusCode::REQUEST_TIMEOUT => &counters.refused_slow,
        StatusCode::PAYLOAD_TOO_LARGE => &counters.refused_too_large,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => &counters.refused_type,
        StatusCode::SERVICE_UNAVAILABLE => &counters.refused_unavailable,
        _ => return reply,
    };
    refused.fetch_add(1, Relaxed);
    reply
}

/// Answers a request after checking host, origin and credentials.
async fn admitted(context: &Context, handler: Handler, request: Request) -> Result<Reply, Reply> {
    // RFC 9112, section 3.2. The text is that of Go's server.
    if request.version() == Version::HTTP_11 && !request.headers().contains_key(HOST) {
        let why = "400 Bad Request: missing required Host header\n";
        return Err(text(StatusCode::BAD_REQUEST, why));
    }
    let path = request.uri().path();
    let scope = auth::scope(context, request.method(), path);
    if let Some(scope) = scope {
        // Checked before credentials, which a browser may send by itself for a foreign page.
        if let Some(refusal) = pages::refusal(context, scope, &request) {
            return Err(refusal);
        }
        auth::check(context, scope, request.headers()).await?;
    }
    // Browsers send preflights for pages of other origins. Only read endpoints allow them.
    let is_preflight = request.method() == Method::OPTIONS && path.starts_with("/api/v1/");
    if is_preflight && scope == Some(Scope::Read) {
        return Ok(api::options(context, request.headers()));
    }
    Ok(dispatch(context, handler, request).await)
}

async fn dispatch(context: &Context, handler: Handler, request: Request) -> Reply {
    // The text is that of Go's default handler, as clients know it from Prometheus.
    let Some(route) = route_of(handler) else {
        return text(StatusCode::NOT_FOUND, "404 page not found\n");
    };
    if !route.methods.split(", ").any(|method| method == request.method().as_str()) {
        return not_allowed(route.methods);
    }
    match route.endpoint {
        Endpoint::Index => index(request.headers()),
        Endpoint::Page(endpoint) => ui::answer(endpoint, &request),
        Endpoint::Healthy => text(StatusCode::OK, "tidepool is healthy.\n"),
        Endpoint::Ready => replay::ready(context),
        Endpoint::Reload => reload::answer(context).await,
        Endpoint::Federate => federate::answer(context, request).await,
        Endpoint::Metrics => metrics::answer(context).await,
        Endpoint::Write => write::answer(context, request).await,
        Endpoint::Otlp => otlp::answer(context, request).await,
        Endpoint::Import => import::answer(context, request).await,
        Endpoint::Push => push::answer(context, request).await,
        Endpoint::Read => read::answer(context, request).await,
        Endpoint::Api(call) => api::answer(context, call, request).await,
        Endpoint::ApiV2(call) => api_v2::answer(context, call, request).await,
    }
}

/// Returns the page for browsers, or the list of endpoints.
fn index(headers: &HeaderMap) -> Reply {
    ui::document(headers).unwrap_or_else(|| {
        let mut reply = text(StatusCode::OK, list());
        // Keeps caches from returning the list to a browser.
        reply.headers_mut().insert(hyper::header::VARY, HeaderValue::from_static("Accept"));
        reply
    })
}

fn list() -> String {
    let mut page = "tidepool: a Prometheus-compatible metrics store\n\n".to_owned();
    for Route { path, methods, about, .. } in routes() {
        let path = path.replace("{}", "<name>").replace("{*}", "…");
        let methods = methods.replace("HEAD, ", "").replace(", HEAD", "").replace(", ", "|");
        page += &format!("{methods:8} {path:37} {about}\n");
    }
    if let Some(why) = ui::why_missing() {
        page += &format!("\n{why}");
    }
    page
}

fn not_allowed(allowed: &'static str) -> Reply {
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_plugins::config::is_reserved;

    #[test]
    fn the_description_for_programs_has_the_same_lines() {
        let both = routes().flat_map(|route| {
            let methods = route.methods.split(", ").filter(|method| *method != "HEAD");
            methods.map(move |method| format!("{method} {}", route.path))
        });
        let mut expected: Vec<String> = both.collect();
        let mut described = api::described();
        // The description includes the page, which this program may lack.
        if ui::ROUTES.is_empty() {
            described.retain(|line| {
                !matches!(line.as_str(), "GET /graph" | "GET /query" | "GET /ui/{}")
            });
        }
        expected.sort();
        described.sort();
        assert_eq!(described, expected);
    }

    #[test]
    fn no_plugin_can_have_a_path_of_the_table() {
        for Route { path, .. } in routes() {
            assert!(is_reserved(path), "{path}");
        }
    }
}
