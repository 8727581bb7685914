//! `GET /api/v1/openapi.yaml`: a description of all endpoints for programs. The file is in this
//! directory; a test with a schema tester checks a running server against it.

use crate::http::reply::{Reply, full};
use hyper::StatusCode;
use hyper::header::HeaderValue;

const DESCRIPTION: &str = include_str!("openapi.yaml");

pub fn answer() -> Reply {
    let content_type = HeaderValue::from_static("application/yaml; charset=utf-8");
    full(StatusCode::OK, content_type, DESCRIPTION)
}

/// Paths and methods in the description, as `GET /path`. Path parameters are as in the routes.
#[cfg(test)]
pub fn described() -> Vec<String> {
    let mut described = Vec::new();
    let mut path = String::new();
    for line in DESCRIPTION.lines() {
        let name = line.trim().trim_end_matches(':');
        match line.len() - line.trim_start().len() {
            2 if name.starts_with('/') => {
                path = name
                    .replace("{name}", "{}")
                    .replace("{silenceID}", "{}")
                    .replace("{labels}", "{*}")
                    .replace("{decoder}", "{*}");
            }
            4 if matches!(name, "get" | "post" | "put" | "delete") && !path.is_empty() => {
                described.push(format!("{} {path}", name.to_uppercase()));
            }
            0 => path.clear(),
            _ => {}
        }
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_ours() {
        assert!(DESCRIPTION.contains(concat!("\n  version: ", env!("CARGO_PKG_VERSION"), "\n")));
    }
}
