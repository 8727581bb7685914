//! Deletion of series, and invalid requests to the admin endpoints.

use tidepool_tests::admin::Admin;
use tidepool_tests::data_dir::blocks;
use tidepool_tests::deletions::{assert_reads, filled};
use tidepool_tests::http::{exchange, request_bytes};
use tidepool_tests::process::Server;
use tidepool_tests::tidepool::Store;

/// Names and values of parameters.
type Form<'a> = &'a [(&'a str, &'a str)];

#[test]
fn everything_can_be_deleted() {
    let (store, _) = filled(92);
    let admin = Admin::new(&store.server.url());
    let response = admin.post("delete_series", &[("match[]", "{__name__!=\"\"}")]);
    assert_eq!(response.expect("an answer").status, 204);
    assert_reads(&store.server, &[], "after the deletion");
    admin.clean_tombstones();
    assert!(blocks(store.config.data_dir()).expect("blocks").is_empty());
    let store = store.restart(Server::kill).expect("tidepool starts again");
    assert_reads(&store.server, &[], "after kill -9");
}

#[test]
fn wrong_requests_are_answered_as_prometheus_answers() {
    let off = Store::start().expect("tidepool starts");
    for call in ["delete_series", "clean_tombstones", "snapshot"] {
        let response = Admin::new(&off.server.url()).post(call, &[]).expect("an answer");
        let disabled =
            r#"{"status":"error","errorType":"unavailable","error":"admin APIs disabled"}"#;
        assert_eq!((response.status, response.text().as_str()), (500, disabled));
    }
    // Upstream's name of the flag works as well.
    let store = Store::start_with(|config| config.flag("--web.enable-admin-api"));
    let store = store.expect("tidepool starts");
    let admin = Admin::new(&store.server.url());
    let cases: [(&str, Form<'_>, &str); 6] = [
        ("delete_series", &[], "no match[] parameter provided"),
        (
            "delete_series",
            &[("match[]", "up{")],
            r#"invalid parameter \"match[]\": 1:4: parse error: unexpected end of input inside braces"#,
        ),
        (
            "delete_series",
            &[("match[]", "up"), ("start", "foo")],
            r#"invalid parameter \"start\": invalid time value for 'start': cannot parse \"foo\" to a valid timestamp"#,
        ),
        (
            "delete_series",
            &[("match[]", "up"), ("match[]", "{}")],
            r#"invalid parameter \"match[]\": match[] must contain at least one non-empty matcher"#,
        ),
        ("delete_series", &[("match[]", "up"), ("match[]", "{a=~\"(\"}")], ""),
        ("snapshot", &[("skip_head", "maybe")], ""),
    ];
    for (call, form, error) in cases {
        let response = admin.post(call, form).expect("an answer");
        let text = response.text();
        assert_eq!(response.status, 400, "{text}");
        assert_eq!(response.header("content-type"), Some("application/json"));
        let start = r#"{"status":"error","errorType":"bad_data","error":""#;
        assert!(text.starts_with(&format!("{start}{error}")), "{text}");
        assert!(error.is_empty() || text.ends_with(&format!("{error}\"}}")), "{text}");
    }
    let send = |method: &str, path: &str| {
        let request = request_bytes(method, path, &[], 0, b"");
        exchange(store.server.address(), request, std::time::Duration::from_secs(30))
    };
    let path = "/api/v1/admin/tsdb/delete_series?match[]=up&start=2023-01-01T00:00:00Z";
    assert_eq!(send("PUT", path).expect("an answer").status, 204);
    assert_eq!(send("GET", path).expect("an answer").status, 405);
    assert_eq!(send("PUT", "/api/v1/admin/tsdb/snapshot").expect("an answer").status, 200);
    assert_eq!(send("POST", "/api/v1/admin/tsdb/other").expect("an answer").status, 404);
}
