//! The maximum numbers of selectors and matchers in a request are the same at every endpoint.

use super::{KINDS, status};
use tidepool_tests::http::{Client, Response};
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::remote_read::{matcher, query};
use tidepool_tests::tidepool::Store;

const LOOKUPS: [&str; 3] = ["series", "labels", "label/job/values"];

/// Returns a selector with this number of matchers, including its name.
fn selector(matchers: usize) -> String {
    let others: Vec<String> = (1..matchers).map(|number| format!("i!=\"{number}\"")).collect();
    format!("up{{{}}}", others.join(","))
}

/// Requests the series of all these selectors; `/label/NAME/values` accepts no form.
fn ask(store: &Store, path: &str, name: &str, selectors: &[String]) -> Response {
    let pair = |text: &String| format!("{name}={}", percent_encode(text));
    let form = selectors.iter().map(pair).collect::<Vec<_>>().join("&");
    let url = format!("{}/api/v1/{path}", store.server.url());
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let answer = match path.ends_with("/values") {
        true => Client::default().get(&format!("{url}?{form}")),
        false => Client::default().post(&url, &headers, form.as_bytes()),
    };
    answer.expect("an answer")
}

/// Returns allowed and refused numbers, with the limit that a refusal names.
fn cases() -> [(Vec<usize>, Option<&'static str>); 6] {
    [
        (vec![200], None),
        (vec![150, 50], None),
        (vec![2; 100], None),
        (vec![201], Some("at most 200 matchers")),
        (vec![3; 67], Some("at most 200 matchers")),
        (vec![1; 101], Some("at most 100 selectors")),
    ]
}

#[test]
fn every_endpoint_counts_selectors_and_matchers_of_a_request() {
    let admin = "admin/tsdb/delete_series";
    let store = Store::start_with(|config| config.flag("--enable-admin-api"));
    let store = store.expect("tidepool starts");
    for (matchers, limit) in cases() {
        let selectors: Vec<String> = matchers.iter().map(|count| selector(*count)).collect();
        let mut answers: Vec<(&str, u16, String)> = Vec::new();
        for path in LOOKUPS.into_iter().chain([admin]) {
            let answer = ask(&store, path, "match[]", &selectors);
            answers.push((path, answer.status, answer.text()));
        }
        if let [selector] = selectors.as_slice() {
            let answer = ask(&store, "query_exemplars", "query", std::slice::from_ref(selector));
            answers.push(("query_exemplars", answer.status, answer.text()));
        }
        let queries = matchers.iter().map(|count| {
            let others = (1..*count).map(|number| matcher(Type::Neq, "i", &number.to_string()));
            query(0, 1, [matcher(Type::Eq, "__name__", "up")].into_iter().chain(others).collect())
        });
        let queries: Vec<_> = queries.collect();
        for kind in KINDS {
            let (found, text) = status(&store.reader(), &queries, kind);
            answers.push(("read", found, text));
        }
        for (path, found, text) in answers {
            match limit {
                None => assert!([200, 204].contains(&found), "{path}: {matchers:?}: {text}"),
                Some(limit) => {
                    assert_eq!(found, 400, "{path}: {matchers:?}: {text}");
                    assert!(text.contains(limit), "{path}: {matchers:?}: {text}");
                }
            }
        }
    }
}
