//! Requests that go through a proxy.

use crate::server::{Authority, Server, answer};
use crate::{client, get, ok, raw, read_head, sent};
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_proxy_gets_whole_urls_by_http() {
    let proxy = Server::start(|_| answer(200, &[], "by proxy")).await;
    let proxy_url = format!("http://me:p%40ss@{}", proxy.address);
    let client = client(&format!("proxy_url: {proxy_url}\nno_proxy: direct.example"));
    let url = "http://node.example:9100/metrics?x=1";
    assert_eq!(sent(&client, get(url)).await, ok("by proxy"));
    let last = proxy.log.last();
    assert_eq!(last.uri.to_string(), url);
    assert_eq!(last.header("host"), Some("node.example:9100"));
    assert_eq!(last.header("proxy-authorization"), Some("Basic bWU6cEBzcw=="));
    // With exceptions, loopback addresses are one.
    let target = Server::start(|_| answer(200, &[], "itself")).await;
    assert_eq!(sent(&client, get(&format!("http://{}/", target.address))).await, ok("itself"));
    assert_eq!(proxy.log.all().len(), 1);
}

#[tokio::test]
async fn requests_by_https_are_tunnelled() {
    let authority = Authority::new();
    let target = Server::with_tls(Some(authority.server("127.0.0.1", false)), |_| {
        answer(200, &[], "secure")
    })
    .await;
    let proxy = raw(async |number, mut stream| {
        let Some(head) = read_head(&mut stream).await else { return };
        let authority = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_right = head.starts_with("CONNECT 127.0.0.1:")
            && head.to_ascii_lowercase().contains("\r\nx-proxy: hunter2\r\n")
            && head.contains(&format!("ost: {authority}\r\n"));
        if number > 0 || !is_right {
            let refusal = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
            let _ = stream.write_all(refusal).await;
            return;
        }
        let Ok(mut target) = TcpStream::connect(authority).await else { return };
        let _ = stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
        let _ = copy_bidirectional(&mut stream, &mut target).await;
    })
    .await;
    let folder = tempfile::tempdir().expect("a folder");
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, &authority.certificate).expect("a file");
    let config = format!(
        "proxy_url: http://{proxy}\nproxy_connect_header: {{X-Proxy: [hunter2]}}\n\
         tls_config: {{ca_file: {}}}",
        ca.display()
    );
    let url = format!("https://{}/", target.address);
    assert_eq!(sent(&client(&config), get(&url)).await, ok("secure"));
    assert_eq!(target.log.last().header("x-proxy"), None, "it is for the proxy alone");
    let refused = sent(&client(&config), get(&url)).await.map_err(|error| error.to_string());
    let said =
        format!("proxy http://{proxy}/: CONNECT {} is answered 403 Forbidden", target.address);
    assert_eq!(refused, Err(said));
}
