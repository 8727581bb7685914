//! An entry of a table of endpoints.

/// Values of `Allow`. An endpoint for GET also answers HEAD.
pub const GET: &str = "GET, HEAD";
pub const GET_POST: &str = "GET, HEAD, POST";
pub const GET_DELETE: &str = "GET, HEAD, DELETE";
pub const POST: &str = "POST";
pub const POST_PUT: &str = "POST, PUT";

/// An entry of a table with endpoints of type `E`.
#[derive(Clone, Copy)]
pub struct Route<E> {
    /// Path pattern; `{}` stands for one segment, `{*}` for all remaining segments.
    pub path: &'static str,
    pub methods: &'static str,
    pub endpoint: E,
    /// One-line description for the list of endpoints.
    pub about: &'static str,
}

pub const fn route<E>(
    methods: &'static str,
    path: &'static str,
    endpoint: E,
    about: &'static str,
) -> Route<E> {
    Route { path, methods, endpoint, about }
}

impl<E: Copy> Route<E> {
    /// Returns whether the pattern matches a path.
    pub fn is_at(&self, path: &str) -> bool {
        is_at(self.path, path)
    }

    /// Converts the endpoint to another type.
    pub fn of<T>(&self, endpoint: impl FnOnce(E) -> T) -> Route<T> {
        route(self.methods, self.path, endpoint(self.endpoint), self.about)
    }
}

fn is_at(pattern: &str, path: &str) -> bool {
    if let Some(before) = pattern.strip_suffix("{*}") {
        return path.starts_with(before);
    }
    match pattern.split_once("{}") {
        None => pattern == path,
        Some((before, after)) => path
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            // The path is decoded later, so an encoded slash does not end the segment.
            .is_some_and(|segment| !segment.is_empty() && !segment.contains('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::is_at;
    use crate::http::import;

    #[test]
    fn one_segment_stands_where_the_table_says_so() {
        assert!(is_at("/api/v1/labels", "/api/v1/labels"));
        assert!(!is_at("/api/v1/labels", "/api/v1/labels/"));
        assert!(is_at("/api/v1/label/{}/values", "/api/v1/label/a%2Fb/values"));
        assert!(is_at(import::PATH_LABELS, "/api/v1/import/prometheus/metrics/job/a/b/c"));
        assert!(!is_at(import::PATH_LABELS, import::PATH));
        for wrong in ["/api/v1/label/values", "/api/v1/label//values", "/api/v1/label/a/b/values"] {
            assert!(!is_at("/api/v1/label/{}/values", wrong), "{wrong}");
        }
    }
}
