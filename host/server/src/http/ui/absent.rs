//! Replaces the browser page in a program built without it.

use super::reply::Reply;
use super::request::Request;
use super::route::Route;
use hyper::header::HeaderMap;

/// An endpoint of the page; there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEndpoint {}

pub const ROUTES: &[Route<PageEndpoint>] = &[];

pub fn answer(endpoint: PageEndpoint, _: &Request) -> Reply {
    match endpoint {}
}

pub fn document(_: &HeaderMap) -> Option<Reply> {
    None
}

pub fn why_missing() -> Option<String> {
    None
}
