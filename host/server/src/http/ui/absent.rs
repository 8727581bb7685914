//! In the place of the page for browsers, in a program without it.

use super::reply::Reply;
use super::request::Request;
use super::route::Route;
use hyper::header::HeaderMap;

/// An endpoint of the page: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEndpoint {}

/// None.
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
