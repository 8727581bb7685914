//! Tokens that are obtained by client credentials.

use crate::server::{Server, answer};
use crate::{client, get, ok, sent};
use std::collections::BTreeMap;

fn form(body: &[u8]) -> BTreeMap<String, String> {
    form_urlencoded::parse(body).into_owned().collect()
}

fn shown(header: Option<&str>) -> String {
    header.unwrap_or("nobody").to_owned()
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_again_with_another_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "a+b\n").expect("a file");
    let tokens = Server::start(|seen| match seen.header("authorization") {
        // `edge:a%2Bb`
        Some("Basic ZWRnZTphJTJCYg==") => answer(
            200,
            &[],
            r#"{"access_token": "t1", "token_type": "bearer", "expires_in": 3600}"#,
        ),
        _ => answer(200, &[], r#"{"access_token": "t2", "token_type": "MAC"}"#),
    })
    .await;
    let target = Server::start(|seen| answer(200, &[], &shown(seen.header("authorization")))).await;
    let client = client(&format!(
        "oauth2:\n  client_id: edge\n  client_secret_file: {}\n  token_url: http://{}/token\n  \
         scopes: [a, b]\n  endpoint_params: {{audience: centre}}\n",
        secret.display(),
        tokens.address
    ));
    let url = format!("http://{}/", target.address);
    for _ in 0..3 {
        assert_eq!(sent(&client, get(&url)).await, ok("Bearer t1"));
    }
    assert_eq!(tokens.log.all().len(), 1);
    let asked = form(&tokens.log.last().body);
    let expected = [("grant_type", "client_credentials"), ("scope", "a b"), ("audience", "centre")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(asked, BTreeMap::from(expected));
    std::fs::write(&secret, "other\n").expect("a file");
    for _ in 0..2 {
        assert_eq!(sent(&client, get(&url)).await, ok("MAC t2"));
    }
    assert_eq!(tokens.log.all().len(), 2);
}

/// A token that ends within the margin is used only for the request that needed it.
#[tokio::test]
async fn a_server_may_want_parameters_and_tokens_end() {
    let tokens = Server::start(|seen| match form(&seen.body).get("client_secret") {
        Some(secret) if secret == "hunter2" => {
            answer(200, &[], r#"{"access_token": "t", "expires_in": "5"}"#)
        }
        _ => answer(401, &[], "who?"),
    })
    .await;
    let target = Server::start(|seen| answer(200, &[], &shown(seen.header("authorization")))).await;
    let client = client(&format!(
        "oauth2: {{client_id: edge, client_secret: hunter2, token_url: 'http://{}/'}}",
        tokens.address
    ));
    let url = format!("http://{}/", target.address);
    assert_eq!(sent(&client, get(&url)).await, ok("Bearer t"));
    assert_eq!(tokens.log.all().len(), 2);
    assert_eq!(sent(&client, get(&url)).await, ok("Bearer t"));
    assert_eq!(tokens.log.all().len(), 3, "the way that worked is gone at once");
}

#[tokio::test]
async fn no_token_is_an_error_that_names_the_server() {
    let tokens = Server::start(|seen| match seen.uri.path() {
        "/refuses" => answer(400, &[], "invalid_client\n"),
        _ => answer(200, &[], "<html>"),
    })
    .await;
    let target = Server::start(|_| answer(200, &[], "")).await;
    let url = format!("http://{}/", target.address);
    for (path, said) in
        [("refuses", "400 Bad Request: invalid_client"), ("page", "with no token in JSON")]
    {
        let at = format!("http://{}/{path}", tokens.address);
        let client = client(&format!(
            "oauth2: {{client_id: edge, client_secret: hunter2, token_url: '{at}?key=hunter2'}}"
        ));
        let error = sent(&client, get(&url)).await.map_err(|error| error.to_string());
        let said = format!("oauth2: the token server at {at}?key=xxxxx answers {said}");
        assert_eq!(error, Err(said));
    }
    assert_eq!(target.log.all().len(), 0);
}
