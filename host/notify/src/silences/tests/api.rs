//! Bodies and texts are those of Alertmanager's API: `api/v2/openapi.yaml`, `api/v2/api.go`, and
//! the validator that is generated from the description.

use super::*;
use crate::silences::api::{ApiError, Listing, delete, get, list, post};
use proptest::prelude::*;
use serde_json::{Value, json};

fn posted() -> Value {
    json!({
        "matchers": [
            {"name": "job", "value": "node", "isRegex": false},
            {"name": "alertname", "value": "Disk.*", "isRegex": true, "isEqual": false},
        ],
        "startsAt": "2026-11-08T12:00:00Z",
        "endsAt": "2026-11-08T15:00:00.5+02:00",
        "createdBy": "ada",
        "comment": "",
    })
}

/// Posts a silence with some fields replaced; `null` removes one.
fn post_with(node: &Node, fields: Value) -> Result<String, ApiError> {
    let mut body = posted();
    for (name, value) in fields.as_object().expect("fields") {
        body[name.as_str()] = value.clone();
    }
    let answer = post(&node.silences, body.to_string().as_bytes())?;
    Ok(answer["silenceID"].as_str().expect("an id").to_owned())
}

fn all<'a>(filters: &[&'a str]) -> Listing<'a> {
    Listing { filters: filters.to_vec(), active: true, pending: true, expired: true }
}

#[test]
fn a_silence_has_the_keys_of_upstream() {
    let node = Node::new();
    let id = post_with(&node, json!({})).expect("a silence");
    let expected = json!({
        "id": id,
        "status": {"state": "active"},
        "updatedAt": "2026-11-08T12:00:00.000Z",
        "comment": "",
        "createdBy": "ada",
        "endsAt": "2026-11-08T13:00:00.500Z",
        "matchers": [
            {"isEqual": true, "isRegex": false, "name": "job", "value": "node"},
            {"isEqual": false, "isRegex": true, "name": "alertname", "value": "Disk.*"},
        ],
        "startsAt": "2026-11-08T12:00:00.000Z",
    });
    let found = get(&node.silences, &id).expect("a silence");
    assert_eq!(found.to_string(), expected.to_string());
    assert_eq!(list(&node.silences, &all(&[])), Ok(json!([expected])));
    let with = post_with(&node, json!({"annotations": {"ticket": "7"}})).expect("a silence");
    let found = get(&node.silences, &with).expect("a silence");
    assert_eq!(found["annotations"], json!({"ticket": "7"}));
}

#[test]
fn lists_are_filtered_by_equal_matchers_and_by_state() {
    let node = Node::new();
    let listed = |listing: &Listing<'_>| -> Vec<String> {
        let listed = list(&node.silences, listing).expect("a list");
        let listed = listed.as_array().expect("a list");
        listed.iter().map(|silence| silence["id"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let expired = post_with(&node, json!({"startsAt": "0001-01-01T00:00:00.000Z"})).expect("one");
    assert_eq!(get(&node.silences, &expired).expect("one")["startsAt"], "2026-11-08T12:00:00.000Z");
    assert_eq!(delete(&node.silences, &expired), Ok(()));
    let matchers = json!([{"name": "job", "value": "a.*", "isRegex": true, "isEqual": true}]);
    let active = post_with(&node, json!({"matchers": matchers})).expect("one");
    let pending = post_with(&node, json!({"startsAt": "2026-11-08T12:30:00"})).expect("one");
    assert_eq!(listed(&all(&[])), [&*active, &pending, &expired]);
    assert_eq!(listed(&all(&["job=node"])), [&*pending, &expired]);
    assert_eq!(listed(&all(&["job=node", "alertname!~\"Disk.*\""])), [&*pending, &expired]);
    assert_eq!(listed(&all(&["job=~a.*"])), [&*active]);
    // Not evaluated: other matchers of the same meaning are others.
    assert_eq!(listed(&all(&["job=~n.*"])), [""; 0]);
    assert_eq!(listed(&Listing { expired: false, ..all(&["job=node"]) }), [&*pending]);
    assert_eq!(listed(&Listing { active: false, pending: false, ..all(&[]) }), [&*expired]);
    for (filter, expected) in [
        ("{job=node}", "unexpected open or close brace: {job=node}"),
        ("job", "bad matcher format: job (column 4: expected an operator"),
        ("job=~(", "invalid regular expression \"(\": error parsing regexp: missing closing ):"),
    ] {
        let error = list(&node.silences, &all(&[filter])).expect_err(filter);
        assert!(matches!(&error, ApiError::Bad(text) if text.starts_with(expected)), "{error:?}");
    }
}

#[test]
fn bodies_without_their_fields_are_refused_as_by_upstream() {
    let node = Node::new();
    let field = |code, message: &str| json!({"code": code, "message": message});
    for (fields, status, expected) in [
        (
            json!({"matchers": null, "comment": null}),
            422,
            field(602, "comment in body is required"),
        ),
        (json!({"createdBy": null}), 422, field(602, "createdBy in body is required")),
        (json!({"endsAt": null}), 422, field(602, "endsAt in body is required")),
        (json!({"startsAt": null}), 422, field(602, "startsAt in body is required")),
        (json!({"matchers": null}), 422, field(602, "matchers in body is required")),
        (json!({"matchers": []}), 422, field(612, "matchers in body should have at least 1 items")),
        (
            json!({"matchers": [{"name": "a", "value": "b"}]}),
            422,
            field(602, "matchers.0.isRegex in body is required"),
        ),
        (
            json!({"matchers": [{"name": "a", "isRegex": true}]}),
            422,
            field(602, "matchers.0.value in body is required"),
        ),
        (
            json!({"matchers": [{"name": "a", "value": "(", "isRegex": true}]}),
            400,
            "invalid silence: invalid label matcher 0 in set 0: invalid regular expression \"(\": \
             error parsing regexp: missing closing ): `(`"
                .into(),
        ),
        (
            json!({"matchers": [{"name": "", "value": "a", "isRegex": false}]}),
            400,
            "invalid silence: invalid label matcher 0 in set 0: invalid label name \"\"".into(),
        ),
        (
            json!({"matchers": [{"name": "a", "value": "", "isRegex": false}]}),
            400,
            "invalid silence: matcher set 0: at least one matcher must not match the empty string"
                .into(),
        ),
        (
            json!({"endsAt": "2026-11-08T11:00:00Z"}),
            400,
            "Failed to create silence: start time must be before end time".into(),
        ),
        (
            json!({"startsAt": "2026-11-08T10:00:00Z", "endsAt": "2026-11-08T11:00:00Z"}),
            400,
            "Failed to create silence: end time can't be in the past".into(),
        ),
        (json!({"id": "unknown"}), 404, "silence not found".into()),
        (json!({"id": "01020304-0506-4708-890a-0b0c0d0e0f10"}), 404, "silence not found".into()),
    ] {
        let error = post_with(&node, fields.clone()).expect_err("refused");
        assert_eq!((error.status(), error.body()), (status, Some(expected)), "{fields}");
    }
    for body in ["", "[1]", "{\"comment\": 1}", "{\"comment\":", "\u{0}"] {
        let error = post(&node.silences, body.as_bytes()).expect_err(body);
        let shown = error.body().unwrap_or_default();
        assert_eq!((error.status(), &shown["code"]), (400, &json!(400)), "{body}");
        let message = shown["message"].as_str().unwrap_or_default();
        let begin = "parsing silence body from \"\" failed, because ";
        assert!(message.starts_with(begin), "{message}");
    }
    let error = post_with(&node, json!({"endsAt": "soon"})).expect_err("no time");
    assert!(matches!(error, ApiError::Body(_)), "{error:?}");
    assert!(!node.folder.path().join("alerts").exists());
}

#[test]
fn silences_are_changed_and_ended_by_their_id() {
    let node = Node::new();
    let id = post_with(&node, json!({})).expect("a silence");
    let update = json!({"id": id, "comment": "longer", "endsAt": "2026-11-08T20:00:00Z"});
    assert_eq!(post_with(&node, update), Ok(id.clone()));
    assert_eq!(get(&node.silences, &id).expect("a silence")["comment"], "longer");
    assert_eq!(delete(&node.silences, &id), Ok(()));
    assert_eq!(get(&node.silences, &id).expect("a silence")["status"]["state"], "expired");
    assert_eq!(delete(&node.silences, &id), Ok(()));
    let unknown = "01020304-0506-4708-890a-0b0c0d0e0f10";
    for error in [
        get(&node.silences, unknown).expect_err("unknown"),
        delete(&node.silences, unknown).expect_err("unknown"),
    ] {
        assert_eq!((error.status(), error.body()), (404, None));
    }
    let error = delete(&node.silences, "x").expect_err("no id");
    let message = "silenceID in path must be of type uuid: \"x\"";
    let expected = json!({"code": 601, "message": message});
    assert_eq!((error.status(), error.body()), (422, Some(expected)));
}

proptest! {
    #[test]
    fn any_body_is_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        name in "\\PC{0,6}", value in "\\PC{0,12}", time in "[0-9TZ:.+-]{0,24}", is_regex: bool,
    ) {
        let node = Node::new();
        let _ = post(&node.silences, &bytes);
        let matchers = json!([{"name": name, "value": value, "isRegex": is_regex}]);
        let _ = post_with(&node, json!({"matchers": matchers, "startsAt": time}));
        let _ = post_with(&node, json!({"endsAt": time}));
    }
}
