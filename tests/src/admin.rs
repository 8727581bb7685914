//! Client of the endpoints that change or copy stored data, which tidepool and Prometheus share.
//!
//! The functions of [`Admin`] are assertions: they panic if the server refuses.

use crate::http::{Client, HttpError, Response};
use crate::prometheus::percent_encode;
use serde_json::Value;

/// Client of one server's admin endpoints.
pub struct Admin {
    base_url: String,
}

impl Admin {
    /// Makes a client of the server at this base address.
    pub fn new(base_url: &str) -> Admin {
        Admin { base_url: format!("{base_url}/api/v1/admin/tsdb") }
    }

    /// Posts a form to one of the endpoints.
    pub fn post(&self, call: &str, form: &[(&str, &str)]) -> Result<Response, HttpError> {
        let pair = |(name, value): &(&str, &str)| format!("{name}={}", percent_encode(value));
        let body: Vec<String> = form.iter().map(pair).collect();
        let headers = [("Content-Type", "application/x-www-form-urlencoded")];
        let url = format!("{}/{call}", self.base_url);
        Client::default().post(&url, &headers, body.join("&").as_bytes())
    }

    /// Deletes samples of these selectors between two times in milliseconds.
    #[track_caller]
    pub fn delete(&self, selectors: &[&str], start_ms: i64, end_ms: i64) {
        let seconds = |ms: i64| format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000));
        let (start, end) = (seconds(start_ms), seconds(end_ms));
        let mut form = vec![("start", start.as_str()), ("end", end.as_str())];
        form.extend(selectors.iter().map(|selector| ("match[]", *selector)));
        let response = self.post("delete_series", &form).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }

    /// Rewrites all blocks with deletions.
    #[track_caller]
    pub fn clean_tombstones(&self) {
        let response = self.post("clean_tombstones", &[]).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }

    /// Makes a snapshot and returns its name.
    #[track_caller]
    pub fn snapshot(&self, skip_head: bool) -> String {
        let skip_head = if skip_head { "true" } else { "false" };
        let response = self.post("snapshot", &[("skip_head", skip_head)]).expect("an answer");
        assert_eq!(response.status, 200, "{}", response.text());
        let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
        assert_eq!(answer["status"], "success");
        answer["data"]["name"].as_str().expect("a name").to_owned()
    }
}
